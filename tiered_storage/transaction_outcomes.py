"""How transactions of a partition ended, from its own batches: what key compaction must know.

Invariant: nothing of a transaction without an end is cleaned (`TransactionOutcomes.stable_end`
stands before its first batch), and a marker may go only when no batch of its transaction is met any
more. Kafka keeps an index of aborted transactions; here a first pass over the headers of the dirty
part finds them, which suffices: what an earlier round has cleaned holds no record of an aborted
one.

Sources: KIP-98 (control batches), Kafka's CleanedTransactionMetadata and ControlRecordType.
"""

import struct
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from bucketlog.log_format.batch import TRANSACTIONAL, BatchHeader, InvalidBatchError
from bucketlog.log_format.batch_stream import BatchStream, check_crc
from bucketlog.log_format.model import BatchIndex, Buffer
from bucketlog.log_format.records import decode_records

_MARKER = struct.Struct(">hh")
"""The key of a control record: version, kind."""


class Marker(IntEnum):
    """Kinds of control records that end a transaction; there are others, which stay."""

    ABORT = 0
    COMMIT = 1


def marker_kind(batch: Buffer, header: BatchHeader) -> int | None:
    """What the control batch says; None if it was emptied. Raises `InvalidDataError`."""
    check_crc(batch, header)
    try:
        records = decode_records(batch, header)
    except InvalidBatchError as error:
        raise InvalidBatchError(
            f"the control batch at offset {header.base_offset}: {error.message}"
        ) from error
    if not records:
        return None
    key = records[0].key
    if key is None or len(key) < _MARKER.size:
        raise InvalidBatchError(f"the control batch at offset {header.base_offset} has no kind")
    _, kind = _MARKER.unpack_from(key)
    return int(kind)


@dataclass(frozen=True, slots=True)
class TransactionOutcomes:
    """`aborted`: by producer id, (first offset, offset of the marker), ascending. `stable_end`: the
    first offset of a transaction whose end was not met, or where the reading ended."""

    aborted: Mapping[int, Sequence[tuple[int, int]]]
    stable_end: int

    def is_aborted(self, batch: BatchHeader | BatchIndex) -> bool:
        if not batch.attributes & TRANSACTIONAL or batch.producer_id not in self.aborted:
            return False
        spans = self.aborted[batch.producer_id]
        before = bisect_right(spans, batch.base_offset, key=lambda span: span[0])
        return before > 0 and batch.base_offset < spans[before - 1][1]


class Transactions:
    """Which are open and which were aborted, told in offset order."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._aborted: dict[int, list[tuple[int, int]]] = {}

    def on_batch(self, producer_id: int, base_offset: int) -> None:
        """A transactional batch with data."""
        self._open.setdefault(producer_id, base_offset)

    def on_marker(self, producer_id: int, base_offset: int, kind: int | None) -> None:
        """A control batch, with what `marker_kind` says of it."""
        if kind not in (Marker.ABORT, Marker.COMMIT):
            return
        first = self._open.pop(producer_id, None)
        if first is not None and kind == Marker.ABORT:
            self._aborted.setdefault(producer_id, []).append((first, base_offset))

    def outcomes(self, end: int) -> TransactionOutcomes:
        """After the last batch before `end`."""
        return TransactionOutcomes(self._aborted, min([end, *self._open.values()]))


class TransactionScan:
    """Reads batches of the offsets from `start` on and before `end`: headers, and control records.

    What it holds grows with open and aborted transactions, not with batches.
    """

    def __init__(self, start: int, end: int) -> None:
        self._start = start
        self._end = end
        self._stream = BatchStream()
        self._transactions = Transactions()

    def feed(self, piece: Buffer) -> None:
        """Raises `InvalidDataError`."""
        for batch, header in self._stream.feed(piece):
            if header.next_offset <= self._start or header.next_offset > self._end:
                continue
            if header.is_control:
                kind = marker_kind(batch, header)
                self._transactions.on_marker(header.producer_id, header.base_offset, kind)
            elif header.is_transactional:
                check_crc(batch, header)
                self._transactions.on_batch(header.producer_id, header.base_offset)

    def finish(self) -> TransactionOutcomes:
        """Raises `InvalidDataError` where the last batch is cut short."""
        self._stream.finish()
        return self._transactions.outcomes(self._end)


@dataclass(slots=True)
class MarkerRetention:
    """While batches are cleaned: may this marker go? Feed it all batches, in order."""

    _open: set[int] = field(default_factory=set)

    def on_batch(self, header: BatchHeader) -> None:
        if header.is_transactional:
            self._open.add(header.producer_id)

    def is_idle(self, header: BatchHeader, kind: int | None) -> bool:
        """Whether no batch of the transaction that this marker ends has come before it."""
        if kind is None:
            return True
        if kind not in (Marker.ABORT, Marker.COMMIT):
            return False
        if header.producer_id in self._open:
            self._open.remove(header.producer_id)
            return False
        return True


def no_transactions(end: int) -> TransactionOutcomes:
    """Where it is known that no batch before `end` is transactional."""
    return TransactionOutcomes({}, end)
