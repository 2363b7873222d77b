"""Searches for records in the console: their limits, hostile batches, and the newest matches."""

from collections.abc import Callable

import pytest

from bucketlog.console.message_pages import messages, record
from bucketlog.console.page_query import PageQuery
from bucketlog.console.page_templates import environment
from bucketlog.console.record_rows import RecordRow
from bucketlog.console.record_search import (
    RecordFilter,
    SearchEnd,
    SearchLimits,
    SearchReport,
    search,
    search_newest,
)
from bucketlog.log_format.batch import Codec
from bucketlog.log_format.records import DecodedRecord, Header, encode_batch
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.traced_memory import TracedMemory
from tests.rigs.written_log import START_MS, WrittenLog, some_records
from tests.rigs.written_tier import Batch, WrittenTier, batches_in
from tests.unit.test_console_log import (
    LIMITS,
    PREVIEWS,
    clock,
    console_of,
    view_of,
    with_bad_records,
)
from tests.unit.test_verify import IDENTITY

MANY_HEADERS = 300_000
ALL = RecordFilter()


@pytest.fixture
def log() -> WrittenLog:
    store = MemoryBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    written = WrittenLog(store)
    written.create_topic("t")
    return written


@pytest.fixture
def tiered(log: WrittenLog) -> WrittenLog:
    """20 batches of 3 records, of which 12 are in objects of the tier; gaps between some."""
    found: list[Batch] = []
    key = log.partition("t", 0)
    for number in range(20):
        log.append("t", 0, some_records(3, tag=str(number)), codec=Codec.ZSTD)
        found += [batch for at, batch in batches_in(log.flush()) if at == key]
        log.next_offset[key] += 7 * (number % 4 == 3)
    tier = WrittenTier(log)
    first = 0
    for batch in found[:12]:
        tier.split(key, [batch], first)
        first = batch.next_offset
    log.flush()
    return log


def add_bad_batch(log: WrittenLog) -> None:
    key = log.partition("t", 0)
    offset = log.next_offset.get(key, 0)
    good = encode_batch([DecodedRecord(offset, 0, None, b"x" * 100, ())])
    log.append_batch(key, with_bad_records(good))
    log.next_offset[key] = offset + 1


def found_in(
    log: WrittenLog,
    start: int,
    limits: SearchLimits = LIMITS,
    *,
    wanted: RecordFilter = ALL,
    newest: bool = False,
    now_s: Callable[[], float] | None = None,
) -> SearchReport[RecordRow]:
    key = log.partition("t", 0)
    part = view_of(log).parts([key])[key]
    return (search_newest if newest else search)(
        log.bucket, part, start, wanted, limits, PREVIEWS, seals=None, now_s=now_s or clock(0)
    )


def offsets(report: SearchReport[RecordRow]) -> list[int]:
    return [row.offset for row in report.rows]


@pytest.mark.parametrize("seek", ["oldest", "newest", "time"])
def test_a_page_builds_no_headers(log: WrittenLog, seek: str, traced_memory: TracedMemory) -> None:
    many = DecodedRecord(0, START_MS, b"k", b"v", (Header("", b""),) * MANY_HEADERS)
    log.append("t", 0, [many], codec=Codec.ZSTD)
    log.flush()
    console = console_of(log)
    query = PageQuery({"topic": "t", "seek": seek, "time": str(START_MS)})
    messages(console, query)
    with traced_memory.below(8 * MANY_HEADERS):
        messages(console, query)
    (row,) = messages(console, query)["report"].rows
    assert row.headers == MANY_HEADERS


def test_a_record_builds_the_headers_that_it_shows(
    log: WrittenLog, traced_memory: TracedMemory
) -> None:
    many = DecodedRecord(0, START_MS, b"k", b"v", (Header("n", b"1"),) * MANY_HEADERS)
    log.append("t", 0, [many], codec=Codec.ZSTD)
    log.flush()
    console = console_of(log, record_headers_max=7)
    query = PageQuery({"topic": "t", "offset": "0"})
    shown = record(console, query)
    assert (len(shown["headers"]), shown["headers_hidden"]) == (7, MANY_HEADERS - 7)
    with traced_memory.below(12 * MANY_HEADERS):
        record(console, query)


def test_the_time_is_checked_inside_of_a_batch(log: WrittenLog) -> None:
    log.append("t", 0, some_records(5_000))
    log.flush()
    limits = LIMITS._replace(seconds=5, records=10_000, batch=LIMITS.batch._replace(records=5_000))
    wanted = RecordFilter(value=b"nowhere")
    report = found_in(log, 0, limits, wanted=wanted, now_s=clock(0, 4, 6))
    assert (report.end, report.next_offset, report.records) == (SearchEnd.TIME, 2_048, 2_048)
    report = found_in(log, report.next_offset, limits, wanted=wanted)
    assert (report.end, report.records) == (SearchEnd.PARTITION, 5_000 - 2_048)


def test_a_search_ends_at_its_records_and_continues(log: WrittenLog) -> None:
    log.append("t", 0, some_records(6))
    log.append("t", 0, some_records(6))
    log.flush()
    report = found_in(log, 0, LIMITS._replace(records=8))
    assert (report.end, report.next_offset, offsets(report)) == (
        SearchEnd.RECORDS,
        8,
        list(range(8)),
    )
    assert offsets(found_in(log, 8, LIMITS._replace(records=8))) == [8, 9, 10, 11]


def test_a_batch_of_too_many_records_names_the_setting(log: WrittenLog) -> None:
    log.append("t", 0, some_records(6))
    log.append("t", 0, some_records(2))
    log.flush()
    console = console_of(log, batch_records_max=5)
    report = messages(console, PageQuery({"topic": "t"}))["report"]
    (bad,) = report.unreadable
    assert (bad.first, bad.end) == (0, 6)
    assert "BUCKETLOG_CONSOLE_BATCH_RECORDS_MAX" in bad.reason
    assert offsets(report) == [6, 7]


@pytest.mark.parametrize("seek", ["oldest", "newest"])
def test_bad_batches_are_named_up_to_a_limit_and_counted(log: WrittenLog, seek: str) -> None:
    log.append("t", 0, some_records(1))
    for _ in range(5):
        add_bad_batch(log)
    log.flush()
    console = console_of(log, unreadable_batches_max=2)
    query = PageQuery({"topic": "t", "seek": seek})
    values = messages(console, query)
    assert len(values["report"].unreadable) == 2
    assert values["report"].unreadable_count == 5
    template = environment().get_template("messages.html")
    shared = {"root": "", "page_name": "messages", "navigation": (), "theme": "", "themes": ()}
    page = template.render(
        may_change=False,
        **shared,
        **values,
        query=query,
        place="",
        now_ms=0,
        at="",
        limits=console.settings,
    )
    assert "3 more batches cannot be read" in page
    assert page.count("cannot be read") == 3


def test_a_bad_batch_that_two_windows_touch_is_named_once(log: WrittenLog) -> None:
    log.append("t", 0, some_records(3))
    key = log.partition("t", 0)
    spread = [DecodedRecord(offset, 0, None, b"x" * 50, ()) for offset in range(3, 23)]
    log.append_batch(key, with_bad_records(encode_batch(spread)))
    log.next_offset[key] = 23
    log.append("t", 0, some_records(3))
    log.flush()
    report = found_in(log, 99, LIMITS._replace(rows=5), newest=True)
    assert offsets(report) == [1, 2, 23, 24, 25]
    assert [bad.first for bad in report.unreadable] == [3]
    assert report.unreadable_count == 1


@pytest.mark.parametrize(
    "wanted", [RecordFilter(), RecordFilter(b"key-1"), RecordFilter(b"", b"1-value")]
)
def test_the_newest_are_the_last_matches(tiered: WrittenLog, wanted: RecordFilter) -> None:
    known = offsets(found_in(tiered, 0, LIMITS._replace(rows=1_000), wanted=wanted))
    end = known[-1] + 9
    assert len(known) > 5
    for before in range(end):
        for rows in (1, 4, 50):
            report = found_in(
                tiered, before, LIMITS._replace(rows=rows), wanted=wanted, newest=True
            )
            earlier = [offset for offset in known if offset < before]
            assert offsets(report) == earlier[-rows:]
            expected = SearchEnd.ROWS if len(earlier) >= rows else SearchEnd.PARTITION
            assert report.end is expected


def test_the_newest_with_a_filter_are_found_far_back(log: WrittenLog) -> None:
    log.append("t", 0, [DecodedRecord(0, START_MS, b"wanted", b"v", ())])
    for _ in range(60):
        log.append("t", 0, some_records(10))
    log.flush()
    query = {"topic": "t", "key": "wanted", "rows": "5"}
    shown = messages(console_of(log), PageQuery(query))
    assert offsets(shown["report"]) == [0]
    assert shown["older"] is None
    cut = messages(console_of(log, scan_records_max=100), PageQuery(query))
    assert (cut["report"].end, offsets(cut["report"])) == (SearchEnd.RECORDS, [])
    assert 400 < cut["report"].begin < 600
    assert cut["older"] == {"before": cut["report"].begin}


@pytest.mark.parametrize("limit", ["records", "bytes", "seconds"])
def test_searching_older_again_and_again_misses_no_match(log: WrittenLog, limit: str) -> None:
    for number in range(40):
        log.append("t", 0, some_records(10, tag=str(number)))
    log.flush()
    wanted, rows = RecordFilter(b"key-2"), 100
    limits = {
        "records": LIMITS._replace(rows=rows, records=150),
        "bytes": LIMITS._replace(rows=rows, bytes=4_000),
        "seconds": LIMITS._replace(rows=rows, seconds=5),
    }[limit]
    known = offsets(found_in(log, 0, LIMITS._replace(rows=1_000), wanted=wanted))
    before, found, rounds = 400, list[int](), 0
    while before > 0:
        now_s = clock(*range(1_000)) if limit == "seconds" else clock(0)
        report = found_in(
            log,
            before,
            limits,
            wanted=wanted,
            newest=True,
            now_s=now_s,
        )
        missed: list[int] = []
        at = report.next_offset
        while at < before:
            further = found_in(log, at, LIMITS._replace(rows=1_000), wanted=wanted)
            missed += [offset for offset in offsets(further) if offset < before]
            at = further.next_offset
        found = [*offsets(report), *missed, *found]
        assert report.begin < before
        before, rounds = report.begin, rounds + 1
    assert found == known
    assert rounds > 1
