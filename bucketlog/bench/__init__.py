"""Load on a cluster that speaks Kafka's protocol, and what it measured: `bucketlog bench`."""
