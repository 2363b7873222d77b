"""Where logs begin: what was asked for, what everybody was shown, and what may be so.

Invariants that the log is held to: a log start is one that somebody asked for, or one that
retention may have chosen by the log alone; it never goes back, for any observer; what an answer to
DeleteRecords or a reading showed stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bucketlog.log_format.model import SegmentIndex, TopicId, TopicIdPartition
from bucketlog.metadata.facts import LogStartsMoved, TopicDeleted, decode_fact
from tests.simulation.trace import Trace

TO_THE_END = -1


class _Reset(NamedTuple):
    """Somebody who was at `at` was told that it is out of range."""

    who: str
    partition: TopicIdPartition
    at: int


@dataclass
class LogStarts:
    trace: Trace
    asked: dict[TopicIdPartition, set[int]] = field(default_factory=dict)
    told: dict[TopicIdPartition, int] = field(default_factory=dict)
    """The highest that anybody was told is the log start."""
    resets: list[_Reset] = field(default_factory=list)
    _shown: dict[tuple[str, TopicIdPartition], int] = field(default_factory=dict)

    def show(self, who: str, partition: TopicIdPartition, start: int) -> None:
        """`who` is somebody for whom it never goes back."""
        before = self._shown.get((who, partition), 0)
        if start < before:
            self.trace.violate("log start", f"{who} showed {before} of {partition}, now {start}")
        self._shown[who, partition] = start
        self.note(partition, start)

    def note(self, partition: TopicIdPartition, start: int) -> None:
        """Somebody was told so."""
        self.told[partition] = max(start, self.told.get(partition, 0))

    def reset(self, who: str, partition: TopicIdPartition, at: int) -> None:
        self.trace.count("log start: a consumer was below it")
        self.resets.append(_Reset(who, partition, at))

    # In the end ------------------------------------------------------------------------------

    def check(
        self, log: Sequence[SegmentIndex], retention_bytes: int
    ) -> dict[TopicIdPartition, int]:
        """`log` is all that is committed, in ticket order; says where its partitions begin."""
        starts: dict[TopicIdPartition, int] = {}
        batches: dict[TopicIdPartition, list[tuple[int, int, int]]] = {}
        gone: set[TopicId] = set()
        for index in log:
            for fact in map(decode_fact, index.facts):
                if isinstance(fact, TopicDeleted):
                    gone.add(TopicId(fact.topic_id.bytes))
                if not isinstance(fact, LogStartsMoved):
                    continue
                for topic_id, number, start in fact.partitions:
                    partition = TopicIdPartition(TopicId(topic_id.bytes), number)
                    if partition.topic_id in gone:
                        continue
                    there = batches.get(partition, [])
                    if not self._may_be(partition, start, there, retention_bytes):
                        self.trace.violate("log start", f"nobody wants {start} of {partition}")
                    starts[partition] = max(start, starts.get(partition, 0))
            for part in index.partitions:
                batches.setdefault(part.partition, []).extend(
                    (row.base_offset, row.next_offset, row.length) for row in part.batches
                )
        for partition, told in self.told.items():
            if told > starts.get(partition, 0) and partition.topic_id not in gone:
                self.trace.violate(
                    "log start", f"{told} of {partition} was shown, not {starts.get(partition, 0)}"
                )
        for who, partition, at in self.resets:
            if at >= starts.get(partition, 0):
                self.trace.violate("no reset", f"{who} at {at} of {partition}")
        return starts

    def _may_be(
        self,
        partition: TopicIdPartition,
        start: int,
        batches: Sequence[tuple[int, int, int]],
        retention_bytes: int,
    ) -> bool:
        """`batches` are those before the entry: base offset, next offset, bytes."""
        asked = self.asked.get(partition, set())
        end = batches[-1][1] if batches else 0
        if start > end:
            return False
        if start in asked:
            return True
        if TO_THE_END in asked and any(start == upto for _, upto, _ in batches):
            return True
        stays = sum(length for base, _, length in batches if base >= start)
        return 0 <= retention_bytes <= stays
