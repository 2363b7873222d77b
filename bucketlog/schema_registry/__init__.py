"""A schema registry: the connection, subjects and schemas, and the decoding of framed values."""
