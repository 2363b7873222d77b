"""Ingest: JSON records of topics, from the bucket into a table of a lake, each exactly once.

    job      the loop: where a target stands, what the log holds, batch by batch
    progress end offsets, batches, what does not fit together; pure
    rows     a record becomes a row
    iceberg  an Iceberg table: rows and end offsets in one commit
    parquet  a folder of Parquet: staged, decided by a commit object, published

Invariant: rows of a batch and the end offsets it reached become true together, or not at all.
"""
