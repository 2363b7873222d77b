"""A whole cluster as child processes of a program: brokers, Valkey, and a folder as the bucket."""
