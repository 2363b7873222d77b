"""Conversion of Avro, Protobuf and JSON Schema values of a schema registry to rows of tables."""
