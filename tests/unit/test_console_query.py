"""Queries of the console: what they find, their limits, and the page Query."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from bucketlog.console import query_page
from bucketlog.console.application import application
from bucketlog.console.bounded_process import OutputTooLargeError, output_of
from bucketlog.console.page_deadline import UNBOUNDED, Deadline, PageTimeoutError
from bucketlog.console.pages import Console
from bucketlog.console.queries import (
    FoundRows,
    Queries,
    QueryFailedError,
    QueryRefusedError,
)
from bucketlog.console.settings import MIB, ConsoleSettings
from bucketlog.log_format.records import DecodedRecord, Header
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.rigs.console_log import SCRIPT
from tests.rigs.written_log import START_MS, WrittenLog, some_records
from tests.unit.test_console_hostile_sql import ENDLESS
from tests.unit.test_console_times import answer
from tests.unit.test_verify import IDENTITY

pytestmark = pytest.mark.long

PATIENT = {"refresh_ms": 0, "sql_ms_max": 600_000, "page_ms_max": 600_000}
OWN = "http://localhost"
READER = (sys.executable, "-P", "-m", "bucketlog.console.query_reader", str(4096 * MIB))
HOSTILE_RECORDS = [
    DecodedRecord(0, START_MS, SCRIPT.encode(), b"\xff\xfe", (Header("h", b"\xff"),)),
    DecodedRecord(0, -(2**60), b"a\x00b", b"\xc3\x28", ()),
    DecodedRecord(0, 2**62, "a\u202eb".encode(), None, (Header("", None),)),
    DecodedRecord(0, START_MS, None, b"x" * 100_000, ()),
]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"file://{tmp_path}/bucket"


@pytest.fixture
def log(place: str) -> Iterator[WrittenLog]:
    """Topics `t` with 40 records in two partitions, and `hostile`."""
    store = open_sync_bucket(place)
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    written = WrittenLog(store)
    written.create_topic("t", 2)
    written.create_topic("hostile")
    for partition in range(2):
        written.append("t", partition, some_records(20))
    written.append("hostile", 0, HOSTILE_RECORDS)
    written.flush()
    yield written
    store.close()


def settings_of(**settings: Any) -> ConsoleSettings:
    return ConsoleSettings.model_validate(PATIENT | settings)


def console_of(log: WrittenLog, place: str, **settings: Any) -> Console:
    known = settings_of(**settings)
    return Console(log.bucket, place, known, KeyAccess(), 1, lambda: START_MS, time.monotonic)


def run(place: str, sql: str, topic: str = "t", **settings: Any) -> FoundRows:
    options = {"path": place, "includeHeaders": "true", "subscribe": topic}
    return Queries(settings_of(**settings), time.monotonic).run(topic, options, sql, UNBOUNDED)


def test_a_query_finds_the_records_of_the_range(log: WrittenLog, place: str) -> None:
    found = run(
        place,
        'SELECT partition, count(*), max("offset"), min(timestamp), min(value) FROM records '
        "GROUP BY ALL ORDER BY ALL",
    )
    first = "2023-11-14 22:13:20"
    assert found.answer.rows == [
        ["0", "20", "19", first, "r-value-0"],
        ["1", "20", "19", first, "r-value-0"],
    ]
    assert (found.records, found.is_range_cut, found.answer.is_cut) == (40, False, False)
    columns = dict(run(place, "FROM records").answer.columns)
    assert columns == {
        "topic": "VARCHAR",
        "partition": "INTEGER",
        "offset": "BIGINT",
        "timestamp": "TIMESTAMP",
        "key": "VARCHAR",
        "value": "VARCHAR",
        "raw_key": "BLOB",
        "raw_value": "BLOB",
        "headers": 'STRUCT("key" VARCHAR, "value" BLOB)[]',
    }


def test_hostile_records_are_cells(log: WrittenLog, place: str) -> None:
    found = run(place, "SELECT key, value, raw_value, timestamp FROM records", "hostile")
    assert found.answer.rows == [
        [SCRIPT, None, "\\xFF\\xFE", "2023-11-14 22:13:20"],
        ["a\0b", None, "\\xC3(", None],
        ["a\u202eb", None, None, "294247-01-10 04:00:54.775"],
        [None, "x" * 301, "x" * 301, "2023-11-14 22:13:20"],
    ]


@pytest.mark.parametrize(
    ("limit", "records"),
    [
        ({"sql_records_max": 7}, 7),
        ({"sql_record_bytes_max": 500}, None),
        ({"sql_stored_bytes_max": 1}, None),
    ],
)
def test_a_limit_cuts_the_range_and_the_answer_says_so(
    log: WrittenLog, place: str, limit: dict[str, Any], records: int | None
) -> None:
    for _ in range(3):
        log.append("t", 0, some_records(20))
        log.flush()
    found = run(place, "SELECT count(*) FROM records", **limit)
    assert found.is_range_cut
    assert found.answer.rows == [[str(found.records)]]
    assert 0 < found.records < 100
    assert records is None or found.records == records


@pytest.mark.parametrize("sql", ENDLESS)
def test_an_endless_query_ends_after_its_time(log: WrittenLog, place: str, sql: str) -> None:
    with pytest.raises(QueryFailedError, match="BUCKETLOG_CONSOLE_SQL_MS_MAX"):
        run(place, sql, sql_ms_max=10_000)


def test_the_deadline_of_the_page_ends_a_query(log: WrittenLog, place: str) -> None:
    page = Deadline(time.monotonic, 10, "page_ms_max")
    queries = Queries(settings_of(), time.monotonic)
    with pytest.raises(PageTimeoutError):
        queries.run("t", {"path": place, "subscribe": "t"}, "SELECT 1", page)


def test_a_process_that_dies_is_an_error_that_names_the_limit(log: WrittenLog, place: str) -> None:
    with pytest.raises(QueryFailedError, match="BUCKETLOG_CONSOLE_SQL_MEMORY_BYTES_MAX"):
        run(place, "SELECT 1", sql_memory_bytes_max=MIB)
    with pytest.raises(QueryFailedError, match="BUCKETLOG_CONSOLE_SQL_READ_MEMORY_BYTES_MAX"):
        run(place, "SELECT 1", sql_read_memory_bytes_max=MIB)


@pytest.mark.parametrize(
    "output",
    [
        "print('no JSON')",
        "print('[' * 100_000)",
        'print(\'{"columns": [["a", "b"]], "rows": [[1]], "is_cut": false}\')',
        'print(\'{"columns": [["a", "b"]], "rows": [["1"]], "is_cut": false, "more": 1}\')',
        "print('x' * 100_000_000)",
        "",
    ],
)
def test_a_process_that_was_taken_over_is_an_error(
    log: WrittenLog, place: str, output: str
) -> None:
    queries = Queries(
        settings_of(), time.monotonic, programs=(READER, (sys.executable, "-c", output))
    )
    with pytest.raises(QueryFailedError):
        queries.run("t", {"path": place, "subscribe": "t"}, "SELECT 1", UNBOUNDED)


def test_the_sql_process_gets_no_credentials(
    log: WrittenLog, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do-not-show-this")
    show = "import json, os; print(json.dumps({'error': json.dumps(dict(os.environ))}))"
    programs = (READER, (sys.executable, "-c", show))
    queries = Queries(settings_of(), time.monotonic, programs=programs)
    with pytest.raises(QueryFailedError, match="LANG") as caught:
        queries.run("t", {"path": place, "subscribe": "t"}, "SELECT 1", UNBOUNDED)
    assert "do-not-show-this" not in str(caught.value)


def test_the_output_of_a_process_is_bounded() -> None:
    endless = (sys.executable, "-c", "while True: print('x' * 10_000)")
    with pytest.raises(OutputTooLargeError, match="1,000,000 bytes"):
        output_of(endless, b"", environment={}, bytes_max=1_000_000, check=lambda: None)


def test_a_process_may_ignore_its_input() -> None:
    command = (sys.executable, "-c", "print('done')")
    found = output_of(
        command, b"x" * 10_000_000, environment={}, bytes_max=1_000, check=lambda: None
    )
    assert found == (b"done\n", 0)


async def asked(console: Console, sql: str, origin: str = OWN, **changes: str) -> tuple[int, str]:
    """Status and body of the answer to a form."""
    form = urlencode({"topic": "t", "sql": sql, **changes}).encode()
    app = application(console, hosts=["localhost"])
    status, _, body = await answer(app, "/query", method="POST", origin=origin, form=form)
    return status, body


async def test_the_page_escapes_names_cells_and_errors(log: WrittenLog, place: str) -> None:
    console = console_of(log, place)
    text = SCRIPT.replace("'", "''")
    sql = f"SELECT '{text}' AS \"{SCRIPT}\", chr(27) || chr(8238) AS b, NULL"
    status, body = await asked(console, sql)
    assert status == 200
    assert "<script>document" not in body
    assert body.count("&lt;script&gt;document") >= 3, "the SQL, the name and the cell"
    assert "\\x1b\\u202e" in body
    assert '<span class="none">NULL</span>' in body
    _, body = await asked(console, "SELECT repeat('x', 1_000)")
    assert f'<td>{"x" * 300}<span class="cut">…</span></td>' in body
    status, body = await asked(console, f'SELECT "{SCRIPT}\x1b"')
    assert (status, "<script>document" in body) == (400, False)
    alert = body.split('role="alert"')[1].split("</p>")[0]
    assert "Binder Error" in alert
    assert "\x1b" not in alert


async def test_the_answer_keeps_the_form_and_names_a_cut_range(log: WrittenLog, place: str) -> None:
    console = console_of(log, place, sql_records_max=3)
    status, body = await asked(
        console, "SELECT 'it' || 1", seek="offsets", offsets="1:2-9", partitions="1"
    )
    assert status == 200
    assert 'value="1:2-9"' in body
    assert "SELECT &#39;it&#39; || 1" in body
    assert "The result is about its first 3 records" in body
    app = application(console, hosts=["localhost"])
    status, _, body = await answer(app, "/query?topic=t&sql=SELECT+99")
    assert (status, "SELECT 99" in body, "Result" in body) == (200, True, False)


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://["])
async def test_other_pages_may_not_ask(log: WrittenLog, place: str, origin: str) -> None:
    status, body = await asked(console_of(log, place), "SELECT 1", origin)
    assert (status, "only a page of this console" in body) == (403, True)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"topic": SCRIPT}, 404),
        ({"topic": ""}, 404),
        ({"seek": "x"}, 400),
        ({"offsets": "7:0-1", "seek": "offsets"}, 400),
        ({"offsets": "0:0-99", "seek": "offsets"}, 400),
        ({"sql": ""}, 400),
        ({"sql": "x" * 20_001}, 400),
        ({"sql": "SELECT 1", "since": SCRIPT, "seek": "time"}, 400),
    ],
)
async def test_hostile_forms_are_errors(
    log: WrittenLog, place: str, changes: dict[str, str], status: int
) -> None:
    found, body = await asked(console_of(log, place), **{"sql": "SELECT 1", **changes})
    assert found == status
    assert "<script>document" not in body


async def test_one_query_runs_at_a_time(log: WrittenLog, place: str) -> None:
    console = console_of(log, place)
    assert console.queries._slots.acquire(blocking=False)
    with pytest.raises(QueryRefusedError):
        console.queries.run("t", {"path": place, "subscribe": "t"}, "SELECT 1", UNBOUNDED)
    status, body = await asked(console, "SELECT 1")
    assert (status, "another query is running" in body) == (409, True)
    console.queries._slots.release()
    for sql in ("SELECT 1", "no SQL", "SELECT 1"):
        await asked(console, sql)
    assert console.queries._slots.acquire(blocking=False), "a slot is lost"


async def test_without_duckdb_the_page_says_what_to_install(
    log: WrittenLog, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_page, "find_spec", lambda name: None)
    console = console_of(log, place)
    app = application(console, hosts=["localhost"])
    status, _, body = await answer(app, "/query")
    assert (status, "pip install &#39;bucketlog[console,duckdb]&#39;" in body) == (200, False)
    assert "pip install 'bucketlog[console,duckdb]'" in body
    status, body = await asked(console, "SELECT 1")
    assert (status, "duckdb is not installed" in body) == (400, True)
