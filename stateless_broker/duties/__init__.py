"""What brokers do in the background for the whole cluster, one at a time."""
