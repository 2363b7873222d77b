"""A log of a few segments and a plan to split it, for tests of what carries it out."""

from itertools import count

from bucketlog.log_format.model import Buffer, SegmentId, TopicIdPartition, WaitingSegment
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.tier_plan import PartitionRange, SplitPlan
from tests.rigs.written_log import ReservedSegment, WrittenLog, some_records

PARTITIONS = 3


class SplitLog:
    """Topic `t` of three partitions, in every segment a batch or two of two of them, and `other`,
    which no plan takes. `batches` are those of the plan."""

    def __init__(self, segments: int = 6, *, records: int = 3) -> None:
        self.bucket = MemoryBucket()
        self.log = WrittenLog(self.bucket)
        self.log.create_topic("t", PARTITIONS)
        self.log.create_topic("other")
        self.log.flush()
        self.records = records
        self.written: list[ReservedSegment] = []
        for at in range(segments):
            for number in (at % PARTITIONS, (at + 1) % PARTITIONS):
                for _ in range(1 + at % 2):
                    self.log.append("t", number, some_records(records, tag=f"{at}-{number}"))
            self.log.append("other", 0, some_records(1))
            self.written.append(self.log.flush())
        self.batches: dict[TopicIdPartition, list[bytes]] = {}

    def plan(self, below: int = 0, first: int = 0, last: int | None = None) -> SplitPlan:
        """Of those segments. The log starts at offset `below`, the tier ends with the batch before
        the one that holds it."""
        tier_end = below - below % self.records
        chosen = self.written[first:last]
        ranges: dict[TopicIdPartition, PartitionRange] = {}
        self.batches = {}
        for reserved in chosen:
            for part in reserved.index.partitions:
                if part.partition.topic_id != self.log.topics["t"][0]:
                    continue
                for row in part.batches:
                    if row.next_offset > below:
                        data = reserved.data[row.position : row.position + row.length]
                        mine = self.batches.setdefault(part.partition, [])
                        mine.append(data)
                        ranges[part.partition] = PartitionRange(
                            tier_end, below, row.next_offset, len(mine), sum(map(len, mine))
                        )
        waiting = [
            WaitingSegment(each.index.segment, len(each.data), each.index.created_ms)
            for each in chosen
        ]
        return SplitPlan(tuple(waiting), ranges)

    def objects(self, plan: SplitPlan) -> list[tuple[SegmentId, Buffer]]:
        return [
            (each.segment, self.bucket.get(keys.segment(each.segment)).data)
            for each in plan.segments
        ]


class Ids:
    """16 hexadecimal digits, never twice the same unless it begins `again`."""

    def __init__(self) -> None:
        self._count = count(1)

    def __call__(self) -> str:
        return f"{next(self._count):016x}"

    def again(self) -> None:
        self._count = count(1)
