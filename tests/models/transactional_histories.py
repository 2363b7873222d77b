"""Random histories with transactions: several transactional ids, batches and offsets in them, inits
that keep them, ends with their markers in one segment, forgotten ids. For the rest, see
`RandomHistory`."""

import random
from collections.abc import Iterable
from dataclasses import replace

from bucketlog.log_format.model import (
    BatchIndex,
    PartitionIndex,
    SegmentIndex,
    Ticket,
    TopicIdPartition,
)
from bucketlog.metadata.config_facts import ConfigsAltered
from bucketlog.metadata.encryption_facts import DataKeyCreated
from bucketlog.metadata.fact_model import FactKind
from bucketlog.metadata.facts import (
    Fact,
    LogStartsMoved,
    OffsetsCommitted,
    OffsetsForgotten,
    ProducerInitialised,
    TiersSwapped,
    TiersSwept,
    TransactionalIdsForgotten,
    TransactionEnded,
    TransactionOffsets,
    decode_fact,
    encode_fact,
    partition_of,
    topic_id_of,
)
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.security_facts import (
    AclsCreated,
    AclsDeleted,
    ClientQuotasAltered,
    ScramCredentialDeleted,
    ScramCredentialSet,
)
from bucketlog.metadata.share_facts import ShareFact
from bucketlog.metadata.token_facts import TokenFact
from tests.models.histories import GROUPS, RandomHistory
from tests.models.indexes import (
    end,
    forget_ids,
    in_transaction,
    initialise,
    keep,
    marker,
    partition,
    send_offsets,
)

IDS = {"app-1": 1 << 50, "app-2": 2 << 50, "Anwendung ü": 3 << 50}


class TransactionalHistory(RandomHistory):
    """`touched`: by segment, what must stay in its order with other segments that touch it."""

    def __init__(self, seed: int, *, segments: int = 60, epochs: int = 3) -> None:
        self.choice = random.Random(f"transactions {seed}")
        self.touched: list[set[object]] = []
        self.written: dict[str, set[TopicIdPartition]] = {}
        """The partitions of each transaction, also those of deleted topics: an end without a marker
        there is reserved after the deletion is visible."""
        super().__init__(seed, segments=segments, epochs=epochs)

    def segment(self, ticket: Ticket) -> SegmentIndex:
        index = super().segment(ticket)
        touched = self._touched_by(index)
        for transactional_id in self.choice.sample(sorted(IDS), self.choice.choice([0, 1, 1, 2])):
            index = self._step(index, transactional_id, touched)
        self.touched.append(touched)
        return index

    def _step(self, index: SegmentIndex, name: str, touched: set[object]) -> SegmentIndex:
        owner = self.state.transactions.ids.get(name)
        touched.add(name)
        if owner is None:
            return _with_facts(index, initialise(name, IDS[name], self.choice.randrange(9)))
        pair, follower = owner.transaction, (owner.producer_id, owner.producer_epoch + 1)
        parts = self.state.transactions.parts.get(pair[0], set())
        pending = self.state.transactions.pending.get(name, {})
        places = [TopicIdPartition(*key) for key in self.existing()]
        what = self.choice.random()
        if what < (0.3 if owner.is_kept else 0.08):
            follower = self.choice.choice([follower, (follower[0] + 1, 0)])
            return _with_facts(index, keep(name, follower, pair))
        if what < 0.5 and places and not owner.is_kept:
            chosen = self.choice.sample(places, min(len(places), self.choice.randint(1, 3)))
            touched.update(chosen)
            self.written.setdefault(name, set()).update(chosen)
            rows = {
                key: in_transaction(self._take(key), *pair, records=self.choice.randint(1, 3))
                for key in chosen
            }
            for key, row in rows.items():
                self.next_offset[key] = row.next_offset
            return _with_rows(index, rows)
        if what < 0.65 and self.sizes and not owner.is_kept:
            topic = self.choice.choice(list(self.sizes))
            keys = [partition(topic, number) for number in range(self.sizes[topic])]
            group = self.choice.choice(GROUPS)
            touched.add(group)
            offsets = {key: self.choice.randrange(1000) for key in keys}
            return _with_facts(index, send_offsets(name, *pair, group, offsets, metadata="µ"))
        if not (parts or pending or owner.is_kept) and what < 0.7:
            return _with_facts(index, forget_ids(name))
        ended = [key for key in sorted(parts) if key in places]
        touched.update(self.written.pop(name, ()), pending)
        markers = {key: marker(self._take(key), *pair) for key in ended}
        for key in ended:
            self.next_offset[key] += 1
        fact = end(name, *pair, commit=self.choice.random() < 0.5, follower=follower)
        return _with_rows(_with_facts(index, fact), markers)

    def _take(self, key: TopicIdPartition) -> int:
        self.next_offset.setdefault(key, 0)
        return self.next_offset[key]

    def _touched_by(self, index: SegmentIndex) -> set[object]:
        touched: set[object] = {part.partition for part in index.partitions}
        for entry in index.facts:
            fact = decode_fact(entry)
            if isinstance(fact, OffsetsCommitted | OffsetsForgotten):
                touched.add(fact.group)
            elif isinstance(fact, TiersSwapped | LogStartsMoved):
                named = fact.swaps if isinstance(fact, TiersSwapped) else fact.partitions
                touched.update(map(partition_of, named))
                touched.add("tiers")
            elif isinstance(fact, TiersSwept):
                touched.add("tiers")
            elif fact is not None and not isinstance(
                fact,
                ProducerInitialised
                | TransactionEnded
                | TransactionOffsets
                | TransactionalIdsForgotten
                | ScramCredentialSet
                | ScramCredentialDeleted
                | AclsCreated
                | AclsDeleted
                | ClientQuotasAltered
                | DataKeyCreated
                | TokenFact
                | ShareFact
                | ConfigsAltered,
            ):
                touched.add(fact.name)
                sizes = range(max(self.sizes.values(), default=0))
                touched.update(TopicIdPartition(topic_id_of(fact), number) for number in sizes)
                touched.update(GROUPS)
        return touched


def _with_facts(index: SegmentIndex, *facts: Fact) -> SegmentIndex:
    return replace(index, facts=(*index.facts, *map(encode_fact, facts)))


def _with_rows(index: SegmentIndex, rows: dict[TopicIdPartition, BatchIndex]) -> SegmentIndex:
    parts = {part.partition: part for part in index.partitions}
    for key, row in rows.items():
        before = parts.get(key, PartitionIndex(key, row.base_offset, ()))
        parts[key] = replace(before, batches=(*before.batches, row))
    return replace(index, partitions=tuple(parts[key] for key in sorted(parts)))


def ends_of(segments: Iterable[SegmentIndex]) -> list[TransactionEnded]:
    """The transactions that end in these segments."""
    facts = [
        decode_fact(entry)
        for index in segments
        for entry in index.facts
        if entry.kind == FactKind.TRANSACTION_ENDED
    ]
    return [fact for fact in facts if isinstance(fact, TransactionEnded)]


def some_order(history: TransactionalHistory, chance: random.Random) -> list[SegmentIndex]:
    """An order in which segments that touch the same things are in ticket order."""
    last: dict[object, int] = {}
    needs: list[set[int]] = []
    for number, touched in enumerate(history.touched):
        needs.append({last[each] for each in touched if each in last})
        last.update(dict.fromkeys(touched, number))
    left, order = set(range(len(needs))), []
    while left:
        chosen = chance.choice([number for number in sorted(left) if not needs[number] & left])
        left.remove(chosen)
        order.append(history.segments[chosen])
    return order


def assert_same_transactions(found: LogState, expected: LogState) -> None:
    assert found.transactions == expected.transactions
    assert vars(found.offsets) == vars(expected.offsets)
    assert found.partitions.keys() == expected.partitions.keys()
    for key, part in found.partitions.items():
        assert part.transactions == expected.partitions[key].transactions
        assert part.last_stable_offset == expected.partitions[key].last_stable_offset
