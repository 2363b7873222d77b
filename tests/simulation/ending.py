"""The last checks: what clients were told against what is in the bucket."""

from bucketlog.model import SegmentIndex, TopicPartition
from tests.simulation.bucket import PastStore
from tests.simulation.truth import decode
from tests.simulation.world import World
from tiered_storage import keys
from tiered_storage.chains import read_chains
from tiered_storage.segment import decode_footer


def committed(world: World) -> list[SegmentIndex]:
    """All segments that are committed, by ticket: of the chains as they were ever."""
    past = PastStore(world.store)
    found = []
    for chain in read_chains(list(past.list(keys.LOG))).values():
        for info in chain.committed:
            index = decode_footer(info.key, past.get(info.key).data, info.size_bytes)
            assert isinstance(index, SegmentIndex)
            found.append(index)
    return sorted(found, key=lambda index: index.ticket)


def records_of(world: World, log: list[SegmentIndex]) -> dict[TopicPartition, dict[int, bytes]]:
    found: dict[TopicPartition, dict[int, bytes]] = {}
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


async def check(world: World) -> None:
    log = committed(world)
    records = records_of(world, log)
    ends = {part: max(found, default=-1) + 1 for part, found in records.items()}

    def all_read() -> bool:
        return all(
            at >= ends.get(world.surface.partition("t", number), 0)
            for consumer in world.consumers
            for number, at in consumer.positions.items()
        )

    if not await world.until(all_read, 30.0):
        world.trace.violate("progress", "a consumer does not come to the end of the log")
    for consumer in world.consumers:
        consumer.note_ranges()
    world.truth.check(records)
