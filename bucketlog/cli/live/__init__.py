"""The live view of a cluster in a terminal: rates from brokers' metrics and Kafka's protocol."""
