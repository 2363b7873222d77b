"""Spark reads the log straight from the bucket: no broker, no Redis."""
