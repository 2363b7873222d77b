"""The sequencer's verbs for administrators: lists of transactional ids and producers.

Invariant: these verbs change nothing. Long lists come in parts, so that no script delays
reservations. A list may or may not include changes that are made meanwhile.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, NamedTuple

import ormsgpack

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.sequencer.redis_errors import raise_lost
from bucketlog.metadata.sequencer.redis_server import ScriptRunner
from bucketlog.metadata.sequencer.scripts import SequencerVerb
from bucketlog.metadata.sequencer.transaction_requests import ProducerPair, pair_of

BEGIN = "0"
CHECKED_A_CALL = 1_000
DESCRIBED_A_CALL = 20


class ListedTransaction(NamedTuple):
    """`pair` began the ongoing transaction; `owner` may end it. They differ if an init has kept the
    transaction. `state` is Kafka's name. `since_ms`: when the transaction began; 0 if no
    transaction is ongoing. `serial` and `version` as in `OverdueTransaction`."""

    transactional_id: str
    pair: ProducerPair
    state: str
    since_ms: int
    serial: int
    version: int
    owner: ProducerPair


class TransactionDescription(NamedTuple):
    """`parts`: topic names and partitions of the ongoing transaction. `last`, `outcome`: the pair
    of the last transaction and how it ended. `two_phase`: the timeout has no effect."""

    listed: ListedTransaction
    timeout_ms: int
    parts: tuple[tuple[str, int], ...]
    last: ProducerPair | None
    outcome: str
    two_phase: bool


class ListedProducer(NamedTuple):
    """The newest visible batch of a producer in a partition; `time_ms` -1: not known."""

    producer_id: int
    partition: TopicIdPartition
    epoch: int
    last_sequence: int
    time_ms: int


class TransactionListing(ScriptRunner):
    async def list_transactions(
        self, epoch: int, producer_ids: Collection[int] = ()
    ) -> AsyncIterator[list[ListedTransaction]]:
        """Yield all transactional ids in parts, or those whose `pair` has one of `producer_ids`. An
        id may come twice. Raises `SequencerError`."""
        packed = ormsgpack.packb([str(each) for each in producer_ids])
        cursor = BEGIN
        while True:
            status, *rest = await self._run(
                SequencerVerb.LIST_TRANSACTIONS, epoch, cursor, CHECKED_A_CALL, packed
            )
            if status != "ok":
                raise_lost(status, rest)
            cursor, rows = rest
            yield [_listed(row) for row in rows]
            if cursor == BEGIN:
                return

    async def describe_transactions(
        self, epoch: int, transactional_ids: Sequence[str]
    ) -> dict[str, TransactionDescription]:
        """Descriptions by id, without ids that do not exist. Takes at most `DESCRIBED_A_CALL` ids,
        because each may have thousands of partitions. Raises `SequencerError`."""
        status, *rest = await self._run(
            SequencerVerb.DESCRIBE_TRANSACTIONS, epoch, ormsgpack.packb(list(transactional_ids))
        )
        if status != "ok":
            raise_lost(status, rest)
        described = {}
        for row, timeout_ms, parts, last, last_epoch, outcome, two_phase in rest[0]:
            listed = _listed(row)
            described[listed.transactional_id] = TransactionDescription(
                listed, timeout_ms, _parts(parts), pair_of(last, last_epoch), outcome, two_phase
            )
        return described

    async def list_producers(
        self, epoch: int, partitions: Collection[TopicIdPartition]
    ) -> AsyncIterator[list[ListedProducer]]:
        """The producers of the partitions, in parts. A producer may come twice. Checks the rows of
        all producers. Raises `SequencerError`."""
        packed = ormsgpack.packb([f"{each.topic_id.hex()}:{each.partition}" for each in partitions])
        cursor = BEGIN
        while True:
            status, *rest = await self._run(
                SequencerVerb.LIST_PRODUCERS, epoch, cursor, CHECKED_A_CALL, packed
            )
            if status != "ok":
                raise_lost(status, rest)
            cursor, rows = rest
            yield [
                ListedProducer(int(producer), _partition(name), *numbers)
                for producer, name, *numbers in rows
            ]
            if cursor == BEGIN:
                return


def _listed(row: Sequence[Any]) -> ListedTransaction:
    transactional_id, producer, epoch, state, since_ms, serial, version, owner, owner_epoch = row
    pair, owned_by = ProducerPair(int(producer), epoch), ProducerPair(int(owner), owner_epoch)
    return ListedTransaction(transactional_id, pair, state, since_ms, serial, version, owned_by)


def _parts(packed: str) -> tuple[tuple[str, int], ...]:
    """Parse a text of 'topic name/topic id:partition;' for each partition."""
    found = []
    for part in packed.split(";")[:-1]:
        name, _, rest = part.partition("/")
        found.append((name, int(rest.rpartition(":")[2])))
    return tuple(found)


def _partition(name: str) -> TopicIdPartition:
    topic_id, _, number = name.partition(":")
    return TopicIdPartition(TopicId(bytes.fromhex(topic_id)), int(number))
