"""Hostile SQL in the process of a query: it reaches no file, and ends within its limits."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from bucketlog.console.queries import query_environment
from bucketlog.console.query_answer import QueryRequest
from bucketlog.console.query_program import connected
from bucketlog.console.settings import MIB

pytestmark = pytest.mark.long


def arrow_stream(rows: int = 1) -> bytes:
    """Records as the reading process writes them."""
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "topic": ["t"] * rows,
            "partition": pa.array([0] * rows, pa.int32()),
            "offset": pa.array(range(rows), pa.int64()),
            "timestamp": pa.array([0] * rows, pa.timestamp("us", tz="UTC")),
            "key": pa.array([b"k"] * rows, pa.binary()),
            "value": pa.array([b"v"] * rows, pa.binary()),
            "headers": pa.array([None] * rows, headers),
        }
    )
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


REQUEST = QueryRequest(
    sql="",
    seconds=600,
    threads=2,
    engine_bytes_max=256 * MIB,
    rows_max=200,
    columns_max=50,
    cell_chars_max=300,
    answer_bytes_max=MIB,
)


def answered(sql: str, environment: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
    """The answer of the process that runs the SQL."""
    request = REQUEST.model_copy(update={"sql": sql, **changes})
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bucketlog.console.query_program", str(2048 * MIB)],
        input=request.model_dump_json().encode() + b"\n" + arrow_stream(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=query_environment(os.environ if environment is None else environment),
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {"died": done.returncode}
    return found


SECRET = "do-not-show-this"
FILES = [
    "FROM read_csv('{path}')",
    "FROM read_text('{path}')",
    "FROM read_blob('{path}')",
    "FROM read_json('{path}')",
    "FROM read_parquet('{path}')",
    "FROM sniff_csv('{path}')",
    "FROM '{path}'",
    "FROM glob('{path}*')",
    "FROM read_text('/proc/self/environ')",
    "FROM query('FROM read_text(''{path}'')')",
    "SELECT getenv('AWS_SECRET_ACCESS_KEY')",
    "FROM read_csv('https://localhost/x.csv')",
    "FROM duckdb_secrets()",
    "FROM given",
    "FROM stream",
    "FROM connection",
    "FROM os.environ",
]
STATEMENTS = [
    "COPY records TO '{path}.copy'",
    "ATTACH '{path}.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{path}'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "PRAGMA enable_profiling",
    "CREATE SECRET s (TYPE s3)",
    "EXPORT DATABASE '{path}.export'",
    "CALL enable_logging(storage = 'file', storage_config = {{'path': '{path}.log'}})",
    "DROP TABLE records",
    "CREATE TABLE x AS SELECT 1",
    "SELECT 1; COPY records TO '{path}.copy'",
    "EXPLAIN ANALYZE COPY records TO '{path}.copy'",
    "",
    "-- nothing",
    "no SQL",
    "SELECT '\0'; --",
]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "secret.csv"
    path.write_text(f"{SECRET}\n")
    return path


@pytest.mark.parametrize("sql", [*FILES, *STATEMENTS])
def test_hostile_sql_reads_and_writes_no_file(secret: Path, sql: str) -> None:
    environment = {**os.environ, "AWS_SECRET_ACCESS_KEY": SECRET}
    found = answered(sql.format(path=secret), environment)
    assert set(found) == {"error"}, found
    assert SECRET not in json.dumps(found)
    assert os.listdir(secret.parent) == [secret.name]


@pytest.fixture
def connection() -> Iterator["duckdb.DuckDBPyConnection"]:
    """DuckDB with its guards, without the rule of one SELECT and without the limit on files."""
    with connected(pa.ipc.open_stream(arrow_stream()).read_all(), REQUEST) as found:
        yield found


NO_EFFECT = ("DROP", "CREATE TABLE", "--", "SELECT '\0'")
"""Statements that harm nothing outside the database in memory begin so."""


def test_the_guards_of_duckdb_alone_stop_every_statement(
    connection: "duckdb.DuckDBPyConnection", secret: Path
) -> None:
    given = pa.table({"a": [1]})  # SQL that may read variables finds it
    for sql in [*FILES, *STATEMENTS]:
        if sql and not sql.startswith(NO_EFFECT):
            with pytest.raises(duckdb.Error):
                connection.sql(sql.format(path=secret)).fetchall()
    assert given.num_rows == 1
    assert os.listdir(secret.parent) == [secret.name]


CLOSED = (
    "enable_external_access",
    "autoinstall_known_extensions",
    "autoload_known_extensions",
    "allow_community_extensions",
    "allow_unsigned_extensions",
    "python_enable_replacements",
)


def test_settings_of_duckdb_are_limited_and_locked(
    connection: "duckdb.DuckDBPyConnection",
) -> None:
    names = ("memory_limit", "threads", "temp_directory", *CLOSED)
    found = {
        name: connection.execute(f"SELECT current_setting('{name}')::VARCHAR").fetchall()[0][0]
        for name in names
    }
    assert found["memory_limit"] == "256.0 MiB"
    assert found["threads"] == "2"
    assert not found["temp_directory"]
    assert [name for name in CLOSED if found[name] != "false"] == []
    for name in names:
        with pytest.raises(duckdb.Error, match="locked"):
            connection.execute(f"SET {name} = 1")
        with pytest.raises(duckdb.Error, match="locked"):
            connection.execute(f"RESET {name}")


def test_no_file_can_be_opened_while_sql_runs() -> None:
    program = (
        "from bucketlog.console.query_program import forbid_files; import os, socket\n"
        "forbid_files()\n"
        "for attempt in (lambda: os.open('/etc/hosts', 0), socket.socket, os.pipe):\n"
        "    try: attempt()\n"
        "    except OSError as error: print(error.errno)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == [b"24"] * 3


def test_the_sql_process_has_no_credentials() -> None:
    given = {**os.environ, "AWS_SECRET_ACCESS_KEY": SECRET, "BUCKETLOG_ENCRYPTION_KEY_FILE": "/k"}
    found = query_environment(given)
    assert SECRET not in found.values()
    assert not [name for name in found if name.startswith(("AWS", "BUCKETLOG"))]
    assert found["HOME"] == "/nonexistent"


ENDLESS = [
    "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count(*) FROM range(1000000000000)",
    "SELECT sum(hash(a.range * b.range)) FROM range(1000000) a, range(1000000) b",
]


def test_the_process_ends_by_itself_if_nobody_ends_it() -> None:
    assert answered(ENDLESS[0], seconds=5) == {"died": -14}


HUGE = [
    "SELECT list(range) FROM range(100000000)",
    "SELECT repeat('x', 4000000000)",
    "SELECT string_agg(repeat('x', 10000000), '') FROM range(1000)",
    "SELECT count(DISTINCT hash(range)) FROM range(1000000000)",
]


@pytest.mark.parametrize("sql", HUGE)
def test_huge_memory_is_an_error(sql: str) -> None:
    found = answered(sql)
    assert "died" in found or "Out of Memory" in found["error"], found


def test_answers_are_bounded() -> None:
    found = answered("SELECT * FROM range(1000000000000)", rows_max=5)
    assert (len(found["rows"]), found["is_cut"]) == (5, True)
    found = answered("SELECT repeat('x', 1000000) AS a")
    assert found["rows"] == [["x" * 301]]
    found = answered("SELECT repeat('é', 100) FROM range(200)", answer_bytes_max=5_000)
    assert found["is_cut"]
    assert 0 < len(json.dumps(found["rows"])) <= 5_000
    many = ", ".join(f"1 AS c{number}" for number in range(51))
    assert "BUCKETLOG_CONSOLE_SQL_COLUMNS_MAX" in answered(f"SELECT {many}")["error"]
    found = answered(f'SELECT 1 AS "{"n" * 5_000}"')
    assert len(found["columns"][0][0]) == 301
    assert len(answered("SELECT error(repeat('x', 1000000))")["error"]) <= 2_000


def test_every_type_becomes_text() -> None:
    columns = answered("SELECT * FROM test_all_types()", columns_max=1_000)
    assert columns["rows"]
    assert all(cell is None or isinstance(cell, str) for row in columns["rows"] for cell in row)
    assert answered("SELECT 1 AS a, 2 AS a, 3 AS A")["rows"] == [["1", "2", "3"]]
