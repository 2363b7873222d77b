"""Formats with a schema: Avro, Protobuf, JSON, with and without a schema registry."""
