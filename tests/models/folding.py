"""The fold's offsets and dropped objects in their simplest form: each entry looks at everything."""

from bucketlog.log_format.model import SegmentIndex, Ticket, TopicIdPartition
from bucketlog.metadata.committed_offset import CommittedOffset, Offsets, offset_weight
from bucketlog.metadata.facts import (
    GroupFact,
    OffsetsCommitted,
    OffsetsForgotten,
    TierFact,
    TiersSwept,
    TopicCreated,
    TopicDeleted,
    TransactionEnded,
    TransactionOffsets,
    decode_fact,
    partition_of,
    topic_id_of,
)
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.tier import DroppedObject


class SimpleOffsets:
    """Committed and pending offsets. It knows topics by their creation, and no growth of topics:
    an offset counts if its topic exists."""

    def __init__(self) -> None:
        self.committed: dict[str, Offsets] = {}
        self.pending: dict[tuple[str, str], Offsets] = {}
        """By transactional id and group."""
        self._topics: set[bytes] = set()

    def apply(self, index: SegmentIndex) -> None:
        for fact in map(decode_fact, index.facts):
            match fact:
                case TopicCreated():
                    self._topics.add(topic_id_of(fact))
                case TopicDeleted():
                    self._topics.discard(topic_id_of(fact))
                    for rows in (*self.committed.values(), *self.pending.values()):
                        for partition in list(rows):
                            if partition.topic_id == topic_id_of(fact):
                                del rows[partition]
                case OffsetsCommitted() | OffsetsForgotten():
                    self._apply_group_fact(fact)
                case TransactionOffsets():
                    rows = self.pending.setdefault((fact.id, fact.group), {})
                    for row in fact.offsets:
                        if partition_of(row).topic_id in self._topics:
                            rows[partition_of(row)] = CommittedOffset(*row[2:], fact.at_ms, None)
                case TransactionEnded():
                    for name, group in list(self.pending):
                        if name == fact.id:
                            rows = self.pending.pop((name, group))
                            if fact.committed:
                                self.committed.setdefault(group, {}).update(rows)

    def _apply_group_fact(self, fact: GroupFact) -> None:
        committed = self.committed.setdefault(fact.group, {})
        pending = [rows for (_, group), rows in self.pending.items() if group == fact.group]
        if isinstance(fact, OffsetsCommitted):
            for row in fact.offsets:
                partition = partition_of(row)
                if partition.topic_id in self._topics:
                    value = CommittedOffset(*row[2:], fact.committed_ms, fact.expires_ms)
                    committed[partition] = value
                    for rows in pending:
                        if partition in rows:
                            rows[partition] = value
            return
        named = None if fact.partitions is None else set(map(partition_of, fact.partitions))
        for rows in (committed, *pending):
            for partition in list(rows):
                if named is None or partition in named:
                    del rows[partition]

    @property
    def by_group(self) -> dict[str, Offsets]:
        return {group: rows for group, rows in self.committed.items() if rows}

    @property
    def weight(self) -> int:
        every = (*self.committed.values(), *self.pending.values())
        return sum(offset_weight(each.metadata) for rows in every for each in rows.values())

    def held(self, group: str) -> set[TopicIdPartition]:
        return {each for (_, name), rows in self.pending.items() if name == group for each in rows}


class SimpleSweeps(LogState):
    """The fold, with dropped objects in the order of the entries, and searched by each sweep."""

    def _note_dropped(self, ticket: Ticket, rows: list[DroppedObject]) -> None:
        self.dropped += rows

    def _apply_tier_fact(self, ticket: Ticket, fact: TierFact) -> None:
        if isinstance(fact, TiersSwept):
            below = Ticket(*fact.below)
            self.dropped = [row for row in self.dropped if row.ticket >= below]
            self.swept_below = max(self.swept_below, below)
        else:
            super()._apply_tier_fact(ticket, fact)
