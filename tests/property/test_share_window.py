"""The window of a share-partition, against a model that keeps every record by itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.window import (
    Acknowledgement,
    AcknowledgeType,
    AcquiredRange,
    AcquireLimits,
    Extent,
    RecordState,
    ShareWindow,
    WindowLimits,
    refused_batches,
)
from bucketlog.metadata.share_groups import ShareBatch, overlaid

LIMITS = WindowLimits(locks=12, deliveries=3, lock_ms=10)
MEMBERS = ("ann", "bob")
LOG_END = 40


@dataclass
class Record:
    state: RecordState = RecordState.AVAILABLE
    deliveries: int = 0
    member: str = ""
    until_ms: int = 0

    @property
    def is_final(self) -> bool:
        return self.state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


@dataclass
class Model:
    start: int = 0
    records: list[Record] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.start + len(self.records)

    def at(self, offset: int) -> Record:
        return self.records[offset - self.start]

    def grow(self, last: int) -> None:
        while self.end <= last:
            self.records.append(Record())

    def advance(self) -> None:
        while self.records and self.records[0].is_final:
            del self.records[0]
            self.start += 1

    @property
    def in_flight(self) -> int:
        return sum(not each.is_final for each in self.records)

    @property
    def next_offset(self) -> int:
        free = (at for at, each in enumerate(self.records) if each.state == RecordState.AVAILABLE)
        return self.start + next(free, len(self.records))

    def acquire(
        self, member: str, extents: Sequence[Extent], wanted: AcquireLimits, now_ms: int
    ) -> list[tuple[int, int]]:
        """Offsets with their deliveries."""
        got: list[tuple[int, int]] = []
        at = self.next_offset
        for extent in extents:
            if extent.last < at:
                continue
            first = max(extent.first, at)
            is_full = first >= self.end and self.in_flight >= LIMITS.locks
            if len(got) >= wanted.records or is_full:
                break
            self.grow(first - 1)
            hidden = list(range(at, first))
            if not extent.delivered:
                self.grow(extent.last)
                hidden += range(first, extent.last + 1)
            for offset in hidden:
                if self.at(offset).state is RecordState.AVAILABLE:
                    self.at(offset).state = RecordState.ARCHIVED
            at = extent.last + 1
            cut = False
            for offset in range(first, extent.last + 1) if extent.delivered else ():
                is_over = len(got) >= wanted.records
                is_new = offset >= self.end
                if wanted.is_strict and (is_over or (is_new and self.in_flight >= LIMITS.locks)):
                    cut = True
                    break
                self.grow(offset)
                record = self.at(offset)
                if record.state is RecordState.AVAILABLE:
                    record.state, record.member = RecordState.ACQUIRED, member
                    record.deliveries += 1
                    record.until_ms = now_ms + LIMITS.lock_ms
                    got.append((offset, record.deliveries))
            if cut:
                break
        self.advance()
        return got

    def end_lock(self, record: Record, outcome: RecordState) -> None:
        if outcome is RecordState.AVAILABLE and record.deliveries >= LIMITS.deliveries:
            outcome = RecordState.ARCHIVED
        record.state, record.member, record.until_ms = outcome, "", 0

    def acknowledge(
        self, member: str, batches: Sequence[Acknowledgement], now_ms: int
    ) -> ErrorCode:
        if batches[-1].last >= self.end:
            return ErrorCode.invalid_request
        named: list[tuple[int, int]] = []
        for first, last, types in batches:
            if last < self.start:
                return ErrorCode.invalid_record_state
            kinds = [*types] * (last - first + 1) if len(types) == 1 else types
            named += [(first + at, kind) for at, kind in enumerate(kinds)]
        named = [(offset, kind) for offset, kind in named if offset >= self.start]
        for offset, _ in named:
            record = self.at(offset)
            if record.state is not RecordState.ACQUIRED or record.member != member:
                return ErrorCode.invalid_record_state
        outcomes = {
            AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
            AcknowledgeType.RELEASE: RecordState.AVAILABLE,
        }
        for offset, kind in named:
            if kind == AcknowledgeType.RENEW:
                self.at(offset).until_ms = now_ms + LIMITS.lock_ms
            else:
                outcome = outcomes.get(AcknowledgeType(kind), RecordState.ARCHIVED)
                self.end_lock(self.at(offset), outcome)
        self.advance()
        return ErrorCode.none

    def release(self, member: str | None, now_ms: int) -> None:
        for record in self.records:
            is_over = record.until_ms <= now_ms if member is None else record.member == member
            if record.state is RecordState.ACQUIRED and is_over:
                self.end_lock(record, RecordState.AVAILABLE)
        self.advance()

    def begin_at(self, log_start: int) -> None:
        if log_start > self.start:
            self.records = self.records[log_start - self.start :]
            self.start = log_start
            self.advance()

    def written(self) -> dict[int, tuple[int, int]]:
        """What a reload would find, if all is written."""
        return {
            self.start + at: (int(each.state), each.deliveries)
            for at, each in enumerate(self.records)
        }


def records_of(window: ShareWindow) -> list[Record]:
    found: list[Record] = []
    at = window.start
    for span in window.spans:
        assert span.first == at
        assert span.last >= span.first
        at = span.last + 1
        found += [
            Record(span.state, span.deliveries, span.member, span.until_ms)
            for _ in range(span.count)
        ]
    return found


@st.composite
def batches_of_a_log(draw: st.DrawFn) -> list[Extent]:
    found: list[Extent] = []
    at = 0
    while at < LOG_END:
        at += draw(st.sampled_from([0, 0, 0, 1, 3]))
        count = draw(st.integers(1, 7))
        found.append(Extent(at, at + count - 1, draw(st.integers(0, 5)) > 0))
        at += count
    return found


@st.composite
def acknowledgements(draw: st.DrawFn, start: int, end: int) -> list[Acknowledgement]:
    found: list[Acknowledgement] = []
    at = max(0, start - draw(st.integers(0, 2)))
    for _ in range(draw(st.integers(1, 3))):
        first = at + draw(st.integers(0, 3))
        last = first + draw(st.integers(0, 5))
        kinds = st.integers(0, 4)
        one = draw(st.booleans())
        count = last - first + 1
        types = [draw(kinds)] if one else draw(st.lists(kinds, min_size=count, max_size=count))
        found.append(Acknowledgement(first, last, types))
        at = last + 1
    return found if found[-1].last < end or draw(st.integers(0, 9)) == 0 else found[:1]


@settings(max_examples=300)
@given(st.data())
def test_every_record_is_as_in_the_model(data: st.DataObject) -> None:
    log = data.draw(batches_of_a_log())
    window, model, now_ms = ShareWindow(0), Model(), 0
    stored: tuple[ShareBatch, ...] = ()
    for _ in range(data.draw(st.integers(1, 25))):
        now_ms += data.draw(st.integers(0, 4))
        what = data.draw(st.sampled_from("aaaakkkkkrxlw"))
        changes: Sequence[ShareBatch] = ()
        member = data.draw(st.sampled_from(MEMBERS))
        if what == "a":
            assert window.may_acquire(LIMITS) is (
                model.next_offset < model.end or model.in_flight < LIMITS.locks
            )
            read_from = window.next_offset
            assert read_from == model.next_offset
            read = [each for each in log if each.last >= read_from][: data.draw(st.integers(0, 4))]
            wanted = AcquireLimits(
                data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9)), data.draw(st.booleans())
            )
            got = window.acquire(member, read, wanted, LIMITS, read_from=read_from, now_ms=now_ms)
            expected = model.acquire(member, read, wanted, now_ms)
            assert [
                (offset, each.deliveries)
                for each in got
                for offset in range(each.first, each.last + 1)
            ] == expected
            if wanted.is_strict:
                assert len(expected) <= wanted.records
        elif what == "k":
            batches = data.draw(acknowledgements(window.start, window.end))
            assert not refused_batches(batches, may_renew=True)
            outcome = window.acknowledge(member, batches, LIMITS, now_ms=now_ms)
            error = model.acknowledge(member, batches, now_ms)
            assert (outcome if isinstance(outcome, ErrorCode) else ErrorCode.none) is error
            changes = () if isinstance(outcome, ErrorCode) else outcome
        elif what == "r":
            changes = window.release(member, LIMITS)
            model.release(member, now_ms)
            assert not window.holds(member)
        elif what == "x":
            changes = window.expire(LIMITS, now_ms=now_ms)
            model.release(None, now_ms)
        elif what == "l":
            log_start = data.draw(st.integers(0, 6)) + window.start
            window.begin_at(log_start)
            model.begin_at(log_start)
        stored = overlaid(stored, changes, window.start)
        assert (window.start, window.end) == (model.start, model.end)
        assert records_of(window) == model.records
        assert window.in_flight == model.in_flight
        if what == "w":  # another leader takes over: what was written is there again
            window = ShareWindow(window.start, stored)
            kept = {
                offset: (batch.state, batch.deliveries)
                for batch in stored
                for offset in range(batch.first, batch.last + 1)
            }
            for offset, (state, deliveries) in model.written().items():
                is_final = state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)
                known = kept.get(offset)
                if is_final and known is not None:
                    assert known == (state, deliveries)
                if state == RecordState.ACQUIRED:
                    assert known is None or known == (0, deliveries - 1)
            model = Model(window.start, records_of(window))
            assert not any(record.member for record in model.records)


def test_ranges_of_a_response_are_joined_up_to_the_batch_size() -> None:
    window = ShareWindow(0)
    read = [Extent(at, at + 1, True) for at in range(0, 10, 2)]
    wanted = AcquireLimits(100, 4, False)
    got = window.acquire("m", read, wanted, LIMITS, read_from=0, now_ms=0)
    assert got == [AcquiredRange(0, 9, 1)] or [each[:2] for each in got] == [(0, 3), (4, 7), (8, 9)]


def test_a_record_is_archived_after_its_last_delivery() -> None:
    window = ShareWindow(5)
    for deliveries in range(1, LIMITS.deliveries + 1):
        read = [Extent(5, 6, True)]
        wanted = AcquireLimits(10, 10, False)
        got = window.acquire("m", read, wanted, LIMITS, read_from=5, now_ms=0)
        assert got == [AcquiredRange(5, 6, deliveries)]
        assert window.next_deadline_ms() == LIMITS.lock_ms
        changes = window.expire(LIMITS, now_ms=LIMITS.lock_ms)
    assert changes == [ShareBatch(5, 6, RecordState.ARCHIVED, LIMITS.deliveries)]
    assert (window.start, window.spans) == (7, [])


@pytest.mark.parametrize(
    ("batches", "refused"),
    [
        ([Acknowledgement(1, 3, [1])], False),
        ([Acknowledgement(1, 3, [1, 2, 3])], False),
        ([Acknowledgement(1, 3, [1, 2])], True),
        ([Acknowledgement(1, 3, [])], True),
        ([Acknowledgement(3, 1, [1])], True),
        ([Acknowledgement(-1, 1, [1])], True),
        ([Acknowledgement(1, 3, [4])], True),
        ([Acknowledgement(1, 3, [-1])], True),
        ([Acknowledgement(1, 3, [1]), Acknowledgement(3, 4, [1])], True),
    ],
)
def test_senseless_batches_are_refused(batches: list[Acknowledgement], refused: bool) -> None:
    assert refused_batches(batches, may_renew=False) is refused
