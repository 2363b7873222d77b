"""Ingest: records of topics, from the bucket into a table of a lake, each exactly once.

    job      the loop of log_reader.tables, in a session
    rows     the schema and the rows of a batch, as Spark has them
    iceberg  an Iceberg table: tasks write its files, one commit has rows and end offsets
    catalogs the catalogs of a Spark session, as the driver opens them
    parquet  a folder of Parquet: staged, decided by a commit object, published

Invariant: rows of a batch and the end offsets it reached become true together, or not at all.
"""
