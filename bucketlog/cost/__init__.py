"""What a log has cost, and what Kafka would: `bucketlog cost`."""
