"""Rows of a search in the console, up to their size: from either end, no match is missed."""

from typing import NamedTuple

import pytest

from bucketlog.console.kept_rows import KeptRows, RowRoom
from bucketlog.console.record_search import (
    RecordFilter,
    SearchEnd,
    SearchReport,
    search,
    search_newest,
)
from bucketlog.log_format.batch import BatchHeader
from bucketlog.log_format.records import RecordSpans
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.written_log import WrittenLog, some_records
from tests.unit.test_console_log import LIMITS, clock, view_of
from tests.unit.test_verify import IDENTITY

RECORDS = 24
LARGE_OFFSET, LARGE_BYTES = 10, 50
TIME_LIMITS = LIMITS._replace(row_bytes=1 << 40, seconds=5, rows=RECORDS)


class SizedRow(NamedTuple):
    """Rows of one byte, and of `LARGE_BYTES` for one of the records."""

    offset: int
    size_bytes: int


def sized(batch: BatchHeader, payload: bytes, record: RecordSpans) -> SizedRow:
    return SizedRow(record.offset, LARGE_BYTES if record.offset == LARGE_OFFSET else 1)


@pytest.fixture
def log() -> WrittenLog:
    """A log with 8 batches of 3 records."""
    store = MemoryBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    written = WrittenLog(store)
    written.create_topic("t")
    for number in range(RECORDS // 3):
        written.append("t", 0, some_records(3, tag=str(number)))
    written.flush()
    return written


def found_in(
    log: WrittenLog, start: int, row_bytes: int, *, newest: bool = False, end: int = RECORDS
) -> SearchReport[SizedRow]:
    key = log.partition("t", 0)
    part = view_of(log).parts([key])[key]
    limits = LIMITS._replace(rows=RECORDS, row_bytes=row_bytes)
    if newest:
        return search_newest(
            log.bucket, part, start, RecordFilter(), limits, sized, seals=None, now_s=clock(0)
        )
    return search(
        log.bucket, part, start, RecordFilter(), limits, sized, seals=None, now_s=clock(0), end=end
    )


def offsets(report: SearchReport[SizedRow]) -> list[int]:
    return [row.offset for row in report.rows]


@pytest.mark.parametrize("row_bytes", [1, 4, 5, 9])
def test_a_search_ends_at_the_size_of_its_rows(log: WrittenLog, row_bytes: int) -> None:
    for start in range(RECORDS):
        report = found_in(log, start, row_bytes)
        end = min(start + row_bytes, RECORDS)
        if start <= LARGE_OFFSET < end:
            end = LARGE_OFFSET
        assert (offsets(report), report.next_offset) == (list(range(start, end)), end)
        expected = SearchEnd.PARTITION if end == RECORDS else SearchEnd.ROW_BYTES
        assert report.end is expected


@pytest.mark.parametrize("row_bytes", [1, 4, 5, 9])
def test_the_newest_rows_are_kept_up_to_their_size(log: WrittenLog, row_bytes: int) -> None:
    for before in range(1, RECORDS + 1):
        report = found_in(log, before, row_bytes, newest=True)
        begin = max(before - row_bytes, 0)
        if begin <= LARGE_OFFSET < before:
            begin = LARGE_OFFSET + 1
        assert (offsets(report), report.begin) == (list(range(begin, before)), begin)
        assert report.next_offset == before
        assert report.end is (SearchEnd.ROW_BYTES if begin else SearchEnd.PARTITION)


def test_a_search_ends_before_an_offset(log: WrittenLog) -> None:
    for end in range(3, RECORDS + 5):
        report = found_in(log, 2, LARGE_BYTES + RECORDS, end=end)
        until = min(end, RECORDS)
        assert (offsets(report), report.next_offset) == (list(range(2, until)), until)
        assert report.end is SearchEnd.PARTITION


def test_a_look_at_the_clock_follows_large_rows(log: WrittenLog) -> None:
    key = log.partition("t", 0)
    report = search(
        log.bucket,
        view_of(log).parts([key])[key],
        0,
        RecordFilter(),
        TIME_LIMITS,
        lambda batch, payload, record: SizedRow(record.offset, 1 << 20),
        seals=None,
        now_s=clock(0, 6),
    )
    assert (report.end, offsets(report)) == (SearchEnd.TIME, [0])


def test_no_row_before_a_dropped_one_is_kept() -> None:
    kept: KeptRows[SizedRow] = KeptRows(RowRoom(10, 20))
    kept.add(SizedRow(1, 1))
    later: KeptRows[SizedRow] = KeptRows(RowRoom(10, 20))
    for row in (SizedRow(2, 30), SizedRow(3, 1)):
        later.add(row)
    kept.add_all(later)
    assert [row.offset for row in kept.rows] == [3]
    assert (kept.begin, kept.size_bytes) == (3, 1)
