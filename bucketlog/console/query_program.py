"""The program of the process that runs the SQL of a query of the console.

    python -m bucketlog.console.query_program MEMORY_BYTES

Its input is a line with a `QueryRequest` as JSON, then the records as a stream of Arrow. Its output
is a `QueryAnswer` or an error, as JSON. The SQL is hostile. Invariants: before the SQL is parsed,
DuckDB has no access to files, networks, extensions and its own settings, and the process cannot
open a file or a socket. The process uses at most MEMORY_BYTES of address space, and ends after the
time of the request. It starts without the credentials of the console.
"""

import json
import os
import resource
import signal
import sys
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from bucketlog.console.query_answer import QueryAnswer, QueryRequest
from bucketlog.log_format.errors import ConfigurationError

TABLE = "records"
ERROR_CHARS_MAX = 2_000
EARLIEST_US = -(2**63 - 1) + 14_454_775_808
"""DuckDB's earliest timestamp, in microseconds since 1970."""
GUARDS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "max_temp_directory_size": "0B",
}
"""Settings of DuckDB that close its ways out. `python_enable_replacements` would let SQL read
variables of this program."""


class SqlRefusedError(ConfigurationError):
    """The SQL of a query is not one SELECT within the limits."""


def connected(records: Any, request: QueryRequest) -> "duckdb.DuckDBPyConnection":
    """A database in memory with the table `records`, whose guards cannot be changed any more."""
    limits = {
        "threads": str(request.threads),
        "memory_limit": f"{max(1, request.engine_bytes_max // 1024)}KiB",
    }
    connection = duckdb.connect(":memory:", config={**GUARDS, **limits})
    connection.register("given", query_table(records))
    connection.execute(f"CREATE TABLE {TABLE} AS SELECT * FROM given")
    connection.unregister("given")
    connection.execute("SET lock_configuration = true")
    return connection


def query_table(records: Any) -> Any:
    """The columns of the table, from those of a replay, both as a `pyarrow.Table`. Keys and values
    are text, or NULL if they are not UTF-8, and raw bytes. Times are in UTC without a zone, and
    NULL if they are too early for DuckDB."""
    times = records.column("timestamp").cast(pa.int64())
    is_early = pc.less(times, pa.scalar(EARLIEST_US, pa.int64()))
    times = pc.if_else(is_early, pa.scalar(None, pa.int64()), times)
    keys, values = records.column("key"), records.column("value")
    return pa.table(
        {
            "topic": records.column("topic"),
            "partition": records.column("partition"),
            "offset": records.column("offset"),
            "timestamp": times.cast(pa.timestamp("us")),
            "key": text_column(keys),
            "value": text_column(values),
            "raw_key": keys,
            "raw_value": values,
            "headers": records.column("headers"),
        }
    )


def text_column(column: Any) -> Any:
    """The bytes of a column as text; NULL for bytes that are not UTF-8."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.chunked_array([pa.array(map(_text, column.to_pylist()), pa.string())])


def _text(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def answer_of(connection: "duckdb.DuckDBPyConnection", request: QueryRequest) -> QueryAnswer:
    """Run the SQL. Raises `SqlRefusedError`, and DuckDB's errors."""
    statements = connection.extract_statements(request.sql)
    if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
        raise SqlRefusedError(
            "the SQL is not one SELECT", remedy="write one SELECT, and no other statement"
        )
    found = connection.sql(request.sql)
    if len(found.columns) > request.columns_max:
        raise SqlRefusedError(
            f"the result has {len(found.columns):,} columns, and {request.columns_max:,} are "
            "allowed",
            remedy="name the columns, or raise BUCKETLOG_CONSOLE_SQL_COLUMNS_MAX",
        )
    most = request.cell_chars_max + 1
    columns = [
        (name[:most], str(kind)[:most])
        for name, kind in zip(found.columns, found.types, strict=True)
    ]
    left_bytes = request.answer_bytes_max - _size(text for column in columns for text in column)
    texts = found.project(f"left(CAST(COLUMNS(*) AS VARCHAR), {most})")
    rows: list[list[str | None]] = []
    for row in texts.limit(request.rows_max + 1).fetchall():
        left_bytes -= _size(row)
        if len(rows) == request.rows_max or left_bytes < 0:
            return QueryAnswer(columns=columns, rows=rows, is_cut=True)
        rows.append(list(row))
    return QueryAnswer(columns=columns, rows=rows, is_cut=False)


def _size(cells: Any) -> int:
    """Bytes of the cells in an answer."""
    return sum(len(json.dumps(cell)) + 2 for cell in cells)


def forbid_files() -> None:
    """Give this process no free file descriptor. It can then open no file and no socket, whatever
    the SQL finds in DuckDB."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def main(memory_bytes: int, given: BinaryIO, out: BinaryIO) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the console ends this process
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    request = QueryRequest.model_validate_json(given.readline())
    signal.alarm(request.seconds)
    with pa.ipc.open_stream(given) as stream:
        records = stream.read_all()
    connection = connected(records, request)
    connection.sql(f"FROM {TABLE}").limit(1).fetchall()  # imports what results need
    forbid_files()
    try:
        line = answer_of(connection, request).model_dump_json()
    except (duckdb.Error, SqlRefusedError) as error:
        line = json.dumps({"error": str(error)[:ERROR_CHARS_MAX]})
    out.write(line.encode())
    out.flush()
    os._exit(0)  # nothing is to be tidied, and the SQL may have left threads at work


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
