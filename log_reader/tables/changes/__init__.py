"""Tables with the current state of keys: a batch of changes is merged into the table.

    debezium   events of Debezium become rows and deletions; pure
    key_codes  keys of a batch as numbers; pure
    newest     the newest change of each key; pure
    bounds     files that cannot have a key of a batch, by their column bounds; pure
    file_rows  rows of a data file, batch by batch, without deleted rows
    merge      a batch and the files of a table become new files

Invariant: of the rows of a key, the newest one stays, and a deleted key has none.
"""
