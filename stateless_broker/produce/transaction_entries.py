"""Contents of a transactional id's entry in its segment: facts and markers. Pure.

Invariant: facts and markers are made from the sequencer's answer alone, so that a void entry that
is reserved again gets new ones. A marker carries the sequencer's epoch, and the producer's epoch
after the end, as Kafka's (KIP-890).
"""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.log_format.control_batch import Marker, encode_marker
from bucketlog.log_format.model import FactEntry, TopicIdPartition
from bucketlog.metadata.fact_model import FactKind
from bucketlog.metadata.facts import (
    VERSION,
    Fact,
    ProducerInitialised,
    TransactionEnded,
    TransactionKept,
    TransactionVersion,
    encode_fact,
)
from bucketlog.metadata.sequencer.transaction_requests import (
    NO_EPOCH,
    ProducerPair,
    TransactionChange,
    WantedEnd,
    WantedInit,
    WantedTransactionEntry,
)

FACTS_BYTES = 600
"""About the size of the facts of an init that ends a transaction, without its id."""
NO_PAIR = ProducerPair(-1, NO_EPOCH)
EPOCH_MAX = 2**15 - 1
_BASE_OFFSET = struct.Struct(">q")


class PlacedMarker(NamedTuple):
    partition: TopicIdPartition
    base_offset: int
    hw_stamp: int
    data: bytes
    header: BatchHeader


def stand_in(wanted: WantedInit | WantedEnd) -> FactEntry:
    """Return a fact of about the size of the entry's facts, for an entry that is not reserved
    yet."""
    size = FACTS_BYTES + 2 * len(wanted.transactional_id.encode())
    return FactEntry(FactKind.TRANSACTION_ENDED, VERSION, bytes(size))


def entry_facts(
    wanted: WantedTransactionEntry, change: TransactionChange, entry: FactEntry, at_ms: int
) -> Sequence[FactEntry]:
    """Return the facts of an entry. `entry` is the fact of one that is neither an init nor an
    end."""
    if not isinstance(wanted, WantedInit | WantedEnd):
        return [entry]
    facts: list[Fact] = []
    version: TransactionVersion = 2 if wanted.version >= 2 else 1
    at_ms = max(0, at_ms)
    if change.ended is not None:
        facts.append(
            TransactionEnded(
                id=wanted.transactional_id,
                producer_id=change.ended.producer_id,
                producer_epoch=change.ended.epoch,
                committed=isinstance(wanted, WantedEnd) and wanted.is_commit,
                next_producer_id=change.pair.producer_id,
                next_epoch=change.pair.epoch,
                by=wanted.by.value if isinstance(wanted, WantedEnd) else "init",
                version=version,
                at_ms=at_ms,
            )
        )
    if isinstance(wanted, WantedInit):
        facts.append(_init_fact(wanted, change, version, at_ms))
    return [encode_fact(fact) for fact in facts]


def _init_fact(
    wanted: WantedInit, change: TransactionChange, version: TransactionVersion, at_ms: int
) -> ProducerInitialised:
    last = change.last or NO_PAIR
    fact = ProducerInitialised(
        id=wanted.transactional_id,
        producer_id=change.pair.producer_id,
        producer_epoch=change.pair.epoch,
        last_producer_id=last.producer_id,
        last_producer_epoch=last.epoch,
        timeout_ms=wanted.timeout_ms,
        version=version,
        two_phase=wanted.two_phase,
        at_ms=at_ms,
    )
    if change.kept is None:
        return fact
    producer_id, epoch = change.kept
    return TransactionKept(
        **fact.model_dump(), txn_producer_id=producer_id, txn_producer_epoch=epoch
    )


def entry_markers(
    wanted: WantedTransactionEntry,
    change: TransactionChange,
    *,
    sequencer_epoch: int,
    at_ms: int,
) -> Iterable[PlacedMarker]:
    """The markers of one end differ only in their base offsets, which no CRC covers."""
    if not change.markers or change.ended is None:
        return
    producer_id, epoch = change.ended
    stays = change.pair == change.ended
    data = encode_marker(
        Marker(isinstance(wanted, WantedEnd) and wanted.is_commit, sequencer_epoch),
        base_offset=0,
        producer_id=producer_id,
        producer_epoch=epoch if stays else min(epoch + 1, EPOCH_MAX),
        timestamp_ms=at_ms,
    )
    header, rest = read_header(data), data[_BASE_OFFSET.size :]
    for partition, base_offset, hw_stamp in change.markers:
        yield PlacedMarker(
            partition, base_offset, hw_stamp, _BASE_OFFSET.pack(base_offset) + rest, header
        )
