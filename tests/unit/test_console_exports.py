"""Exports of the page Messages: their limits and names, hostile records, slow clients."""

import asyncio
import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.types import Message, Receive, Scope, Send

from bucketlog.client.lines import json_line
from bucketlog.console.application import SECURITY_HEADERS, application
from bucketlog.console.export_response import ExportSlots, send_export
from bucketlog.console.exported_rows import HEADER_BYTES
from bucketlog.console.message_export import MessageFile, export, file_name
from bucketlog.console.message_pages import messages
from bucketlog.console.page_query import PageQuery
from bucketlog.console.page_threads import PagesBusyError
from bucketlog.console.pages import Console, UnknownNameError
from bucketlog.console.record_search import SearchEnd, SearchReport
from bucketlog.log_format.batch import Codec
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.records import DecodedRecord, Header
from bucketlog.log_reader.columns import arrow_schema
from bucketlog.replaying.replay import COLUMNS
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.patience import PATIENCE_S
from tests.rigs.traced_memory import TracedMemory
from tests.rigs.written_log import START_MS, WrittenLog, some_records
from tests.unit.test_console_log import console_of
from tests.unit.test_console_search import MANY_HEADERS, add_bad_batch
from tests.unit.test_console_times import answer
from tests.unit.test_verify import IDENTITY

RECORDS = 40
HOSTILE = [
    DecodedRecord(0, START_MS, b"\xff\xfe", b"\xc3\x28\x00", (Header("n", b"\xff"),)),
    DecodedRecord(1, START_MS, b"\x1b[2J\n", "a\u202e\u2028\x7f".encode(), (Header("", None),)),
    DecodedRecord(2, START_MS, None, None),
    DecodedRecord(3, -(2**60), b"", b'"}\n{"offset": 7}', (Header("a\nb", b""),) * 2),
    DecodedRecord(4, 2**62, b"k", b"x" * 100_000),
]


@pytest.fixture
def log() -> WrittenLog:
    """A log with 10 batches of 4 records."""
    store = MemoryBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    written = WrittenLog(store)
    written.create_topic("t")
    for number in range(RECORDS // 4):
        written.append("t", 0, some_records(4, tag=str(number)), codec=Codec.ZSTD)
    written.flush()
    return written


def exported(console: Console, **query: str) -> MessageFile:
    return export(console, PageQuery({"topic": "t", **query}))


def rows_of(made: MessageFile) -> list[dict[str, Any]]:
    if made.content_type == "application/x-ndjson":
        return [json.loads(line) for line in bytes(made.body).splitlines()]
    found: list[dict[str, Any]] = pq.read_table(pa.BufferReader(made.body)).to_pylist()
    return found


def offsets_of(made: MessageFile) -> list[int]:
    return [row["offset"] for row in rows_of(made)]


FORMATS = pytest.mark.parametrize("form", ["jsonl", "parquet"])
SEEKS = {
    "newest": {"before": "30"},
    "oldest": {},
    "offset": {"offset": "7"},
    "time": {"time": str(START_MS + 1)},
}


@FORMATS
@pytest.mark.parametrize("seek", SEEKS)
@pytest.mark.parametrize("wanted", [{}, {"key": "key-1"}, {"value": "3-value"}])
def test_an_export_has_what_the_page_finds(
    log: WrittenLog, form: str, seek: str, wanted: dict[str, str]
) -> None:
    query = {"seek": seek, **SEEKS[seek], **wanted}
    page = messages(console_of(log), PageQuery({"topic": "t", "rows": "100", **query}))
    made = exported(console_of(log), format=form, **query)
    assert offsets_of(made) == [row.offset for row in page["report"].rows]
    assert made.headers["bucketlog-export-complete"] == "true"


@FORMATS
def test_the_links_of_a_page_begin_where_the_page_does(log: WrittenLog, form: str) -> None:
    for seek, place in [*SEEKS.items(), ("newest", {})]:
        query = PageQuery({"topic": "t", "rows": "3", "seek": seek, **place})
        page = messages(console_of(log), query)
        changed = query.changed(format=form, **page["export_query"])
        log.append("t", 0, some_records(2))  # newer than the page
        log.flush()
        given = dict(pair.split("=") for pair in changed[1:].split("&"))
        found = offsets_of(export(console_of(log), PageQuery(given)))
        report = page["report"]
        if seek == "newest":
            assert found == list(range(report.next_offset))
        else:
            assert found == list(range(report.begin, page["figures"].latest))


@FORMATS
@pytest.mark.parametrize(
    ("setting", "most"),
    [
        ("export_records_max", 5),
        ("export_bytes_max", 500),
        ("scan_records_max", 9),
        ("scan_bytes_max", 1),
    ],
)
@pytest.mark.parametrize("seek", ["newest", "oldest"])
def test_an_export_that_a_limit_ended_says_so(
    log: WrittenLog, form: str, setting: str, most: int, seek: str
) -> None:
    made = exported(console_of(log, **{setting: most}), format=form, seek=seek)
    found = offsets_of(made)
    assert 0 < len(found) < RECORDS
    assert made.headers["bucketlog-export-complete"] == "false"
    assert made.headers["bucketlog-export-ended-by"] == f"BUCKETLOG_CONSOLE_{setting.upper()}"
    assert made.headers["bucketlog-export-records"] == str(len(found))
    begin, end = found[0], found[-1] + 1
    assert made.headers["bucketlog-export-offsets"] == f"0:{begin}-{end}"
    assert made.name == f"t-0-offsets-{begin}-to-{end - 1}-partial.{form}"


@pytest.mark.parametrize("seek", ["newest", "oldest"])
@pytest.mark.parametrize("most", [200, 1_000, 3_000])
def test_lines_are_no_larger_than_the_limit(log: WrittenLog, seek: str, most: int) -> None:
    made = exported(console_of(log, export_bytes_max=most), seek=seek)
    assert 0 < len(made.body) <= most
    further = max(len(line) for line in bytes(made.body).splitlines()) + 2
    assert len(made.body) + further > most


def test_a_batch_that_cannot_be_read_makes_an_export_partial(log: WrittenLog) -> None:
    add_bad_batch(log)
    log.append("t", 0, some_records(2))
    log.flush()
    for seek in ("newest", "oldest"):
        made = exported(console_of(log), seek=seek)
        assert offsets_of(made) == [*range(RECORDS), RECORDS + 1, RECORDS + 2]
        assert made.headers["bucketlog-export-unreadable-batches"] == "1"
        assert made.headers["bucketlog-export-complete"] == "false"
        assert "-partial" in made.name


@FORMATS
@pytest.mark.parametrize("seek", ["newest", "oldest"])
def test_a_record_that_is_too_large_is_named(log: WrittenLog, form: str, seek: str) -> None:
    console = console_of(log, export_bytes_max=1)
    offset = RECORDS - 1 if seek == "newest" else 0
    with pytest.raises(ConfigurationError, match=rf"offset {offset} is larger") as caught:
        exported(console, format=form, seek=seek)
    assert "BUCKETLOG_CONSOLE_EXPORT_BYTES_MAX" in caught.value.remedy


@FORMATS
@pytest.mark.parametrize("seek", ["newest", "oldest"])
def test_millions_of_headers_are_not_decoded(
    log: WrittenLog, form: str, seek: str, traced_memory: TracedMemory
) -> None:
    many = DecodedRecord(RECORDS, START_MS, b"k", b"v", (Header("", b""),) * MANY_HEADERS)
    log.append("t", 0, [many], codec=Codec.ZSTD)
    log.append("t", 0, some_records(1))
    log.flush()
    console = console_of(log, export_bytes_max=HEADER_BYTES * MANY_HEADERS)
    made = exported(console, format=form, seek=seek)
    assert offsets_of(made) == ([RECORDS + 1] if seek == "newest" else list(range(RECORDS)))
    with traced_memory.below(10 * MANY_HEADERS):
        exported(console, format=form, seek=seek)


def test_nothing_to_export_is_an_error(log: WrittenLog) -> None:
    log.create_topic("empty")
    log.flush()
    for query in ({"topic": "empty"}, {"topic": "t", "seek": "offset", "offset": "99"}):
        with pytest.raises(UnknownNameError, match="no offset of"):
            export(console_of(log), PageQuery(query))
    with pytest.raises(ConfigurationError, match="is not a choice"):
        exported(console_of(log), format="csv")


def hostile_log() -> WrittenLog:
    store = MemoryBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(store)
    log.create_topic("t")
    for record in HOSTILE:
        log.append("t", 0, [record])
    log.append("t", 0, some_records(1), append_time_ms=START_MS + 5)
    log.flush()
    return log


def test_lines_of_hostile_records_say_what_was_sent() -> None:
    body = bytes(exported(console_of(hostile_log())).body)
    lines = body.split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == len(HOSTILE) + 1
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", body.decode())
    for line, record in zip(lines, HOSTILE, strict=False):
        parsed = json_line(line)
        assert (parsed.key, parsed.value, parsed.timestamp_ms) == (
            record.key,
            record.value,
            record.timestamp,
        )
        sent = [
            (name, text.encode() if isinstance(text, str) else text)
            for name, text in parsed.headers
        ]
        assert sent == [tuple(header) for header in record.headers]


def test_rows_of_hostile_records_have_the_schema_of_replay() -> None:
    made = exported(console_of(hostile_log()), format="parquet")
    table = pq.read_table(pa.BufferReader(made.body))
    assert table.schema.equals(arrow_schema(COLUMNS))
    assert table["key"].to_pylist()[:-1] == [record.key for record in HOSTILE]
    assert table["value"].to_pylist()[:-1] == [record.value for record in HOSTILE]
    assert table["timestampType"].to_pylist() == [0] * len(HOSTILE) + [1]
    assert table["headers"].to_pylist()[2:4] == [None, [{"key": "a\nb", "value": b""}] * 2]
    limit = (2**63 - 1) // 1000 * 1000
    assert table["timestamp"].cast(pa.int64()).to_pylist()[3:5] == [-limit, limit]


@pytest.mark.parametrize(
    "topic",
    ["../../etc/passwd", '"; filename="x.exe', "a\r\nset-cookie: x=1", "-rf", ".", "ż" * 300, ""],
)
def test_the_name_of_a_file_is_safe(topic: str) -> None:
    name = file_name(topic, 0, SearchReport[Any](3, 9, SearchEnd.PARTITION), "jsonl")
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}", name)
    assert name.endswith("-0-offsets-3-to-8.jsonl")


async def test_an_export_is_an_attachment_with_the_headers_of_the_console(log: WrittenLog) -> None:
    app = application(console_of(log), hosts=["localhost"])
    status, headers, body = await answer(app, "/messages/export?topic=t&seek=oldest")
    assert (status, headers["content-type"]) == (200, "application/x-ndjson")
    assert headers["content-disposition"] == 'attachment; filename="t-0-offsets-0-to-39.jsonl"'
    assert headers["content-length"] == str(len(body.encode()))
    assert SECURITY_HEADERS.items() <= headers.items()
    assert body.count("\n") == RECORDS


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("topic=x", 404),
        ("topic=t&partition=9", 400),
        ("topic=t&format=x", 400),
        ("topic=t&path=$..a", 400),
        ("topic=t&seek=offset&offset=99", 404),
        ("topic=t&key=" + "x" * 3_000, 400),
    ],
)
async def test_an_error_of_an_export_is_a_page(log: WrittenLog, query: str, status: int) -> None:
    app = application(console_of(log), hosts=["localhost"])
    found, headers, body = await answer(app, f"/messages/export?{query}")
    assert (found, headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert SECURITY_HEADERS.items() <= headers.items()
    assert "content-disposition" not in headers
    assert "<h1" in body


async def test_an_export_that_is_not_read_holds_its_slot_for_a_time(log: WrittenLog) -> None:
    slots, sent, reads = ExportSlots(1), list[Message](), asyncio.Event()
    made = MessageFile("x", "text/plain", {}, b"x" * 200_000)

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) == 2:
            reads.set()
            await asyncio.Event().wait()

    async def one() -> None:
        async with slots.one(wait_s=PATIENCE_S):
            await send_export(made, send, send_s=0.2)

    slow = asyncio.create_task(one())
    await asyncio.wait_for(reads.wait(), PATIENCE_S)
    with pytest.raises(PagesBusyError, match="EXPORTS_IN_FLIGHT_MAX"):
        async with slots.one(wait_s=0.01):
            pass
    await asyncio.wait_for(slow, PATIENCE_S)
    assert [message.get("more_body") for message in sent] == [None, True]
    async with slots.one(wait_s=0.01):
        pass


async def test_a_console_makes_no_more_exports_than_its_limit(log: WrittenLog) -> None:
    console = console_of(log, exports_in_flight_max=1, page_wait_ms_max=10)
    app = application(console, hosts=["localhost"])
    begun, leave = asyncio.Event(), asyncio.Event()

    async def slow_app(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_slowly(message: Message) -> None:
            begun.set()
            await leave.wait()
            await send(message)

        await app(scope, receive, send_slowly)

    target = "/messages/export?topic=t"
    slow = asyncio.create_task(answer(slow_app, target))
    await asyncio.wait_for(begun.wait(), PATIENCE_S)
    status, headers, body = await answer(app, target)
    assert (status, headers["retry-after"]) == (503, "2")
    assert "BUCKETLOG_CONSOLE_EXPORTS_IN_FLIGHT_MAX" in body
    leave.set()
    assert (await asyncio.wait_for(slow, PATIENCE_S))[0] == 200
    assert (await answer(app, target))[0] == 200
