"""Moving topics between Apache Kafka and bucketlog: `bucketlog mirror` and `bucketlog export`.

Both are clients of the two clusters. docs/decisions/0031-mirror.md says what a record keeps.
"""
