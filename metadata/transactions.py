"""Transactional ids, pending offsets and open transactions in the fold. Pure.

Invariants: entries of one id are in the order in which the sequencer took them. Ends and offsets
name the pair that began the transaction. This pair owns the id, unless a later init kept the
transaction. Offsets of a transaction are pending until its end, which moves them to the group or
drops them. After an end, no partition has an open transaction of its producer. Entries that break
an invariant do not come from the protocol, and stop the fold. Source: KIP-98, KIP-447, KIP-890,
KIP-939; Kafka's TransactionMetadata and OffsetMetadataManager.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

from bucketlog.log_format.batch import CONTROL
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import (
    BatchIndex,
    SegmentId,
    SegmentIndex,
    TopicIdPartition,
)
from bucketlog.log_format.transactions import PartitionTransactions
from bucketlog.metadata.committed_offset import Offsets
from bucketlog.metadata.fact_model import FactKind
from bucketlog.metadata.facts import (
    Fact,
    ProducerInitialised,
    TransactionalIdsForgotten,
    TransactionEnded,
    TransactionKept,
    TransactionOffsets,
    decode_fact,
)

Outcome: TypeAlias = Literal["none", "committed", "aborted"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class TransactionalId(NamedTuple):
    """The owner of a transactional id, and how its last transaction ended. `serial`: the number of
    its transactions that have ended. The `last` pair is -1 if no request may use it. If an init has
    kept the open transaction, the `txn` pair began this transaction; otherwise, the pair is -1."""

    producer_id: int
    producer_epoch: int
    last_producer_id: int
    last_producer_epoch: int
    outcome: Outcome
    by: str
    serial: int
    version: int
    timeout_ms: int
    two_phase: bool
    updated_ms: int
    txn_producer_id: int = -1
    txn_producer_epoch: int = -1

    @property
    def is_kept(self) -> bool:
        return self.txn_producer_id >= 0

    @property
    def transaction(self) -> tuple[int, int]:
        """The pair in the batches, markers and entries of the id's transaction."""
        if self.is_kept:
            return self.txn_producer_id, self.txn_producer_epoch
        return self.producer_id, self.producer_epoch


@dataclass(slots=True)
class Transactions:
    """`ids` by transactional id. `pending`: offsets of transactions that have not ended, by id and
    group; a group stays, even if its rows were deleted with their topics. `parts`: by producer id,
    the partitions in which the producer has an open transaction."""

    ids: dict[str, TransactionalId] = field(default_factory=dict)
    pending: dict[str, dict[str, Offsets]] = field(default_factory=dict)
    parts: dict[int, set[TopicIdPartition]] = field(default_factory=dict)
    _pending_ids: dict[str, set[str]] = field(default_factory=dict)
    """For each group, the transactional ids that have pending offsets of the group."""
    _holders: dict[str, dict[TopicIdPartition, set[str]]] = field(default_factory=dict)
    """For each group and partition, the transactional ids that have a pending offset there. So a
    commit looks only at the transactions whose offsets it replaces."""

    def initialise(self, segment: SegmentId, fact: ProducerInitialised) -> None:
        """Set the owner of a transactional id. Raises `InvalidDataError`."""
        before, kept = self.ids.get(fact.id), (-1, -1)
        if isinstance(fact, TransactionKept):
            kept = fact.txn_producer_id, fact.txn_producer_epoch
            self._owner(segment, fact.id, kept, "keeps a transaction of")
        self.ids[fact.id] = TransactionalId(
            fact.producer_id,
            fact.producer_epoch,
            fact.last_producer_id,
            fact.last_producer_epoch,
            "none",
            "",
            0 if before is None else before.serial,
            fact.version,
            fact.timeout_ms,
            fact.two_phase,
            fact.at_ms,
            *kept,
        )

    def end(self, segment: SegmentId, fact: TransactionEnded) -> Mapping[str, Offsets]:
        """Return the offsets that were pending, by group. Raises `InvalidDataError`."""
        pair = fact.producer_id, fact.producer_epoch
        owner = self._owner(segment, fact.id, pair, "ends a transaction of")
        self.ids[fact.id] = owner._replace(
            producer_id=fact.next_producer_id,
            producer_epoch=fact.next_epoch,
            last_producer_id=owner.producer_id,
            last_producer_epoch=owner.producer_epoch,
            outcome="committed" if fact.committed else "aborted",
            by=fact.by,
            serial=owner.serial + 1,
            version=fact.version,
            updated_ms=fact.at_ms,
            txn_producer_id=-1,
            txn_producer_epoch=-1,
        )
        pending = self.pending.pop(fact.id, {})
        for group, rows in pending.items():
            self._pending_ids[group].discard(fact.id)
            if not self._pending_ids[group]:
                del self._pending_ids[group]
            for partition in rows:
                holders = self._holders[group][partition]
                holders.discard(fact.id)
                if not holders:
                    self._forget_held(group, partition)
        return pending

    def forget(self, segment: SegmentId, fact: TransactionalIdsForgotten) -> None:
        """Forget transactional ids. Raises `InvalidDataError`."""
        for each in fact.ids:
            owner = self.ids.get(each)
            if each in self.pending or (owner is not None and owner.is_kept):
                raise _wrong(segment, "forgets", each, "its transaction has no end")
            if self.ids.pop(each, None) is None:
                raise _wrong(segment, "forgets", each, "it does not exist")

    def _owner(
        self, segment: SegmentId, transactional_id: str, pair: tuple[int, int], what: str
    ) -> TransactionalId:
        owner = self.ids.get(transactional_id)
        if owner is None:
            raise _wrong(segment, what, transactional_id, "it does not exist")
        if owner.transaction != pair:
            reason = f"producer {pair[0]} with epoch {pair[1]} does not own it"
            raise _wrong(segment, what, transactional_id, reason)
        return owner

    def open_count(self) -> int:
        """The number of open transactions with records or pending offsets."""
        owners = [self.ids[each].transaction[0] for each in list(self.pending)]
        return len(self.parts) + sum(owner not in self.parts for owner in owners)

    def open_partitions(self) -> set[TopicIdPartition]:
        """The partitions with an open transaction, for any thread."""
        return {partition for parts in list(self.parts.values()) for partition in tuple(parts)}

    # Pending offsets -------------------------------------------------------------------------

    def offsets_of(self, segment: SegmentId, fact: TransactionOffsets) -> Offsets:
        """Return the pending offsets to which the fact adds rows; the caller passes each partition
        to `hold`. Raises `InvalidDataError`."""
        pair = fact.producer_id, fact.producer_epoch
        self._owner(segment, fact.id, pair, "commits offsets in a transaction of")
        self._pending_ids.setdefault(fact.group, set()).add(fact.id)
        return self.pending.setdefault(fact.id, {}).setdefault(fact.group, {})

    def load_pending(self, transactional_id: str, group: str, rows: Offsets) -> None:
        """Restore the pending offsets of a checkpoint."""
        self.pending.setdefault(transactional_id, {})[group] = rows
        self._pending_ids.setdefault(group, set()).add(transactional_id)
        for partition in rows:
            self.hold(transactional_id, group, partition)

    def hold(self, transactional_id: str, group: str, partition: TopicIdPartition) -> None:
        """Note that the transaction has a pending offset of the group in the partition."""
        held = self._holders.setdefault(group, {})
        held.setdefault(partition, set()).add(transactional_id)

    def held(self, group: str) -> Collection[TopicIdPartition]:
        """The partitions in which the group has pending offsets, as they are now."""
        return self._holders.get(group, {}).keys()

    def pending_at(self, group: str, partition: TopicIdPartition) -> list[Offsets]:
        """The pending offsets of each transaction that has one of the group in the partition."""
        holders = self._holders.get(group, {}).get(partition, ())
        return [self.pending[each][group] for each in holders]

    def release(self, group: str, partition: TopicIdPartition) -> list[Offsets]:
        """Return the result of `pending_at`, for a caller that removes the partition from each
        element."""
        released = self.pending_at(group, partition)
        if released:
            self._forget_held(group, partition)
        return released

    def _forget_held(self, group: str, partition: TopicIdPartition) -> None:
        del self._holders[group][partition]
        if not self._holders[group]:
            del self._holders[group]

    def pending_groups(self) -> Iterable[str]:
        """The groups that have pending offsets."""
        return self._pending_ids.keys()

    def is_pending(self, group: str) -> bool:
        """Return whether a transaction that has not ended has offsets of the group."""
        return group in self._pending_ids

    # Batches ---------------------------------------------------------------------------------

    def note(
        self,
        partition: TopicIdPartition,
        transactions: PartitionTransactions,
        row: BatchIndex,
        outcomes: Mapping[int, bool],
    ) -> None:
        """Note a batch with the attribute transactional or control. `outcomes` are those of its
        segment (`outcomes_in`). Raises `InvalidDataError`."""
        if not note_batch(transactions, row, outcomes):
            return
        if row.attributes & CONTROL:
            self._leave(row.producer_id, partition)
        else:
            self.parts.setdefault(row.producer_id, set()).add(partition)

    def check_markers(self, index: SegmentIndex, facts: Iterable[Fact]) -> None:
        """Check that the segment has a marker in every partition where its facts end a transaction.
        Its batches must not be noted yet. Raises `InvalidDataError`."""
        marked = {
            (row.producer_id, part.partition)
            for part in index.partitions
            for row in part.batches
            if row.attributes & CONTROL
        }
        for fact in facts:
            if isinstance(fact, TransactionEnded):
                for partition in self.parts.get(fact.producer_id, ()):
                    if (fact.producer_id, partition) not in marked:
                        reason = f"the marker in partition {partition.partition} of topic "
                        reason += f"{partition.topic_id.hex()} is missing"
                        raise _wrong(index.segment, "ends a transaction of", fact.id, reason)

    def forget_partition(
        self, partition: TopicIdPartition, transactions: PartitionTransactions
    ) -> None:
        """Forget a partition whose topic is deleted."""
        for producer_id in transactions.open:
            self._leave(producer_id, partition)

    def _leave(self, producer_id: int, partition: TopicIdPartition) -> None:
        """Note that the producer has no open transaction in the partition any more."""
        parts = self.parts[producer_id]
        parts.discard(partition)
        if not parts:
            del self.parts[producer_id]


def _wrong(segment: SegmentId, what: str, transactional_id: str, reason: str) -> InvalidDataError:
    return InvalidDataError(
        f"{segment} {what} transactional id {transactional_id!r}: {reason}",
        remedy="run `bucketlog segment verify`: two clusters may have written to one prefix",
    )


def note_batch(
    transactions: PartitionTransactions, row: BatchIndex, outcomes: Mapping[int, bool]
) -> bool:
    """Note a batch. Returns whether a transaction of the partition begins or ends with it. Raises
    `InvalidDataError` for a marker without an outcome."""
    if not row.attributes & CONTROL:
        return transactions.on_batch(row)
    committed = outcomes.get(row.producer_id)
    if committed is None:
        raise InvalidDataError(
            f"the marker of producer {row.producer_id} at offset {row.base_offset} is in a "
            "segment that does not say how the transaction ended",
            remedy="run `bucketlog segment verify`",
        )
    return transactions.on_marker(row, committed=committed)


def outcomes_of(segment: SegmentId, facts: Iterable[Fact]) -> dict[int, bool]:
    """Return, by producer id, whether the transaction that ends in this segment is committed.
    Raises `InvalidDataError` if a producer's transaction ends twice."""
    outcomes: dict[int, bool] = {}
    for fact in facts:
        if isinstance(fact, TransactionEnded):
            if fact.producer_id in outcomes:
                raise _wrong(segment, "ends a transaction of", fact.id, "it ends twice")
            outcomes[fact.producer_id] = fact.committed
    return outcomes


def outcomes_in(index: SegmentIndex) -> dict[int, bool]:
    """Return the same as `outcomes_of`, from the segment's footer."""
    ends = (entry for entry in index.facts if entry.kind == FactKind.TRANSACTION_ENDED)
    return outcomes_of(index.segment, [fact for fact in map(decode_fact, ends) if fact is not None])
