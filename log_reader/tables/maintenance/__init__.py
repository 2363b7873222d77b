"""Maintenance of Iceberg tables: small files, old snapshots, and files that no snapshot has."""
