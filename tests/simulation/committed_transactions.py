"""What a log with transactions comes to, held against what copy jobs were told."""

import asyncio
from collections import defaultdict

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import SegmentIndex, TopicIdPartition
from bucketlog.log_format.records import decode_records
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.transactions import outcomes_in
from bucketlog.tiered_storage import keys
from tests.simulation.committed import committed
from tests.simulation.committed_consumers import CommittedConsumer
from tests.simulation.transactions import PARTITIONS, TOPIC, CopyJob
from tests.simulation.world import World

PATIENCE_S = 60.0


def has_moved_on(world: World, transactional_id: str, pair: tuple[int, int]) -> bool:
    """Whether the bucket says that another pair owns the id by now."""
    owner = fold(committed(world)).transactions.ids.get(transactional_id)
    return owner is not None and (owner.producer_id, owner.producer_epoch) != pair


def committed_values(
    world: World, log: list[SegmentIndex]
) -> dict[TopicIdPartition, list[tuple[int, bytes]]]:
    """Records of committed transactions in the order of the log, by each batch's next marker."""
    waiting: dict[tuple[TopicIdPartition, int], list[tuple[int, bytes]]] = defaultdict(list)
    found: dict[TopicIdPartition, list[tuple[int, bytes]]] = defaultdict(list)
    parts = [world.surface.partition(TOPIC, number) for number in range(PARTITIONS)]
    rows = [
        (part.partition, row, index)
        for index in log
        for part in index.partitions
        if part.partition in parts
        for row in part.batches
    ]
    for partition, row, index in sorted(rows, key=lambda each: (each[0], each[1].base_offset)):
        data = world.store.history[keys.segment(index.segment)]
        batch = data[row.position : row.position + row.length]
        header = read_header(batch)
        open_here = waiting[partition, header.producer_id]
        if not header.is_control:
            records = decode_records(batch, header)
            open_here += [(record.offset, record.value or b"") for record in records]
            continue
        if outcomes_in(index)[header.producer_id]:
            found[partition] += open_here
        open_here.clear()
    return {partition: sorted(values) for partition, values in found.items()}


async def check_transactions(world: World) -> None:
    """After all jobs have ended."""
    for job in world.copy_jobs:
        job.is_ending = True
    if not await world.until(lambda: all(job.is_done for job in world.copy_jobs), PATIENCE_S):
        left = [job.name for job in world.copy_jobs if not job.is_done]
        world.trace.violate("progress", f"copy jobs {left} are not done")
        return

    def is_stable() -> bool:
        state = fold(committed(world))
        return not state.transactions.parts and not state.transactions.pending

    if not await world.until(is_stable, PATIENCE_S):
        world.trace.violate("progress", "a transaction is open for longer than its timeout")
    log = committed(world)
    values, state = committed_values(world, log), fold(log)
    for shared in sorted({job.group for job in world.copy_jobs}):
        _check_copied(world, state, values, shared)
    _check_scenes(world, state)
    _check_told(world, values)
    await _check_shown(world, values, state)


async def _check_shown(
    world: World, values: dict[TopicIdPartition, list[tuple[int, bytes]]], state: LogState
) -> None:
    """What consumers of read_committed were shown, now and from the beginning."""
    late = CommittedConsumer(
        "late rc", world.surface, world.random("late rc"), topic=TOPIC, partitions=PARTITIONS
    )
    world.tasks.append(asyncio.create_task(late.run()))
    consumers = [*world.committed_consumers, late]
    ends = {
        number: state.partitions[world.surface.partition(TOPIC, number)].next_offset
        for number in range(PARTITIONS)
    }
    for consumer in consumers:
        consumer.stays = True

    def all_read() -> bool:
        return all(
            each.positions[number] >= end for each in consumers for number, end in ends.items()
        )

    if not await world.until(all_read, PATIENCE_S):
        told = {each.name: each.positions for each in consumers}
        world.trace.violate("progress", f"read_committed does not come to {ends}: {told}")
    for consumer in consumers:
        consumer.is_ending = True
        for number, shown in consumer.shown.items():
            wanted = values.get(world.surface.partition(TOPIC, number), [])
            if shown != wanted:
                extra = [row for row in shown if row not in wanted]
                missed = [row for row in wanted if row not in shown]
                world.trace.violate(
                    "read_committed",
                    f"{consumer.name} of {number}: too many {extra[:3]}, missing {missed[:3]}",
                )


def _check_copied(
    world: World,
    state: LogState,
    values: dict[TopicIdPartition, list[tuple[int, bytes]]],
    shared: str,
) -> None:
    """Each number once and in order, and the group's offset behind them."""
    numbers = []
    for partition in values:
        here = [
            int(value.split(b":")[1])
            for _, value in values[partition]
            if value.startswith(b"x%s:" % shared.encode())
        ]
        if here != sorted(set(here)):
            world.trace.violate("once and in order", f"{shared} of {partition}: {here[-20:]}")
        numbers += here
    offsets = state.groups.get(shared, {}).get(world.surface.partition(TOPIC, 0))
    end = 0 if offsets is None else offsets.offset
    if sorted(numbers) != list(range(end)):
        missing = sorted(set(range(end)) - set(numbers))
        extra = sorted(set(numbers) - set(range(end)))
        world.trace.violate(
            "atomic", f"{shared} ends at {end}: {missing[:5]} are missing, {extra[:5]} too many"
        )
    world.trace.events["copied"] += end


def _check_scenes(world: World, state: LogState) -> None:
    for client in world.scene_clients:
        found = state.groups.get(client.group, {}).get(world.surface.partition(TOPIC, 0))
        offset = 0 if found is None else found.offset
        if client.expected_offset is not None and offset != client.expected_offset:
            world.trace.violate(
                "atomic", f"{client.group} ends at {offset}, not {client.expected_offset}"
            )


def _check_told(world: World, values: dict[TopicIdPartition, list[tuple[int, bytes]]]) -> None:
    marks = {value.split(b":")[2] for rows in values.values() for _, value in rows}
    for job in (*world.copy_jobs, *world.scene_clients):
        for mark, is_commit in job.told:
            if (mark in marks) != is_commit:
                told = "committed" if is_commit else "aborted"
                world.trace.violate("outcomes", f"{mark!r} was told as {told}, and is not")


def watch(world: World, job: CopyJob) -> None:
    job.has_moved_on = lambda each, pair: has_moved_on(world, each, pair)
