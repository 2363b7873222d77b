"""Kafka's bytes: record batches, the hot-path codec, record decoders. Imports nothing of ours but
`bucketlog.model` and `bucketlog.errors`."""
