"""Tables of a lake that follow the log: what an ingest decides and commits, in any engine.

    progress        end offsets, batches, and what does not fit together; pure
    change_rule     tables with the current state of keys: the rule, and what must not change
    json_text       a value as one JSON object, read strictly; pure
    conversions     JSON values become typed values, exactly or not at all; pure
    rows            records become rows, or dead letters; pure
    task            what a task does: pieces of the log become files
    catalog_failure failures of a catalog, as errors with a remedy
    iceberg_schema  the columns of an Iceberg table, made and evolved
    dead_letters    the second table, with the records that do not fit
    iceberg_table   an Iceberg table: where an ingest continues, and the commit of a batch
    iceberg_files   rows become data files of an Iceberg table, in a task
    changes         changes are merged into an Iceberg table

Invariant: rows of a batch and the end offsets that it reached are committed together.
"""
