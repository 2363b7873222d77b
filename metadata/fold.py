"""The fold: from committed segments in ticket order to the state of the log. Pure.

One function serves recovery, views, checkpoints and Spark. Invariants: a topic's facts alternate
validly (a violation means that the log is not what the protocol writes, and stops the fold);
batches and committed offsets of a deleted topic are dropped with it; a partition's batches arrive
in offset order and never overlap. A group's commits arrive in order; those of a topic that is gone
by then are passed over, so that a deletion may come before or after them. What entries about tiers
(docs/format/tier.md) say of a topic that is gone is passed over, too; they come in order among
themselves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import (
    BatchIndex,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TierObject,
    TierRow,
    TopicId,
    TopicIdPartition,
)
from bucketlog.metadata.facts import (
    GROUP_KINDS,
    Fact,
    GroupFact,
    LogStartsMoved,
    OffsetsCommitted,
    OffsetsForgotten,
    PartitionsAdded,
    SwapPayload,
    TierFact,
    TiersSwapped,
    TiersSwept,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TopicFact,
    decode_fact,
    partition_of,
    topic_id_of,
)
from bucketlog.metadata.tier import DroppedObject, Swap, Tier

PRODUCER_BATCHES_KEPT = 5
"""As Kafka keeps: the batches of a producer in which a duplicate is recognised."""


@dataclass(frozen=True, slots=True)
class TopicState:
    topic_id: TopicId
    name: str
    partitions: int
    configs: dict[str, str]


class ProducedBatch(NamedTuple):
    """A batch as a producer's later duplicates are held against."""

    producer_epoch: int
    first_sequence: int
    last_sequence: int
    base_offset: int


@dataclass(slots=True)
class PartitionState:
    """`next_offset` is the end of the last committed batch; `log_start` moves by facts only."""

    next_offset: int = 0
    log_start: int = 0
    producers: dict[int, list[ProducedBatch]] = field(default_factory=dict)
    tier: Tier = field(default_factory=Tier)

    @property
    def batches_from(self) -> int:
        """Batches that end at or before it stand in log segments no more, or are gone."""
        return max(self.log_start, self.tier.end)


class CommittedOffset(NamedTuple):
    """Where a group goes on in a partition. Times are milliseconds since 1970; `expires_ms` only
    where the client chose it; `leader_epoch` -1 where it named none."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    expires_ms: int | None


def last_sequence(first: int, record_count: int) -> int:
    """Sequence numbers wrap to 0 after 2^31 - 1 (Kafka: DefaultRecordBatch.incrementSequence)."""
    return (first + record_count - 1) & 0x7FFFFFFF


def changed_configs(configs: Mapping[str, str], fact: TopicConfigured) -> dict[str, str]:
    """What is set after the fact."""
    before = {} if fact.replaces_all else configs
    after = {**before, **fact.configs}
    return {name: value for name, value in after.items() if value is not None}


class LogState:
    """The folded state. `apply` takes committed segments in an order in which each comes after
    its dependencies: ticket order, or the order in which a sequencer made them visible.

    `keep_producers` is off where nobody will ask for duplicates (views, readers), `keep_groups`
    where nobody will ask for committed offsets (readers of records, activations).
    """

    def __init__(self, *, keep_producers: bool = True, keep_groups: bool = True) -> None:
        self._keep_producers = keep_producers
        self._keep_groups = keep_groups
        self.topics: dict[TopicId, TopicState] = {}
        self.names: dict[str, TopicId] = {}
        self.partitions: dict[TopicIdPartition, PartitionState] = {}
        self.groups: dict[str, dict[TopicIdPartition, CommittedOffset]] = {}
        """Committed offsets by group; a group without any is not here."""
        self.dropped: list[DroppedObject] = []
        """Objects that left a tier and may still be there, in the order of the entries."""
        self.swept_below = Ticket(0, 0)
        """Jobs that were planned below it are over."""

    def apply(self, index: SegmentIndex) -> list[Fact]:
        """Fold one segment; returns the facts that are kept. Raises `InvalidDataError`."""
        entries = index.facts
        if not self._keep_groups:
            entries = tuple(entry for entry in entries if entry.kind not in GROUP_KINDS)
        facts = [fact for fact in map(decode_fact, entries) if fact is not None]
        for fact in facts:
            if isinstance(fact, OffsetsCommitted | OffsetsForgotten):
                self._apply_group_fact(fact)
            elif isinstance(fact, TiersSwapped | LogStartsMoved | TiersSwept):
                self._apply_tier_fact(index.ticket, fact)
            else:
                self._apply_topic_fact(index.segment, index.ticket, fact)
        for part in index.partitions:
            self._apply_batches(index.segment, part)
        return facts

    def _apply_topic_fact(self, segment: SegmentId, ticket: Ticket, fact: TopicFact) -> None:
        topic_id = topic_id_of(fact)
        known = self.topics.get(topic_id)
        match fact:
            case TopicCreated():
                if known is not None or fact.name in self.names:
                    raise InvalidDataError(f"{segment} creates topic {fact.name!r}, which exists")
                self.topics[topic_id] = TopicState(
                    topic_id, fact.name, fact.partitions, fact.configs
                )
                self.names[fact.name] = topic_id
                self._add_partitions(topic_id, 0, fact.partitions)
            case TopicDeleted():
                if known is None:
                    raise InvalidDataError(f"{segment} deletes topic {fact.name!r}, which is not")
                del self.topics[topic_id], self.names[known.name]
                for number in range(known.partitions):
                    partition = TopicIdPartition(topic_id, number)
                    self._drop(ticket, partition, self.partitions.pop(partition).tier.rows)
                self._forget_offsets_of(topic_id)
            case PartitionsAdded():
                if known is None or fact.partitions <= known.partitions:
                    raise InvalidDataError(f"{segment} adds partitions to {fact.name!r} wrongly")
                self.topics[topic_id] = TopicState(
                    topic_id, known.name, fact.partitions, known.configs
                )
                self._add_partitions(topic_id, known.partitions, fact.partitions)
            case TopicConfigured():
                if known is None:
                    raise InvalidDataError(
                        f"{segment} configures topic {fact.name!r}, which is not"
                    )
                configs = changed_configs(known.configs, fact)
                self.topics[topic_id] = TopicState(topic_id, known.name, known.partitions, configs)

    def _add_partitions(self, topic_id: TopicId, start: int, end: int) -> None:
        for partition in range(start, end):
            self.partitions[TopicIdPartition(topic_id, partition)] = PartitionState()

    def _apply_tier_fact(self, ticket: Ticket, fact: TierFact) -> None:
        match fact:
            case TiersSwapped():
                if Ticket(*fact.planned) >= self.swept_below:  # else the job was over
                    for part in fact.swaps:
                        self._apply_swap(ticket, part)
            case LogStartsMoved():
                for start in fact.partitions:
                    partition = partition_of(start)
                    state = self.partitions.get(partition)
                    if state is not None and start.log_start > state.log_start:
                        state.log_start = start.log_start
                        self._drop(ticket, partition, state.tier.begin_at(start.log_start))
            case TiersSwept():
                below = Ticket(*fact.below)
                self.dropped = [row for row in self.dropped if row.ticket >= below]
                self.swept_below = max(self.swept_below, below)

    def _apply_swap(self, ticket: Ticket, part: SwapPayload) -> None:
        partition = partition_of(part)
        state = self.partitions.get(partition)
        added = tuple(TierRow(*row) for row in part.added)
        swap = Swap(part.start, part.end, part.replaced, added, part.cleaned_to)
        gone = state.tier.swap(swap) if state is not None else None
        if state is None or gone is None:
            return
        self._drop(ticket, partition, gone, contents=False)
        for start, name in part.removed:
            self.dropped.append(DroppedObject(ticket, TierObject(partition, start, name), False))
        self._drop(ticket, partition, state.tier.begin_at(state.log_start))

    def _drop(
        self,
        ticket: Ticket,
        partition: TopicIdPartition,
        rows: Iterable[TierRow],
        *,
        contents: bool = True,
    ) -> None:
        self.dropped += [
            DroppedObject(ticket, TierObject.of(partition, row), contents and row.manifest)
            for row in rows
        ]

    def _apply_group_fact(self, fact: GroupFact) -> None:
        rows = self.groups.setdefault(fact.group, {})
        match fact:
            case OffsetsCommitted():
                for row in fact.offsets:
                    partition = partition_of(row)
                    if partition in self.partitions:
                        rows[partition] = CommittedOffset(
                            row.offset,
                            row.leader_epoch,
                            row.metadata,
                            fact.committed_ms,
                            fact.expires_ms,
                        )
            case OffsetsForgotten(partitions=None):
                rows.clear()
            case OffsetsForgotten(partitions=tuple(gone)):
                for each in gone:
                    rows.pop(partition_of(each), None)
        if not rows:
            del self.groups[fact.group]

    def _forget_offsets_of(self, topic_id: TopicId) -> None:
        for group, rows in list(self.groups.items()):
            for partition in [key for key in rows if key.topic_id == topic_id]:
                del rows[partition]
            if not rows:
                del self.groups[group]

    def _apply_batches(self, segment: SegmentId, part: PartitionIndex) -> None:
        if not part.batches:
            return
        state = self.partitions.get(part.partition)
        if state is None:
            raise InvalidDataError(f"{segment} writes to {part.partition}, which does not exist")
        for row in part.batches:
            if row.base_offset < state.next_offset:
                raise InvalidDataError(
                    f"{segment} gives offset {row.base_offset} of {part.partition} again",
                    remedy="two clusters wrote to one prefix: give each its own",
                )
            state.next_offset = row.next_offset
            if row.producer_id >= 0 and self._keep_producers:
                self._note_producer(state, row)

    @staticmethod
    def _note_producer(state: PartitionState, row: BatchIndex) -> None:
        kept = state.producers.setdefault(row.producer_id, [])
        kept.append(
            ProducedBatch(
                row.producer_epoch,
                row.base_sequence,
                last_sequence(row.base_sequence, row.record_count),
                row.base_offset,
            )
        )
        del kept[:-PRODUCER_BATCHES_KEPT]


def fold(segments: Iterable[SegmentIndex], *, onto: LogState | None = None) -> LogState:
    """The state after all `segments`, in whatever order they come; where a checkpoint is before
    them, `onto` is its state, which changes. Raises `InvalidDataError`."""
    state = LogState() if onto is None else onto
    last: SegmentIndex | None = None
    for index in sorted(segments, key=lambda index: index.ticket):
        if last is not None and index.ticket == last.ticket:
            raise InvalidDataError(
                f"{last.segment} and {index.segment} have one ticket, {tuple(index.ticket)}",
                remedy="two clusters wrote to one prefix: give each its own",
            )
        state.apply(index)
        last = index
    return state
