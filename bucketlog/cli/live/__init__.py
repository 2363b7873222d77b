"""The live view of a cluster: what brokers and Kafka's protocol say, as rates, in a terminal."""
