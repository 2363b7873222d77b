"""Values whose schemas are in a schema registry, as rows of tables: Avro, Protobuf, JSON Schema."""
