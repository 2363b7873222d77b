"""The fold: from committed segments in ticket order to the state of the log. Pure.

One function serves recovery, views, checkpoints and Spark. Invariants: a topic's facts alternate
validly (a violation means that the log is not what the protocol writes, and stops the fold).
Batches and committed offsets of a deleted topic are dropped with it. A partition's batches arrive
in offset order and never overlap. A group's commits arrive in order. Commits for a deleted topic
are ignored, so a deletion may come before or after them. Entries about tiers (docs/format/tier.md)
of a deleted topic are ignored, too; such entries come in order among themselves.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from bucketlog.log_format.batch import CONTROL, OF_TRANSACTION
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
from bucketlog.log_format.transactions import PartitionTransactions
from bucketlog.metadata.acls import Acls
from bucketlog.metadata.client_quotas import ClientQuotas
from bucketlog.metadata.committed_offset import CommittedOffset, Offsets
from bucketlog.metadata.config_facts import ConfigsAltered
from bucketlog.metadata.data_keys import DataKeys
from bucketlog.metadata.delegation_tokens import DelegationTokens
from bucketlog.metadata.encryption_facts import DataKeyCreated
from bucketlog.metadata.facts import (
    GROUP_KINDS,
    Fact,
    GroupFact,
    LogStartsMoved,
    OffsetsCommitted,
    OffsetsForgotten,
    PartitionsAdded,
    ProducerInitialised,
    SwapPayload,
    TierFact,
    TiersSwapped,
    TiersSwept,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    TopicFact,
    TransactionalIdsForgotten,
    TransactionEnded,
    TransactionFact,
    TransactionOffsets,
    decode_fact,
    partition_of,
    topic_id_of,
)
from bucketlog.metadata.folded_offsets import FoldedOffsets
from bucketlog.metadata.producers import (
    LogClock,
    ProducedBatch,
    ProducerTable,
    is_idle,
    last_sequence,
)
from bucketlog.metadata.resource_configs import ResourceConfigs
from bucketlog.metadata.scram_credentials import ScramCredentials
from bucketlog.metadata.security_facts import AclFact, ClientQuotasAltered, CredentialFact
from bucketlog.metadata.share_facts import ShareFact
from bucketlog.metadata.share_groups import ShareGroups
from bucketlog.metadata.tier import DroppedObject, Swap, Tier
from bucketlog.metadata.token_facts import TokenFact
from bucketlog.metadata.transactions import Transactions, outcomes_of


@dataclass(frozen=True, slots=True)
class TopicState:
    topic_id: TopicId
    name: str
    partitions: int
    configs: dict[str, str]


@dataclass(slots=True)
class PartitionState:
    """`next_offset` is the end of the last committed batch; `log_start` moves by facts only."""

    next_offset: int = 0
    log_start: int = 0
    producers: ProducerTable = field(default_factory=ProducerTable)
    tier: Tier = field(default_factory=Tier)
    transactions: PartitionTransactions = field(default_factory=PartitionTransactions)

    @property
    def batches_from(self) -> int:
        """Batches that end at or before it are in log segments no more, or are gone."""
        return max(self.log_start, self.tier.end)

    @property
    def last_stable_offset(self) -> int:
        """The offset below which all transactions have ended. `next_offset` if no transaction is
        open."""
        return self.transactions.stable_end(self.next_offset, self.batches_from)


class LogState:
    """The folded state. `apply` takes committed segments in an order in which each comes after its
    dependencies: ticket order, or the order in which a sequencer made them visible.

    `keep_producers` is off where nobody will ask for duplicates (views, readers), `keep_groups`
    where nobody will ask for committed offsets (readers of records, activations).
    """

    def __init__(self, *, keep_producers: bool = True, keep_groups: bool = True) -> None:
        self._keep_producers = keep_producers
        self._keep_groups = keep_groups
        self.topics: dict[TopicId, TopicState] = {}
        self.names: dict[str, TopicId] = {}
        self.partitions: dict[TopicIdPartition, PartitionState] = {}
        self.offsets = FoldedOffsets()
        self.transactions = Transactions()
        self.scram_credentials = ScramCredentials()
        self.acls = Acls()
        self.client_quotas = ClientQuotas()
        self.data_keys = DataKeys()
        self.delegation_tokens = DelegationTokens()
        self.share_groups = ShareGroups()
        self.resource_configs = ResourceConfigs()
        self.dropped: list[DroppedObject] = []
        """Objects that left a tier and may still be there, in the order of the tickets of their
        segments. Those of one segment are in the order of its entries."""
        self.swept_below = Ticket(0, 0)
        """Jobs that were planned below it are over."""
        self.clock = LogClock()
        self.producers_since_ms = 0
        """Producers whose batches are all from before this time have been forgotten."""
        self.times_from_ms = 0
        """Times of producers before this time may be guesses (checkpoints of version 2)."""

    @property
    def groups(self) -> dict[str, Offsets]:
        """Committed offsets by group; a group without any is not here."""
        return self.offsets.by_group

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
            elif isinstance(fact, TransactionFact):
                self._apply_transaction_fact(index.segment, fact)
            elif isinstance(fact, CredentialFact):
                self.scram_credentials.apply(fact)
            elif isinstance(fact, AclFact):
                self.acls.apply(fact)
            elif isinstance(fact, ClientQuotasAltered):
                self.client_quotas.apply(fact)
            elif isinstance(fact, DataKeyCreated):
                self.data_keys.apply(fact, self.topics)
            elif isinstance(fact, TokenFact):
                self.delegation_tokens.apply(fact)
            elif isinstance(fact, ShareFact):
                self.share_groups.apply(fact, self.partitions)
            elif isinstance(fact, ConfigsAltered):
                self.resource_configs.apply(fact)
            else:
                self._apply_topic_fact(index.segment, index.ticket, fact)
        self.clock = self.clock.after(index.created_ms)
        outcomes = outcomes_of(index.segment, facts)
        if outcomes:
            self.transactions.check_markers(index, facts)
        for part in index.partitions:
            self._apply_batches(index.segment, part, outcomes)
        return facts

    def forget_producers(self, since_ms: int) -> None:
        """Forget the producers of each partition whose batches there are all from before
        `since_ms`. A time before that of the last call has no effect."""
        if since_ms <= self.producers_since_ms:
            return
        self.producers_since_ms = since_ms
        for state in self.partitions.values():
            for producer in [
                producer
                for producer, batches in state.producers.items()
                if is_idle(batches, since_ms)
            ]:
                del state.producers[producer]

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
                self.data_keys.forget_topic(topic_id)
                for number in range(known.partitions):
                    partition = TopicIdPartition(topic_id, number)
                    gone = self.partitions.pop(partition)
                    self._drop(ticket, partition, gone.tier.rows)
                    self.transactions.forget_partition(partition, gone.transactions)
                self.offsets.forget_topic(topic_id, known.partitions, self.transactions)
                self.share_groups.forget_topic(topic_id)
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
                configs = fact.applied_to(known.configs)
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
                        state.transactions.forget_below(state.batches_from)
            case TiersSwept():
                below = Ticket(*fact.below)
                del self.dropped[: bisect_left(self.dropped, below, key=attrgetter("ticket"))]
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
        self._note_dropped(
            ticket,
            [
                DroppedObject(ticket, TierObject(partition, start, name), False)
                for start, name in part.removed
            ],
        )
        self._drop(ticket, partition, state.tier.begin_at(state.log_start))
        state.transactions.forget_below(state.batches_from)

    def _drop(
        self,
        ticket: Ticket,
        partition: TopicIdPartition,
        rows: Iterable[TierRow],
        *,
        contents: bool = True,
    ) -> None:
        self._note_dropped(
            ticket,
            [
                DroppedObject(ticket, TierObject.of(partition, row), contents and row.manifest)
                for row in rows
            ],
        )

    def _note_dropped(self, ticket: Ticket, rows: list[DroppedObject]) -> None:
        """Views fold some segments after segments of later tickets."""
        if not self.dropped or self.dropped[-1].ticket <= ticket:
            self.dropped += rows
        else:
            at = bisect_right(self.dropped, ticket, key=attrgetter("ticket"))
            self.dropped[at:at] = rows

    def _apply_group_fact(self, fact: GroupFact) -> None:
        """A commit or a deletion outside of transactions also replaces or deletes earlier pending
        offsets of its partitions (Kafka: OffsetMetadataManager)."""
        rows = self.groups.setdefault(fact.group, {})
        match fact:
            case OffsetsCommitted():
                for row in fact.offsets:
                    partition = partition_of(row)
                    if partition in self.partitions:
                        committed = CommittedOffset(
                            row.offset,
                            row.leader_epoch,
                            row.metadata,
                            fact.committed_ms,
                            fact.expires_ms,
                        )
                        self.offsets.put(fact.group, rows, partition, committed)
                        for others in self.transactions.pending_at(fact.group, partition):
                            self.offsets.put(fact.group, others, partition, committed)
            case OffsetsForgotten(partitions=named):
                for partition in list(rows) if named is None else map(partition_of, named):
                    self.offsets.drop(fact.group, rows, partition)
                held = self.transactions.held(fact.group)
                gone = list(held) if named is None else map(partition_of, named)
                self.offsets.drop_pending(fact.group, gone, self.transactions)
        if not rows:
            del self.groups[fact.group]

    def _apply_transaction_fact(self, segment: SegmentId, fact: TransactionFact) -> None:
        match fact:
            case ProducerInitialised():
                self.transactions.initialise(segment, fact)
            case TransactionOffsets():
                rows = self.transactions.offsets_of(segment, fact)
                for row in fact.offsets:
                    partition = partition_of(row)
                    if partition in self.partitions:
                        pending = CommittedOffset(*row[2:], fact.at_ms, None)
                        self.offsets.put(fact.group, rows, partition, pending)
                        self.transactions.hold(fact.id, fact.group, partition)
            case TransactionEnded():
                for group, rows in self.transactions.end(segment, fact).items():
                    kept = self.groups.setdefault(group, {})
                    for partition, pending in list(rows.items()):
                        self.offsets.drop(group, rows, partition)
                        if fact.committed:
                            self.offsets.put(group, kept, partition, pending)
                    if not kept:
                        del self.groups[group]
            case TransactionalIdsForgotten():
                self.transactions.forget(segment, fact)

    def _apply_batches(
        self, segment: SegmentId, part: PartitionIndex, outcomes: Mapping[int, bool]
    ) -> None:
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
            if row.attributes & OF_TRANSACTION:
                self.transactions.note(part.partition, state.transactions, row, outcomes)
            if row.producer_id >= 0 and self._keep_producers and not row.attributes & CONTROL:
                self._note_producer(state, row)

    def _note_producer(self, state: PartitionState, row: BatchIndex) -> None:
        last = last_sequence(row.base_sequence, row.record_count)
        batch = ProducedBatch(
            row.producer_epoch, row.base_sequence, last, row.base_offset, self.clock.now_ms
        )
        state.producers.note(row.producer_id, batch)


def fold(segments: Iterable[SegmentIndex], *, onto: LogState | None = None) -> LogState:
    """Return the state after all `segments`, in any order. If a checkpoint comes before them,
    `onto` is its state, which changes. Raises `InvalidDataError`."""
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
