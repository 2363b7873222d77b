"""The records of a share-partition that are in flight: a pure state machine over ranges (KIP-932).

The window holds the offsets from `start` up to `end` as spans, side by side and without holes; each
span is in one state. Below `start`, all records are acknowledged or archived. At and after `end`,
no record was read yet. Invariants: a record is acquired by at most one member at a time; a record
that is acknowledged or archived is never acquired again; a request changes all records that it
names, or none. Records are counted by offsets: offsets without a record are archived when a read
shows that.

Source: Kafka's SharePartition.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.metadata.share_groups import ShareBatch

NOBODY = ""


class RecordState(IntEnum):
    """States of records, numbered as by Kafka's persister."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """Types of acknowledgements, numbered as in requests. A gap is an offset without a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Acknowledgement(NamedTuple):
    """An acknowledgement of a range. `types`: one for all offsets, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Extent(NamedTuple):
    """A record batch that was read. Control batches and aborted ones are not `delivered`."""

    first: int
    last: int
    delivered: bool


class AcquiredRange(NamedTuple):
    first: int
    last: int
    deliveries: int


class AcquireLimits(NamedTuple):
    """`records`: about as many are acquired, by whole batches; exactly as many at most if it
    `is_strict`. `batch_size`: ranges of a response are joined up to this number of records."""

    records: int
    batch_size: int
    is_strict: bool


class WindowLimits(NamedTuple):
    """`locks`: records that may be available or acquired at once. After `deliveries` deliveries a
    record that is not accepted is archived. `lock_ms`: how long a member keeps records."""

    locks: int
    deliveries: int
    lock_ms: int


@dataclass(slots=True)
class RecordSpan:
    """The offsets from `first` to `last`, both included, in one state. `until_ms` is when the lock
    ends."""

    first: int
    last: int
    state: RecordState
    deliveries: int
    member: str = NOBODY
    until_ms: int = 0

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def is_final(self) -> bool:
        return self.state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)

    def is_like(self, other: "RecordSpan") -> bool:
        return (self.state, self.deliveries, self.member, self.until_ms) == (
            other.state,
            other.deliveries,
            other.member,
            other.until_ms,
        )


class ShareWindow:
    """The window of a share-partition. Times are milliseconds, by a clock that never goes back."""

    def __init__(self, start: int, batches: Iterable[ShareBatch] = ()) -> None:
        self.start = start
        self.spans: list[RecordSpan] = []
        for batch in batches:
            if batch.last >= start:
                self._append(max(batch.first, self.end) - 1, RecordState.AVAILABLE, 0)
                self._append(batch.last, RecordState(batch.state), batch.deliveries)
        self._advance()

    # What there is ---------------------------------------------------------------------------

    @property
    def end(self) -> int:
        return self.spans[-1].last + 1 if self.spans else self.start

    @property
    def next_offset(self) -> int:
        """The first record that can be acquired, or the first that was never read."""
        free = (span.first for span in self.spans if span.state is RecordState.AVAILABLE)
        return next(free, self.end)

    @property
    def in_flight(self) -> int:
        """Number of records that are available or acquired."""
        return sum(span.count for span in self.spans if not span.is_final)

    def may_acquire(self, limits: WindowLimits) -> bool:
        """Return whether a read at `next_offset` can be of use."""
        return self.next_offset < self.end or self.in_flight < limits.locks

    def next_deadline_ms(self) -> int | None:
        """Return when the next lock ends; None if no record is locked."""
        locked = (span.until_ms for span in self.spans if span.state is RecordState.ACQUIRED)
        return min(locked, default=None)

    def holds(self, member: str) -> bool:
        return any(span.member == member for span in self.spans)

    # Acquire ---------------------------------------------------------------------------------

    def acquire(
        self,
        member: str,
        extents: Sequence[Extent],
        wanted: AcquireLimits,
        limits: WindowLimits,
        *,
        read_from: int,
        now_ms: int,
    ) -> list[AcquiredRange]:
        """Give records that were read from `read_from` on to a member. Offsets between the batches
        have no records."""
        until_ms, left = now_ms + limits.lock_ms, wanted.records
        found: list[AcquiredRange] = []
        at = max(read_from, self.start)
        for extent in extents:
            if extent.last < at:
                continue
            first = max(extent.first, at)
            if left <= 0 or not self._has_room(first, limits):
                break
            self._archive(at, first - 1)
            at = extent.last + 1
            if not extent.delivered:
                self._archive(first, extent.last)
                continue
            last = extent.last
            if wanted.is_strict:
                last = self._strict_end(first, last, left, limits)
            self._extend(last)
            for span in self._cut(first, last):
                if span.state is RecordState.AVAILABLE:
                    span.state, span.member = RecordState.ACQUIRED, member
                    span.deliveries, span.until_ms = span.deliveries + 1, until_ms
                    left -= span.count
                    _join(found, span, wanted.batch_size)
            if last < extent.last:
                break
        self._settle()
        return found

    def _has_room(self, offset: int, limits: WindowLimits) -> bool:
        return offset < self.end or self.in_flight < limits.locks

    def _strict_end(self, first: int, last: int, left: int, limits: WindowLimits) -> int:
        """Return the last offset up to which at most `left` records are acquired, of which at most
        as many are new as fit in."""
        for span in self._cut(first, min(last, self.end - 1)):
            if span.state is RecordState.AVAILABLE:
                if span.count > left:
                    return span.first + left - 1
                left -= span.count
                if not left:
                    return span.last
        room = min(left, max(limits.locks - self.in_flight, 0))
        return min(last, max(first, self.end) + room - 1)

    def _archive(self, first: int, last: int) -> None:
        """Archive the available offsets of this range, because no record is delivered for them."""
        if first > last:
            return
        self._extend(last)
        for span in self._cut(first, last):
            if span.state is RecordState.AVAILABLE:
                span.state = RecordState.ARCHIVED

    # Acknowledge -----------------------------------------------------------------------------

    def acknowledge(
        self,
        member: str,
        batches: Sequence[Acknowledgement],
        limits: WindowLimits,
        *,
        now_ms: int,
    ) -> list[ShareBatch] | ErrorCode:
        """The changes to write, all or nothing. The batches ascend and do not overlap. Offsets
        below the start are passed over."""
        if batches and batches[-1].last >= self.end:
            return ErrorCode.invalid_request
        for batch in batches:
            for span in self._overlapping(batch.first, batch.last):
                if span.state is not RecordState.ACQUIRED or span.member != member:
                    return ErrorCode.invalid_record_state
            if batch.last < self.start:
                return ErrorCode.invalid_record_state
        changes: list[ShareBatch] = []
        for batch in batches:
            for first, last, kind in _runs(batch):
                for span in self._cut(first, last):
                    if kind == AcknowledgeType.RENEW:
                        span.until_ms = now_ms + limits.lock_ms
                    else:
                        self._end_lock(span, _outcome(kind), limits, changes)
        self._settle()
        return changes

    def release(self, member: str, limits: WindowLimits) -> list[ShareBatch]:
        """Make the records of a member that is gone available. Returns the changes to write."""
        held = [span for span in self.spans if span.member == member]
        return self._release(held, limits)

    def expire(self, limits: WindowLimits, *, now_ms: int) -> list[ShareBatch]:
        """End the locks whose time is over. Returns the changes to write."""
        over = [
            span
            for span in self.spans
            if span.state is RecordState.ACQUIRED and span.until_ms <= now_ms
        ]
        return self._release(over, limits)

    def begin_at(self, log_start: int) -> None:
        """The log begins later: records below are gone."""
        if log_start > self.start:
            if log_start < self.end:
                self._split(log_start)
                self.spans = [span for span in self.spans if span.first >= log_start]
            else:
                self.spans.clear()
            self.start = log_start
            self._advance()

    def _release(self, spans: Iterable[RecordSpan], limits: WindowLimits) -> list[ShareBatch]:
        changes: list[ShareBatch] = []
        for span in spans:
            self._end_lock(span, RecordState.AVAILABLE, limits, changes)
        self._settle()
        return changes

    def _end_lock(
        self,
        span: RecordSpan,
        outcome: RecordState,
        limits: WindowLimits,
        changes: list[ShareBatch],
    ) -> None:
        if outcome is RecordState.AVAILABLE and span.deliveries >= limits.deliveries:
            outcome = RecordState.ARCHIVED
        span.state, span.member, span.until_ms = outcome, NOBODY, 0
        changes.append(ShareBatch(span.first, span.last, outcome, span.deliveries))

    # Spans -----------------------------------------------------------------------------------

    def _append(self, last: int, state: RecordState, deliveries: int) -> None:
        if last >= self.end:
            self.spans.append(RecordSpan(self.end, last, state, deliveries))

    def _extend(self, last: int) -> None:
        self._append(last, RecordState.AVAILABLE, 0)

    def _at(self, offset: int) -> int:
        """The row of the span with `offset`, which is in the window."""
        return bisect_right(self.spans, offset, key=lambda span: span.first) - 1

    def _overlapping(self, first: int, last: int) -> Sequence[RecordSpan]:
        first = max(first, self.start)
        return self.spans[self._at(first) : self._at(last) + 1] if first <= last else ()

    def _split(self, offset: int) -> None:
        """Cut the span that holds `offset`, so that a span begins there."""
        if not self.start < offset < self.end:
            return
        row = self._at(offset)
        span = self.spans[row]
        if span.first < offset:
            self.spans.insert(row + 1, replace(span, first=offset))
            span.last = offset - 1

    def _cut(self, first: int, last: int) -> Sequence[RecordSpan]:
        """The spans that are exactly those offsets, as far as they are in the window."""
        first, last = max(first, self.start), min(last, self.end - 1)
        if first > last:
            return ()
        self._split(first)
        self._split(last + 1)
        return self._overlapping(first, last)

    def _settle(self) -> None:
        """Join neighbours that are alike, and move the start."""
        kept: list[RecordSpan] = []
        for span in self.spans:
            if kept and kept[-1].is_like(span):
                kept[-1].last = span.last
            else:
                kept.append(span)
        self.spans = kept
        self._advance()

    def _advance(self) -> None:
        done = 0
        for span in self.spans:
            if not span.is_final:
                break
            done, self.start = done + 1, span.last + 1
        del self.spans[:done]


def _outcome(kind: int) -> RecordState:
    if kind == AcknowledgeType.ACCEPT:
        return RecordState.ACKNOWLEDGED
    return RecordState.AVAILABLE if kind == AcknowledgeType.RELEASE else RecordState.ARCHIVED


def _runs(batch: Acknowledgement) -> Iterable[tuple[int, int, int]]:
    """Return runs of offsets with the same type: first, last, type."""
    if len(batch.types) == 1:
        yield batch.first, batch.last, batch.types[0]
        return
    begun = 0
    for at in range(1, len(batch.types) + 1):
        if at == len(batch.types) or batch.types[at] != batch.types[begun]:
            yield batch.first + begun, batch.first + at - 1, batch.types[begun]
            begun = at


def _join(found: list[AcquiredRange], span: RecordSpan, batch_size: int) -> None:
    """Add a span to the ranges of the response."""
    last = found[-1] if found else None
    if (
        last is not None
        and last.last + 1 == span.first
        and last.deliveries == span.deliveries
        and last.last - last.first + 1 < batch_size
    ):
        found[-1] = last._replace(last=span.last)
    else:
        found.append(AcquiredRange(span.first, span.last, span.deliveries))


def refused_batches(batches: Sequence[Acknowledgement], *, may_renew: bool) -> bool:
    """Return whether batches of a request make no sense, as in Kafka's
    validateAcknowledgementBatches."""
    before = -1
    for first, last, types in batches:
        if first > last or first < 0 or first <= before or not types:
            return True
        if len(types) > 1 and last - first + 1 != len(types):
            return True
        highest = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
        if not all(0 <= kind <= highest for kind in types):
            return True
        before = last
    return False
