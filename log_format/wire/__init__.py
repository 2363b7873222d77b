"""The hot path of the Kafka protocol, written by hand: frames, Produce, Fetch, ListGroups."""
