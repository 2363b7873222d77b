"""Fetch and ListOffsets for consumers of `read_committed`: from log segments, from the tier, and
across the border between them while it moves."""

import asyncio
import random
from collections.abc import Sequence

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.log_format.control_batch import Marker, encode_marker
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.log_format.rewriting import left_out_batch
from bucketlog.tiered_storage.bucket import Body, Span, Suffix
from tests.models.indexes import end, initialise
from tests.models.isolation import shown_of
from tests.models.partition_batches import PARTITION
from tests.rigs.broker_rig import until
from tests.rigs.tiered_log import MIB, BucketAroundLog, FetchAnswer, TieredLog

COMMITTED = 1
LATEST, MAX_TIMESTAMP = -1, -3
START_MS = 1000


class TransactionalLog(TieredLog):
    """One batch or marker a segment. `fates`: by base offset of a batch, whether it is committed;
    None while its transaction is open."""

    def __init__(self, around: "type[BucketAroundLog] | None" = None, **wanted: int) -> None:
        super().__init__(around=around, **wanted)
        self.end = 0
        self.epochs: dict[int, int] = {}
        self.fates: dict[int, bool | None] = {}
        self.running: dict[int, list[int]] = {}
        self.batches: list[bytes] = []

    def add(self, producer_id: int | None = None, records: int = 1, filler: int = 0) -> int:
        """A plain batch, or one of the producer's transaction; its base offset."""
        facts = []
        if producer_id is not None and producer_id not in self.epochs:
            self.epochs[producer_id] = 0
            facts = [initialise(str(producer_id), producer_id)]
        rows = [
            DecodedRecord(self.end + at, START_MS + self.end + at, None, bytes(filler))
            for at in range(records)
        ]
        if producer_id is None:
            batch = encode_batch(rows)
        else:
            batch = encode_batch(
                rows,
                producer_id=producer_id,
                producer_epoch=self.epochs[producer_id],
                base_sequence=0,
                transactional=True,
            )
            self.running.setdefault(producer_id, []).append(self.end)
        self.fates[self.end] = None if producer_id is not None else True
        self.append([batch], facts=facts)
        self.batches.append(batch)
        self.end += records
        return self.end - records

    def finish(self, producer_id: int, *, commit: bool) -> None:
        epoch = self.epochs[producer_id]
        marker = encode_marker(
            Marker(commit, 1),
            base_offset=self.end,
            producer_id=producer_id,
            producer_epoch=epoch,
            timestamp_ms=START_MS + self.end,
        )
        self.append([marker], facts=[end(str(producer_id), producer_id, epoch, commit=commit)])
        self.batches.append(marker)
        self.end += 1
        self.epochs[producer_id] += 1
        for base in self.running.pop(producer_id, []):
            self.fates[base] = commit

    def split_to(self, stop: int) -> None:
        """As brokers split: without what is aborted, the last batch emptied if it is left out."""
        log = self.view.log(PARTITION)
        assert log is not None
        assert stop <= log.last_stable_offset
        kept = []
        for batch in self.batches:
            header = read_header(batch)
            if not log.batches_from < header.next_offset <= stop:
                continue
            if self.fates.get(header.base_offset, False):
                kept.append(batch)
            elif header.next_offset == stop:
                kept.append(left_out_batch(header))
        self.split(kept, log.batches_from, stop)

    def border(self) -> int:
        log = self.view.log(PARTITION)
        assert log is not None
        return log.last_stable_offset

    def committed(self, start: int = 0, stop: int | None = None) -> list[int]:
        """Base offsets of the batches that a consumer shows from `start` on."""
        stop = self.border() if stop is None else stop
        return [base for base, fate in self.fates.items() if fate and start <= base < stop]


def bases(headers: Sequence[BatchHeader], start: int) -> list[int]:
    return [each.base_offset for each in headers if each.record_count and each.base_offset >= start]


def end_of(found: FetchAnswer, offset: int) -> int:
    at = 0
    while at < len(found.data):
        header = read_header(found.data, at)
        at, offset = at + header.size_bytes, header.next_offset
    return offset


async def consume(log: TransactionalLog, offset: int, max_bytes: int) -> list[int]:
    """Base offsets that a consumer shows, up to the last stable offset."""
    shown: list[int] = []
    while True:
        found = await log.fetch(offset, max_bytes, isolation=COMMITTED)
        assert found.error is ErrorCode.none
        assert found.aborted is not None
        if not found.data:
            return shown
        shown += bases(shown_of(found.data, found.aborted), offset)
        offset = end_of(found, offset)
        assert offset <= found.last_stable_offset <= found.high_watermark


async def test_a_fetch_ends_at_the_last_stable_offset() -> None:
    log = TransactionalLog()
    log.add()
    opened = log.add(7)
    log.add()
    found = await log.fetch(0, isolation=COMMITTED)
    assert (found.last_stable_offset, found.high_watermark) == (opened, 3)
    assert end_of(found, 0) == opened
    assert found.aborted == []
    plain = await log.fetch(0)
    assert (plain.last_stable_offset, end_of(plain, 0), plain.aborted) == (opened, 3, None)
    for offset in (1, 2, 3):
        beyond = await log.fetch(offset, isolation=COMMITTED)
        assert (beyond.error, beyond.data) == (ErrorCode.none, b"")
    out = await log.fetch(4, isolation=COMMITTED)
    assert out.error is ErrorCode.offset_out_of_range


async def test_aborted_transactions_come_with_their_batches() -> None:
    log = TransactionalLog()
    first, second = log.add(7), log.add(8)
    log.add()
    log.finish(8, commit=False)
    log.finish(7, commit=False)
    log.add()
    found = await log.fetch(0, isolation=COMMITTED)
    assert found.aborted == [(7, first), (8, second)]
    size = len(log.batches[0])
    small = await log.fetch(0, size, isolation=COMMITTED)
    assert (end_of(small, 0), small.aborted) == (1, [(7, first)])
    later = await log.fetch(4, isolation=COMMITTED)
    assert later.aborted == [(7, first)]
    assert (await log.fetch(5, isolation=COMMITTED)).aborted == []
    assert await consume(log, 0, MIB) == [2, 5]


async def test_min_bytes_counts_what_may_be_answered() -> None:
    log = TransactionalLog()
    log.add()
    log.add(7, filler=1000)
    waiting = asyncio.create_task(log.fetch(0, wait_ms=60_000, min_bytes=500, isolation=COMMITTED))
    plain = await log.fetch(0, wait_ms=60_000, min_bytes=500)
    assert end_of(plain, 0) == 2
    assert not waiting.done()
    log.finish(7, commit=True)
    assert end_of(await waiting, 0) == 3


async def test_a_waiting_fetch_is_woken_by_a_marker() -> None:
    log = TransactionalLog()
    log.add(7)
    waiting = asyncio.create_task(log.fetch(0, wait_ms=60_000, isolation=COMMITTED))
    await until(lambda: bool(log.watchers._by_partition))
    log.add()
    assert not waiting.done()
    log.finish(7, commit=False)
    found = await waiting
    assert (end_of(found, 0), found.aborted) == (3, [(7, 0)])


async def test_latest_offsets_and_times() -> None:
    log = TransactionalLog()
    log.add()
    opened = log.add(7)
    log.add()
    none = (ErrorCode.none, -1, -1)
    assert await log.list_offset(LATEST) == (ErrorCode.none, 3, -1)
    assert await log.list_offset(LATEST, isolation=COMMITTED) == (ErrorCode.none, opened, -1)
    for timestamp in (START_MS + 1, MAX_TIMESTAMP):
        assert (await log.list_offset(timestamp))[1] > 0
        assert await log.list_offset(timestamp, isolation=COMMITTED) == none
    assert (await log.list_offset(START_MS, isolation=COMMITTED))[1] == 0
    log.finish(7, commit=True)
    assert (await log.list_offset(START_MS + 1, isolation=COMMITTED))[1] == opened


async def test_a_transaction_that_the_tier_left_out_is_not_told() -> None:
    """Without its marker, a consumer would drop the producer's next transaction as well."""
    log = TransactionalLog()
    log.add()
    log.add(7)
    log.finish(7, commit=False)
    log.add()
    kept = log.add(7)
    log.finish(7, commit=True)
    log.add()
    assert await consume(log, 0, MIB) == [0, 3, kept, 6]
    log.split_to(4)
    found = await log.fetch(0, isolation=COMMITTED)
    assert found.aborted == []
    assert await consume(log, 0, MIB) == [0, 3, kept, 6]


async def test_a_transaction_that_spans_the_border_is_told() -> None:
    log = TransactionalLog()
    log.add()
    log.add(7)
    log.add()
    log.add(7)
    log.finish(7, commit=False)
    kept = log.add(7)
    log.finish(7, commit=True)
    for border in (1, 2, 3, 4, 5):
        log.split_to(border)
        for offset in range(7):
            shown = await consume(log, offset, MIB)
            assert shown == [each for each in (0, 2, kept) if each >= offset]


class _SplitsWhileReading(BucketAroundLog):
    """The border moves while something is read: the first read of each object waits for it."""

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        body = await super().get(key, span)
        assert isinstance(self.log, MovingLog)
        moves, self.log.moves = self.log.moves, []
        for stop in moves:
            self.log.split_to(stop)
        return body


class MovingLog(TransactionalLog):
    def __init__(self) -> None:
        super().__init__(around=_SplitsWhileReading, ahead=0, history=0)
        self.moves: list[int] = []


@pytest.mark.parametrize("first_border", [0, 1, 2])
@pytest.mark.parametrize("last_border", [2, 3, 4, 6, 7])
async def test_the_border_moves_while_a_fetch_reads(first_border: int, last_border: int) -> None:
    """The aborted transactions in a response are of the planned batches, not of later ones."""
    log = MovingLog()
    log.add()
    log.add(7)
    log.finish(7, commit=False)
    log.add()
    kept = log.add(7)
    log.finish(7, commit=True)
    log.add()
    if first_border:
        log.split_to(first_border)
    log.moves = [last_border] if last_border > first_border else []
    assert await consume(log, 0, MIB) == [0, 3, kept, 6]


async def test_the_border_moves_while_the_tier_is_read_through() -> None:
    """One answer from the tier before the move, from the tier after it, and from a log segment."""
    log = MovingLog()
    log.add()
    log.add()
    log.add(7)
    log.finish(7, commit=False)
    log.add()
    kept = log.add(7)
    log.finish(7, commit=True)
    log.split_to(2)
    first = await log.fetch(0, len(log.batches[0]), isolation=COMMITTED)
    assert end_of(first, 0) == 1
    log.moves = [5]
    found = await log.fetch(1, isolation=COMMITTED)
    assert not log.moves
    assert found.aborted == []
    assert bases(shown_of(found.data, found.aborted), 1) == [1, 4, kept]


@pytest.mark.parametrize("seed", range(30))
async def test_a_consumer_shows_what_is_committed(seed: int) -> None:
    """Random logs, borders and sizes of answers."""
    chance = random.Random(seed)
    log = MovingLog()
    for _ in range(40):
        producer_id = chance.randrange(7, 11)
        what = chance.random()
        if what < 0.3:
            log.add(records=chance.randint(1, 3))
        elif what < 0.7:
            log.add(producer_id, chance.randint(1, 3))
        elif producer_id in log.running:
            log.finish(producer_id, commit=chance.random() < 0.5)
    ends = sorted(read_header(batch).next_offset for batch in log.batches)
    for _ in range(6):
        held = log.view.log(PARTITION)
        assert held is not None
        rest = [each for each in ends if held.batches_from < each <= log.border()]
        log.moves = sorted(chance.sample(rest, min(len(rest), chance.randint(0, 2))))
        offset = chance.randint(0, log.end)
        starts = [0, *ends]
        offset = max(each for each in starts if each <= offset)
        shown = await consume(log, offset, chance.choice([1, 200, 400, MIB]))
        assert shown == log.committed(offset)
