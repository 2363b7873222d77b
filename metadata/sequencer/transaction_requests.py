"""Requests to the sequencer about transactional ids, and its answers, as values.

Producer ids are decimal text in requests, because Lua's numbers are doubles; '' for none. The rules
are those of `lua/transaction_rules.lua`.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from bucketlog.log_format.model import TopicId, TopicIdPartition

NO_EPOCH = -1
ANY_SERIAL = -1
LAST_EPOCH = 32_766
"""The epoch after it is that of another producer id."""


class EndedBy(StrEnum):
    CLIENT = "client"
    SERVER = "server"


class TransactionLimits(NamedTuple):
    """`partitions`, `groups` and `offset_rows` of a transaction; `ids` of the cluster;
    `name_bytes`: of the names of partitions and groups in all transactions together."""

    partitions: int = 1_000
    groups: int = 100
    offset_rows: int = 10_000
    ids: int = 100_000
    name_bytes: int = 256 << 20


USUAL_LIMITS = TransactionLimits()


class ProducerPair(NamedTuple):
    """The producer id and the epoch that own a transactional id."""

    producer_id: int
    epoch: int

    @property
    def is_possible(self) -> bool:
        """Whether the sequencer ever gives such a pair."""
        return self.producer_id >= 0 and self.epoch >= 0


class BatchTransaction(NamedTuple):
    """The transaction that a batch belongs to; `version` is that of its request (1 or 2).
    `is_abortable_known`: the client knows the error TRANSACTION_ABORTABLE."""

    transactional_id: str
    version: int
    is_abortable_known: bool = True


class WantedInit(NamedTuple):
    """A pair for a producer that starts, or, with `expected`, that continues after an error.
    `candidate`: a producer id that was never used. `two_phase`: transactions have no timeout.
    `keeps`: an ongoing transaction is kept instead of aborted, so that the producer can end it."""

    transactional_id: str
    expected: ProducerPair | None
    timeout_ms: int
    version: int
    candidate: int
    two_phase: bool = False
    keeps: bool = False


class WantedEnd(NamedTuple):
    """The end of the pair's transaction. `serial`: only of the transaction with this serial.
    `candidate` as of `WantedInit`; without it, the pair must not be the last of its producer."""

    transactional_id: str
    pair: ProducerPair
    is_commit: bool
    version: int
    by: EndedBy = EndedBy.CLIENT
    serial: int = ANY_SERIAL
    candidate: int = -1


class WantedTransactionOffsets(NamedTuple):
    """Offsets of a group, by the coordinator that took it at `term`. `rows`: their weight."""

    transactional_id: str
    pair: ProducerPair
    version: int
    group: str
    term: int
    rows: int


class WantedForgetting(NamedTuple):
    """Forget an id without a transaction whose last change was before `before_ms`."""

    transactional_id: str
    before_ms: int


WantedTransactionEntry: TypeAlias = (
    WantedInit | WantedEnd | WantedTransactionOffsets | WantedForgetting
)


class MarkerPlace(NamedTuple):
    partition: TopicIdPartition
    base_offset: int
    hw_stamp: int


class TransactionChange(NamedTuple):
    """The effect of an accepted entry. `pair` owns the id once the entry is visible. `last` is the
    pair before it, if its owner may still use it. `ended`: the pair whose transaction ends. `kept`:
    the pair whose transaction continues, although this pair no longer owns the id."""

    pair: ProducerPair
    last: ProducerPair | None = None
    ended: ProducerPair | None = None
    markers: tuple[MarkerPlace, ...] = ()
    kept: ProducerPair | None = None


class BoundEnd(NamedTuple):
    """The serial of the transaction that a version 1 end is for."""

    serial: int


class OverdueTransaction(NamedTuple):
    """`pair`: the owner of the id."""

    transactional_id: str
    pair: ProducerPair
    version: int
    serial: int


class TransactionAges(NamedTuple):
    """`two_phase_ms`: the age of the oldest transaction with two-phase commit; 0 if there is
    none."""

    overdue: list[OverdueTransaction]
    two_phase_ms: int


class TransactionPart(NamedTuple):
    topic_name: str
    topic_id: TopicId
    partition: int


def pair_of(producer: str, epoch: int) -> ProducerPair | None:
    return None if epoch == NO_EPOCH or not producer else ProducerPair(int(producer), epoch)


def read_change(answer: Sequence[Any]) -> TransactionChange | None:
    """Return the change in the answer `[status, …]` to an entry; None if there is none."""
    if len(answer) < 3:
        return None
    pair = ProducerPair(int(answer[1]), answer[2])
    if len(answer) == 3:
        return TransactionChange(pair)
    last, last_epoch, ended, ended_epoch, markers, *kept = answer[3:]
    return TransactionChange(
        pair,
        pair_of(last, last_epoch),
        pair_of(ended, ended_epoch),
        tuple(
            MarkerPlace(TopicIdPartition(TopicId(bytes.fromhex(topic_id)), partition), base, stamp)
            for topic_id, partition, base, stamp in markers
        ),
        pair_of(*kept) if kept else None,
    )


def packed_entry(entry: WantedTransactionEntry) -> tuple[str | int | bool, ...]:
    """The entry as `lua/reserve.lua` takes it."""
    match entry:
        case WantedInit(transactional_id, expected, timeout_ms, version, candidate):
            text, epoch = ("", NO_EPOCH) if expected is None else _texts(expected)
            head_of_init = "init", transactional_id, text, epoch, timeout_ms, version
            return *head_of_init, str(candidate), entry.two_phase, entry.keeps
        case WantedEnd(transactional_id, pair, is_commit, version, by, serial, candidate):
            producer, epoch = _texts(pair)
            head = "end", transactional_id, producer, epoch, is_commit
            return *head, version, by.value, serial, str(candidate)
        case WantedTransactionOffsets(transactional_id, pair, version, group, term, rows):
            head_of_offsets = "txn_offsets", transactional_id, *_texts(pair)
            return *head_of_offsets, version, group, term, rows
        case WantedForgetting(transactional_id, before_ms):
            return "forget_id", transactional_id, before_ms


def _texts(pair: ProducerPair) -> tuple[str, int]:
    return str(pair.producer_id), pair.epoch


def packed_parts(parts: Iterable[TransactionPart]) -> list[tuple[str, str, int]]:
    return [(part.topic_name, part.topic_id.hex(), part.partition) for part in parts]
