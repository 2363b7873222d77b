"""The last checks: what clients were told, and what brokers and readers show, against what is in
the bucket."""

import asyncio

from bucketlog.log_format.checkpoint import StoredBatch
from bucketlog.log_format.model import SegmentIndex, TopicId, TopicIdPartition
from bucketlog.metadata.checkpoint import partitions_contradiction, restored
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.view import View
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.checkpoint import decode_checkpoint
from tests.simulation.committed import committed
from tests.simulation.committed_transactions import check_transactions
from tests.simulation.consumers import Consumer
from tests.simulation.last_gap import leave_a_gap
from tests.simulation.readers import Reading, Shown, shown
from tests.simulation.tiers import TierFigures
from tests.simulation.truth import decode
from tests.simulation.world import TOPIC, World

PATIENCE_S = 30.0
STAMPS_S = 20.0
"""So long it may take at rest until readers of the bucket alone are shown past a void."""
Batches = dict[TopicIdPartition, list[StoredBatch]]


def records_of(world: World, log: list[SegmentIndex]) -> dict[TopicIdPartition, dict[int, bytes]]:
    found: dict[TopicIdPartition, dict[int, bytes]] = {}
    for index in log:
        data = world.store.history[keys.segment(index.segment)]
        for part in index.partitions:
            records = found.setdefault(part.partition, {})
            for row in part.batches:
                for offset, value in decode(data[row.position : row.position + row.length])[0]:
                    if offset in records:
                        world.trace.violate("given twice", f"offset {offset} of {part.partition}")
                    records[offset] = value
    return found


def batches_of(log: list[SegmentIndex]) -> Batches:
    found: Batches = {}
    for index in log:
        for part in index.partitions:
            rows = found.setdefault(part.partition, [])
            rows += [StoredBatch(index.segment, index.ticket, row) for row in part.batches]
    return found


async def check(world: World) -> None:
    """Nothing fails any more, no producer writes, and all brokers run."""
    for committer in world.committers:
        committer.is_ending = True
    for changer in world.changers:
        changer.is_ending = True
    for namesakes in world.namesakes:
        namesakes.is_ending = True
    for deleter in world.deleters:
        deleter.is_ending = True
    for keyed in world.keyed:
        keyed.is_ending = True
    if not await world.until(lambda: all(one.is_done for one in world.changers), PATIENCE_S):
        world.trace.violate("progress", "a topic is not created or deleted in time")
    for committer in world.committers:
        if not await committer.settle():
            world.trace.violate("progress", f"nobody tells what {committer.name} has committed")
    await check_transactions(world)
    if not await world.until(world.is_well, PATIENCE_S):
        world.trace.violate("progress", "not all brokers are well, although nothing fails")
    await leave_a_gap(world)
    log = committed(world)
    records = records_of(world, log)
    await _check_consumers(world, records)
    for keyed in world.keyed:
        if keyed.partition is not None:
            await keyed.check(records.get(keyed.partition, {}))
    world.truth.check(records)
    _check_facts(world, fold(log))
    _check_checkpoints(world)
    await _check_readers(world, log)
    await _check_views(world)
    TierFigures(world).count(committed(world))


async def _check_consumers(world: World, records: dict[TopicIdPartition, dict[int, bytes]]) -> None:
    ends = {part: max(found, default=-1) + 1 for part, found in records.items()}

    late = Consumer(
        "late", world.surface, world.random("late"), topic=TOPIC, partitions=world.sizes.partitions
    )  # reads all of it once more
    world.tasks.append(asyncio.create_task(late.run()))
    world.consumers.append(late)
    for consumer in world.consumers:
        consumer.stays = True

    def all_read() -> bool:
        return all(
            at >= ends.get(world.surface.partition(TOPIC, number), 0)
            for consumer in world.consumers
            for number, at in consumer.positions.items()
        )

    if not await world.until(all_read, PATIENCE_S):
        world.trace.violate("progress", "a consumer does not come to the end of the log")
    for consumer in world.consumers:
        consumer.note_ranges()
        consumer.is_ending = True
    world.truth.log_starts.check(committed(world), world.retention_bytes)


def _check_facts(world: World, state: LogState) -> None:
    for name, topic_id in world.surface.topics.items():
        if state.names.get(name) != topic_id:
            world.trace.violate("topics", f"{name} was created, and is not there")
    for topic in sorted(name for one in world.namesakes for name in one.told):
        if topic not in state.names:
            world.trace.violate("topics", f"somebody was told that {topic} is there: it is not")
    for changer in world.changers:
        there = state.names.get(changer.topic)
        if not changer.is_changing and there != changer.created and there not in changer.deleted:
            world.trace.violate("topics", f"{changer.topic}: {there!r}, not {changer.created!r}")
    for committer in world.committers:
        offsets = state.groups.get(committer.name, {})
        found = offsets.get(world.surface.partition(TOPIC, 0))
        if committer.committed >= 0 and (found is None or found.offset < committer.committed):
            world.trace.violate("committed offsets", f"{committer.name}: {found} in the log")


def _check_checkpoints(world: World) -> None:
    log = committed(world)  # as it is by now: compaction goes on
    for key, data in world.store.history.items():
        if not key.startswith(keys.CHECKPOINTS):
            continue
        checkpoint = decode_checkpoint(key, data)
        world.trace.count("checkpoints")
        below = [index for index in log if index.ticket < checkpoint.ticket]
        wanted, state = batches_of(below), fold(below)
        for partition in checkpoint.partitions:
            start = state.partitions[partition].batches_from
            rows = [b for b in wanted.get(partition, []) if b.row.next_offset > start]
            if list(checkpoint.batches(partition)) != rows:
                world.trace.violate("checkpoints", f"{key}: {partition}")
        found = restored(checkpoint)
        wrong = partitions_contradiction(found, state)
        if wrong is not None:
            world.trace.violate("checkpoints", f"{key}: {wrong}")
        if (found.dropped, found.swept_below) != (state.dropped, state.swept_below):
            world.trace.violate("checkpoints", f"{key}: what left tiers")
        for partition, rows in wanted.items():
            is_live = partition.topic_id in state.topics
            if rows and is_live and partition not in checkpoint.partitions:
                world.trace.violate("checkpoints", f"{key} lacks {partition}")


async def _check_readers(world: World, log: list[SegmentIndex]) -> None:
    final = batches_of(log)
    for reader in world.readers:
        reader.is_ending = True
        for reading in reader.readings:
            _check_reading(world, reading, final)
    deadline = world.loop.time() + STAMPS_S
    began = world.loop.time()  # a reading may take long, and shows what was there before it
    while (reason := await _not_shown(world)) and world.trace.violation is None:
        if began > deadline:
            world.trace.violate("bucket reader", f"at rest {reason}")
        await asyncio.sleep(1.0)
        began = world.loop.time()


async def _not_shown(world: World) -> str:
    """What a reader of the bucket alone withholds now; '' where it shows everything."""
    last = await world.readers[0].read()
    if last is None:
        return "it began again too often"
    log = committed(world)
    state = fold(log)
    topics = state.topics
    for partition, rows in batches_of(log).items():
        if partition.topic_id not in topics or partition in world.truth.compacted:
            continue
        if partition not in last.batches:
            return f"it does not show {partition}"
        found, wanted = last.batches[partition], _from_start(world, last, partition, rows)
        start = state.partitions[partition].log_start
        if last.starts[partition] != start:
            return f"it begins {partition} at {last.starts[partition]}, not {start}"
        if found != wanted:
            return f"it shows {len(found)} batches of {partition}, not {len(wanted)}"
    return ""


def _from_start(
    world: World, reading: Reading, partition: TopicIdPartition, rows: list[StoredBatch]
) -> list[Shown]:
    """What a reading of the partition's `rows` has to show."""
    start = reading.starts[partition]
    return [shown(world.store, b.segment, b.row) for b in rows if b.row.next_offset > start]


def _check_reading(world: World, reading: Reading, final: Batches) -> None:
    for partition, found in reading.batches.items():
        if partition in world.truth.compacted:
            continue
        end = reading.ends[partition]
        rows = [batch for batch in final.get(partition, []) if batch.row.base_offset < end]
        wanted = _from_start(world, reading, partition, rows)
        if found != wanted:
            world.trace.violate(
                "bucket reader",
                f"{reading.name} showed {set(found) - set(wanted)} of {partition}, "
                f"and not {set(wanted) - set(found)}",
            )


async def _check_views(world: World) -> None:
    """Every broker shows the same, and that is the fold of the log."""

    def differing() -> list[str]:
        expected = View()
        for index in committed(world):
            expected.apply(index)
        return [
            f"{broker.name}: {reason}"
            for broker in world.brokers
            for reason in [_difference(broker.view, expected)]
            if reason
        ]

    if not await world.until(lambda: not differing(), PATIENCE_S):
        world.trace.violate("views", "; ".join(differing()))


def _by_name(view: View) -> dict[str, tuple[TopicId, int]]:
    """What is independent of each other may become visible in any order."""
    return {topic.name: (topic.topic_id, topic.partitions) for topic in view.topics()}


def _difference(view: View | None, expected: View) -> str:
    if view is None:
        return "no view"
    shown_topics, wanted_topics = _by_name(view), _by_name(expected)
    if shown_topics != wanted_topics:
        names = [name for name, _ in shown_topics.items() ^ wanted_topics.items()]
        return f"topics {sorted(names)}"
    for topic in expected.topics():
        for number in range(topic.partitions):
            partition = TopicIdPartition(topic.topic_id, number)
            shown, wanted = view.log(partition), expected.log(partition)
            assert wanted is not None
            everything = wanted.ranges(0, 1 << 60, at_least_one=True)
            if shown is None or shown.ranges(0, 1 << 60, at_least_one=True) != everything:
                return f"{partition}"
            if shown.tier != wanted.tier:
                return f"the tier of {partition}"
            if view.log_start(partition) != expected.log_start(partition):
                return f"the log start of {partition}"
    if {g: dict(view.offsets(g)) for g in view.groups()} != {
        g: dict(expected.offsets(g)) for g in expected.groups()
    }:
        return "committed offsets"
    return ""
