"""Bounded searches of the page Messages: records of one partition from an offset on, or before an
offset.

Invariants: a search ends at a number or a size of rows, at a number of records, at a number of
stored bytes, or after a time. The first of these limits ends the search, and the report names this
limit. The time is also checked inside a batch. Records are looked at one at a time, and only their
rows are kept. A batch that cannot be read is reported in its place, and the search continues after
it.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Generic, NamedTuple

from bucketlog.console.kept_rows import KeptRows, R, RecordToRow, RowRoom
from bucketlog.console.value_test import ValueTest
from bucketlog.log_format.batch import BatchHeader
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import MAX_OFFSET, Buffer
from bucketlog.log_format.records import RecordSpans, record_spans, records_payload
from bucketlog.log_reader.batch_scan import ScannedBatch, scan_batches
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.encryption.partition_seals import PartitionSeals
from bucketlog.tiered_storage.log_cut import ReadablePartition

RECORDS_PER_LOOK = 1_024
"""Records between two looks at the clock."""
WORK_BYTES_PER_LOOK = 256 * 1024
"""Bytes of parsed values and of rows between two looks at the clock."""
WIDENING = 4
"""Growth of the window of offsets that a search for the newest records reads at once."""
WIDENING_SHARE = 1 / 16
"""A window grows if the one before took no more than this part of each limit."""


class SearchEnd(StrEnum):
    """Why a search ended."""

    PARTITION = "partition"
    ROWS = "rows"
    RECORDS = "records"
    BYTES = "bytes"
    ROW_BYTES = "row_bytes"
    TIME = "time"


class BatchLimits(NamedTuple):
    decompressed_bytes: int
    records: int


class SearchLimits(NamedTuple):
    """The limits of one search. `unreadable` is the number of batches that the report describes,
    and `row_bytes` the size of all rows."""

    rows: int
    records: int
    bytes: int
    seconds: float
    batch: BatchLimits
    unreadable: int
    row_bytes: int = sys.maxsize


class RecordFilter(NamedTuple):
    """The bytes that the key and the value of a record must contain; empty bytes match every
    record. `json` is a test of the value."""

    key: bytes = b""
    value: bytes = b""
    json: ValueTest | None = None

    def matches(self, payload: bytes, record: RecordSpans) -> bool:
        return (
            _has(payload, record.key, self.key)
            and _has(payload, record.value, self.value)
            and (self.json is None or self.json.matches(payload, record.value))
        )


def _has(payload: bytes, span: tuple[int, int] | None, part: bytes) -> bool:
    return not part or (span is not None and payload.find(part, *span) >= 0)


class UnreadableBatch(NamedTuple):
    """A batch with the offsets from `first` to before `end`, at the byte `position` of the object
    `key`."""

    first: int
    end: int
    key: str
    position: int
    reason: str


@dataclass(slots=True)
class SearchReport(Generic[R]):
    """The result of a search of the offsets from `begin` to before `next_offset`. `rows` are in the
    order of their offsets."""

    begin: int
    next_offset: int
    end: SearchEnd = SearchEnd.PARTITION
    rows: list[R] = field(default_factory=list)
    unreadable: list[UnreadableBatch] = field(default_factory=list)
    unreadable_count: int = 0
    batches: int = 0
    records: int = 0
    stored_bytes: int = 0


def search(
    bucket: SyncBucket,
    part: ReadablePartition,
    start: int,
    wanted: RecordFilter,
    limits: SearchLimits,
    make_row: RecordToRow[R],
    *,
    seals: PartitionSeals | None,
    now_s: Callable[[], float],
    until_s: float = inf,
    end: int = MAX_OFFSET + 1,
) -> SearchReport[R]:
    """Return the first matching records from `start` to before `end`. Raises
    `CorruptObjectError`, the bucket's errors, and those of `seals`."""
    first = max(start, part.log_start)
    report: SearchReport[R] = SearchReport(first, first)
    run = _SearchRun(bucket, part, wanted, limits, make_row, seals, now_s, until_s, report)
    window = run.window(first, end, RowRoom(limits.rows, limits.row_bytes), keeps_last=False)
    report.rows = list(window.rows)
    report.end = window.end
    report.next_offset = window.next_offset
    if window.end is SearchEnd.PARTITION:
        report.next_offset = max(first, min(part.end_offset, end))
    return report


def search_newest(
    bucket: SyncBucket,
    part: ReadablePartition,
    before: int,
    wanted: RecordFilter,
    limits: SearchLimits,
    make_row: RecordToRow[R],
    *,
    seals: PartitionSeals | None,
    now_s: Callable[[], float],
    until_s: float = inf,
) -> SearchReport[R]:
    """Return the last matching records before the offset `before`. Windows of offsets are searched
    as a whole, the newest window first. Raises the errors of `search`."""
    end = max(min(before, part.end_offset), part.log_start)
    report: SearchReport[R] = SearchReport(end, end)
    run = _SearchRun(bucket, part, wanted, limits, make_row, seals, now_s, until_s, report)
    _search_windows(run, report)
    report.unreadable.sort()
    return report


def _search_windows(run: "_SearchRun[R]", report: SearchReport[R]) -> None:
    begin = end = report.begin
    width = rows_max = run.limits.rows
    row_bytes = 0
    while begin > run.part.log_start:
        first = max(begin - width, run.part.log_start)
        taken = run.taken()
        room = RowRoom(rows_max - len(report.rows), run.limits.row_bytes - row_bytes)
        window = run.window(first, begin, room, keeps_last=True)
        if window.next_offset < begin and begin < end:
            report.end = window.end  # its rows are not the newest before `begin`
            return
        report.rows = [*window.rows, *report.rows]
        report.begin, report.end = window.begin, window.end
        row_bytes += window.row_bytes
        if window.next_offset < begin:
            report.next_offset = window.next_offset
            return
        if len(report.rows) == rows_max:
            report.begin, report.end = report.rows[0].offset, SearchEnd.ROWS
            return
        if window.begin > first:
            report.end = SearchEnd.ROW_BYTES
        elif window.end is SearchEnd.PARTITION and run.is_late():
            report.end = SearchEnd.TIME
        if report.end is not SearchEnd.PARTITION:
            return
        begin = first
        if run.taken() - taken <= WIDENING_SHARE:
            width *= WIDENING


class _SearchWindow(NamedTuple, Generic[R]):
    """The result of a search in a window of offsets. `rows` are all matches from `begin` on, or the
    last of these matches. The offsets before `next_offset` were searched."""

    rows: Sequence[R]
    row_bytes: int
    begin: int
    next_offset: int
    end: SearchEnd


@dataclass
class _SearchRun(Generic[R]):
    """One search over all its windows. `report` counts what the search has used of its limits."""

    bucket: SyncBucket
    part: ReadablePartition
    wanted: RecordFilter
    limits: SearchLimits
    make_row: RecordToRow[R]
    seals: PartitionSeals | None
    now_s: Callable[[], float]
    until_s: float
    report: SearchReport[R]

    def __post_init__(self) -> None:
        self.begun_s = self.now_s()
        self.until_s = min(self.begun_s + self.limits.seconds, self.until_s)
        self._made_bytes = 0
        self._looked = 0, 0

    def is_look_due(self) -> bool:
        """Whether to look at the clock: after `RECORDS_PER_LOOK` records, or after
        `WORK_BYTES_PER_LOOK` bytes of parsed values and of rows."""
        parsed = 0 if self.wanted.json is None else self.wanted.json.tested_bytes
        work = parsed + self._made_bytes
        records, work_before = self._looked
        if (
            self.report.records - records < RECORDS_PER_LOOK
            and work - work_before < WORK_BYTES_PER_LOOK
        ):
            return False
        self._looked = self.report.records, work
        return True

    def is_late(self) -> bool:
        return self.now_s() >= self.until_s

    def taken(self) -> float:
        """The largest share of a limit that the search has used until now."""
        report, limits = self.report, self.limits
        return max(
            report.stored_bytes / limits.bytes,
            report.records / limits.records,
            (self.now_s() - self.begun_s) / limits.seconds,
        )

    def window(self, first: int, end: int, room: RowRoom, *, keeps_last: bool) -> _SearchWindow[R]:
        """Search the offsets from `first` to before `end`. If the matches do not fit in `room`, the
        last matches are kept with `keeps_last`; else the window ends."""
        rows: KeptRows[R] = KeptRows(room)
        report, at = self.report, first
        for batch in scan_batches(self.bucket, self.part, first, seals=self.seals):
            if batch.header.base_offset >= end:
                break
            report.batches += 1
            report.stored_bytes += batch.length
            found: KeptRows[R] = KeptRows(room if keeps_last else rows.left())
            stop: tuple[int, SearchEnd] | None = None
            try:
                stop = self._search_batch(batch, first, end, found, keeps_last=keeps_last)
            except InvalidDataError as error:
                found = KeptRows(room)
                if batch.header.next_offset <= end or end == report.next_offset:
                    self._add_unreadable(batch, error)
            rows.add_all(found)
            at = min(max(at, batch.header.next_offset), end)
            if stop is None and report.stored_bytes >= self.limits.bytes:
                stop = at, SearchEnd.BYTES
            if stop is None and self.is_late():
                stop = at, SearchEnd.TIME
            if stop is not None:
                return _SearchWindow(rows.rows, rows.size_bytes, max(first, rows.begin), *stop)
        begin = max(first, rows.begin)
        return _SearchWindow(rows.rows, rows.size_bytes, begin, end, SearchEnd.PARTITION)

    def _search_batch(
        self,
        batch: ScannedBatch,
        first: int,
        end: int,
        found: KeptRows[R],
        *,
        keeps_last: bool,
    ) -> tuple[int, SearchEnd] | None:
        """Return the offset at which the search stops in this batch, and the reason. Return None if
        the search does not stop. Raises `InvalidDataError`."""
        if batch.header.is_control:
            return None
        report = self.report
        payload = batch_payload(batch.data, batch.header, self.limits.batch)
        for record in record_spans(payload, batch.header):
            if record.offset < first:
                continue
            if record.offset >= end:
                return None
            report.records += 1
            if self.wanted.matches(payload, record):
                left = found.left()
                if not keeps_last and not left.rows:
                    return record.offset, SearchEnd.ROWS
                row = self.make_row(batch.header, payload, record)
                self._made_bytes += row.size_bytes
                if not keeps_last and row.size_bytes > left.size_bytes:
                    return record.offset, SearchEnd.ROW_BYTES
                found.add(row)
            if report.records >= self.limits.records:
                return record.offset + 1, SearchEnd.RECORDS
            if self.is_look_due() and self.is_late():
                return record.offset + 1, SearchEnd.TIME
        return None

    def _add_unreadable(self, batch: ScannedBatch, error: InvalidDataError) -> None:
        self.report.unreadable_count += 1
        if len(self.report.unreadable) < self.limits.unreadable:
            header = batch.header
            place = header.base_offset, header.next_offset, batch.key, batch.position
            self.report.unreadable.append(UnreadableBatch(*place, str(error)))


def batch_payload(batch: Buffer, header: BatchHeader, limits: BatchLimits) -> bytes:
    """The records' bytes, decompressed. Raises `InvalidDataError`."""
    if header.record_count > limits.records:
        raise InvalidDataError(
            f"the batch has {header.record_count:,} records, {limits.records:,} are allowed",
            remedy="raise BUCKETLOG_CONSOLE_BATCH_RECORDS_MAX",
        )
    return bytes(records_payload(batch, header, max_decompressed_bytes=limits.decompressed_bytes))
