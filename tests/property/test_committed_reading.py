"""Readers of the bucket alone on random logs with transactions: exactly the committed records below
the last stable offset of a broker's view, before and after each split, with and without checkpoint,
and never less than before while the log grows."""

import random
from itertools import count

import pytest

from bucketlog.log_format.model import Ticket, TopicIdPartition
from bucketlog.log_reader.fetch import read_pieces
from bucketlog.log_reader.isolation import committed_only, transactions_of
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.metadata.partition_tiers import partition_tiers
from bucketlog.metadata.view import View
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.log_cut import ReadablePartition, readable
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.splitting import Split
from bucketlog.tiered_storage.tier_plan import CompactionSettings, plan_split
from tests.models.indexes import swap, swapped
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.transactional_log import OPEN_PRODUCER, TOPIC, TransactionalLog
from tests.rigs.written_log import START_MS, ReservedSegment, WrittenLog, some_records

SEEDS = range(12)
WINDOW = CompactionSettings(window_bytes=2_000, interval_ms=0, age_ms_min=0)


def shown(bucket: MemoryBucket, level: str) -> dict[int, list[tuple[int, bytes]]]:
    options = parse_options({"path": "file:///logs", "subscribe": TOPIC, "isolation.level": level})
    found: dict[int, list[tuple[int, bytes]]] = {}
    for task in planned_tasks(bucket, options):
        names = ["partition", "offset", "value"]
        for batch in read_pieces(bucket, task, names, max_decompressed_bytes=1 << 20):
            for number, offset, value in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                found.setdefault(number, []).append((offset, value))
    return found


def committed_parts(bucket: MemoryBucket) -> dict[TopicIdPartition, ReadablePartition]:
    snapshot = read_log(bucket, requests_in_flight=1)
    state = restored(snapshot.checkpoint)
    before = transactions_of(state)
    tiers = partition_tiers(fold(snapshot.segments, onto=state))
    return committed_only(snapshot, before, readable(snapshot, tiers), tiers)


def view_of(bucket: MemoryBucket) -> View:
    snapshot = read_log(bucket, requests_in_flight=1)
    return View.of(snapshot.segments, snapshot.checkpoint)


def split_once(planted: TransactionalLog, names: "count[int]") -> bool:
    """The oldest window, as a broker does it. False where nothing is left to split."""
    log, bucket = planted.log, planted.log.bucket
    view = view_of(bucket)  # type: ignore[arg-type]  # a bucket in memory
    logs = {partition: each.batches for partition, each in view.logs().items()}
    plan = plan_split(view.waiting, logs, settings=WINDOW, now_ms=2 * START_MS)
    if plan is None:
        return False
    split = Split(
        plan,
        new_name=lambda: keys.tier_name(Ticket(log.epoch, log.ticket), f"{next(names):016x}"),
        segment_bytes_target=500,
        written_ms=START_MS,
    )
    for waiting in plan.segments:
        for _ in split.take(waiting.segment, bucket.get(keys.segment(waiting.segment)).data):
            pass
    swaps = []
    for part in split.finish():
        for each in part.segments:
            assert bucket.create(keys.tier_object(each.there), each.parts)
        rows = [each.row for each in part.segments]
        swaps.append(swap(part.partition, part.start, part.end, *rows))
    log.fact(swapped(*swaps, planned=(log.epoch, log.ticket)))
    log.flush()
    return True


@pytest.mark.parametrize("seed", SEEDS)
def test_exactly_what_is_committed_is_shown(seed: int) -> None:
    bucket = MemoryBucket()
    planted = TransactionalLog(bucket, seed, steps=40)
    chance = random.Random(seed)
    committed = dict(planted.expected(committed_only=True))
    everything = dict(planted.expected(committed_only=False))
    assert shown(bucket, "read_uncommitted") == everything
    names = count()
    is_split = True
    while is_split:
        assert shown(bucket, "read_committed") == committed
        for partition, part in committed_parts(bucket).items():
            log = view_of(bucket).log(partition)
            assert log is not None
            assert part.end_offset == log.last_stable_offset
            assert part.end_offset == planted.partitions[partition.partition].stable_end
        visible = shown(bucket, "read_uncommitted")
        for number, rows in visible.items():
            assert set(committed[number]) <= set(rows) <= set(everything[number])
        if chance.random() < 0.5:
            write_checkpoint(bucket)
        is_split = split_once(planted, names)
    assert next(names) > 2
    planted.log.end_transaction(OPEN_PRODUCER, commit=chance.random() < 0.5)
    planted.log.flush()
    while split_once(planted, names):
        pass
    for part in committed_parts(bucket).values():
        assert not part.batches, "the last split has all of it"
    assert shown(bucket, "read_committed") == shown(bucket, "read_uncommitted")


def test_what_was_shown_stays_while_segments_are_in_flight() -> None:
    """Two writers, whose objects land late: no reader sees anything withdrawn or changed."""
    assert sum(map(_shown_while_growing, SEEDS[:6])) > 10


def _shown_while_growing(seed: int) -> int:
    """The number of records that were shown in the end."""
    chance = random.Random(seed)
    bucket = MemoryBucket()
    log = WrittenLog(bucket)
    log.create_topic(TOPIC, 2)
    log.flush()
    writers = [log.first_writer, log.register()]
    flying: list[tuple[ReservedSegment, int]] = []
    running: set[int] = set()
    before: dict[int, list[tuple[int, bytes]]] = {}
    for _ in range(30):
        producer_id = chance.randrange(7, 10)
        blocked = {each for _, each in flying}
        if producer_id not in blocked:  # the sequencer answers `wait`
            number = chance.randrange(2)
            if producer_id in running and chance.random() < 0.4:
                log.end_transaction(producer_id, commit=chance.random() < 0.5)
                running.discard(producer_id)
            else:
                log.append(
                    TOPIC, number, some_records(2), producer_id=producer_id, transactional=True
                )
                running.add(producer_id)
            flying.append((log.reserve(writers[producer_id % 2]), producer_id))
        while flying and chance.random() < 0.5:
            first = chance.choice([0, len(flying) - 1])
            writer = flying[first][0].index.segment.writer
            at = next(
                i for i, (each, _) in enumerate(flying) if each.index.segment.writer == writer
            )
            log.land(flying.pop(at)[0])
        now = shown(bucket, "read_committed")
        for number, rows in before.items():
            assert now.get(number, [])[: len(rows)] == rows
        before = now
    return sum(map(len, before.values()))
