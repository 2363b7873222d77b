"""Transactional ids on a real sequencer, for tests: short words for inits, batches and ends."""

from collections.abc import Awaitable, Sequence
from typing import cast

import ormsgpack

from bucketlog.log_format.model import WriterId
from bucketlog.metadata.sequencer.requests import (
    BatchStatus,
    FactStatus,
    PublishStatus,
    WantedBatch,
)
from bucketlog.metadata.sequencer.transaction_requests import (
    BatchTransaction,
    EndedBy,
    ProducerPair,
    TransactionChange,
    TransactionPart,
    WantedEnd,
    WantedInit,
    WantedTransactionEntry,
    WantedTransactionOffsets,
)
from tests.servers.sequencing import Sequencing

Answer = tuple[FactStatus, TransactionChange | None]
OK, DONE, WAIT = FactStatus.OK, FactStatus.DONE, FactStatus.WAIT
FENCED, ABORTABLE = FactStatus.FENCED, FactStatus.ABORTABLE
INVALID_STATE, TOO_MANY = FactStatus.INVALID_STATE, FactStatus.TOO_MANY
TIMEOUT_MS = 60_000
CANDIDATE = 77
V1, V2 = 1, 2


async def entry(sequencing: Sequencing, writer: WriterId, wanted: WantedTransactionEntry) -> Answer:
    found = await sequencing.ask(writer, control=[wanted])
    return found.fact_statuses[0], found.changes.get(0)


def init(
    expected: ProducerPair | None = None, *, candidate: int = CANDIDATE, each: str = "x"
) -> WantedInit:
    return WantedInit(each, expected, TIMEOUT_MS, V2, candidate)


async def initialise(
    sequencing: Sequencing, expected: ProducerPair | None = None, *, each: str = "x"
) -> ProducerPair:
    """A visible init by writer `a`; its pair."""
    first = await sequencing.sequencer.producer_ids(sequencing.epoch, 1)
    status, change = await entry(
        sequencing, sequencing.a, init(expected, candidate=first, each=each)
    )
    assert status is OK
    assert change is not None
    assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE
    return change.pair


def batch(
    pair: ProducerPair, sequence: int, *, version: int = V2, each: str = "x", records: int = 1
) -> WantedBatch:
    return WantedBatch(
        records, str(pair.producer_id), pair.epoch, sequence, BatchTransaction(each, version)
    )


def end(
    pair: ProducerPair,
    *,
    commit: bool = True,
    version: int = V2,
    by: EndedBy = EndedBy.CLIENT,
    serial: int = -1,
) -> WantedEnd:
    return WantedEnd("x", pair, commit, version, by, serial, CANDIDATE)


async def write(
    sequencing: Sequencing,
    pair: ProducerPair,
    *,
    partitions: Sequence[int] = (0,),
    sequence: int = 0,
    version: int = V2,
) -> None:
    """Visible batches of a transaction, by writer `a`."""
    found = await sequencing.ask(
        sequencing.a,
        {("t", number): [batch(pair, sequence, version=version)] for number in partitions},
    )
    assert [part[0].status for part in found.batches] == [BatchStatus.OK] * len(partitions)
    assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE


async def ended(sequencing: Sequencing, wanted: WantedEnd | WantedInit) -> TransactionChange:
    """A visible end by writer `a`."""
    status, change = await entry(sequencing, sequencing.a, wanted)
    assert status is OK
    assert change is not None
    assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE
    return change


def raised(pair: ProducerPair, by: int = 1) -> ProducerPair:
    return ProducerPair(pair.producer_id, pair.epoch + by)


async def status_of(sequencing: Sequencing, wanted: WantedBatch, partition: int = 0) -> BatchStatus:
    return (await sequencing.batch(sequencing.a, wanted, partition)).status


async def set_fields(sequencing: Sequencing, **fields: object) -> None:
    """Change the record of id `x`."""
    record = (await sequencing.records("txns"))["i:x"] | fields
    await sequencing.redis.hset(sequencing.key("txns"), "i:x", ormsgpack.packb(record))


async def parts_of(sequencing: Sequencing, each: str = "x") -> str | None:
    """The list of partitions of the id's transaction."""
    found = sequencing.redis.hget(sequencing.key("txn_parts"), f"i:{each}")
    text = await cast(Awaitable[bytes | None], found)
    return None if text is None else text.decode()


async def add(sequencing: Sequencing, pair: ProducerPair, partition: int) -> None:
    part = TransactionPart("t", sequencing.topic_ids["t"], partition)
    assert await sequencing.sequencer.add_to_transaction(1, "x", pair, parts=[part]) is OK


def field_of(sequencing: Sequencing, partition: int) -> str:
    return f"{sequencing.topic_ids['t'].hex()}:{partition}"


async def term(sequencing: Sequencing, group: str = "g") -> int:
    return (await sequencing.sequencer.take_group(1, group, "broker")).term


def offsets(
    pair: ProducerPair, of_term: int, *, version: int = V2, rows: int = 1, group: str = "g"
) -> WantedTransactionOffsets:
    return WantedTransactionOffsets("x", pair, version, group, of_term, rows)
