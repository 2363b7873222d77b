"""bucketlog: a leaderless log service that speaks the Kafka protocol and keeps everything in a
bucket."""
