"""The SDK over confluent-kafka: typed topics, producer, consumer, topic administration."""
