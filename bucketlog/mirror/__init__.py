"""Moving topics between Apache Kafka and bucketlog: `bucketlog mirror` and `bucketlog export`.

Both commands are clients of both clusters. The source is the cluster that records are copied from;
the target is the other cluster. docs/decisions/0031-mirror.md says what a record keeps.
"""
