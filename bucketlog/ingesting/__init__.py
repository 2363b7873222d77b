"""Ingest into Iceberg tables without Spark: tasks run in processes of this machine."""
