"""The transactions of one partition, from its batches: open, aborted, last stable offset. Pure.

Views, checkpoints, the split into tiers and readers of the bucket share this one definition.
Invariants: batches come in offset order, so that open transactions are in the order of their first
offsets and aborted ones in the order of their markers. An aborted transaction is forgotten once its
marker is below the offset from which batches are in log segments: tiers hold no records of aborted
transactions (docs/format/tier.md). Source: KIP-98; Kafka's TransactionIndex and
ProducerStateManager.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from bucketlog.log_format.batch import TRANSACTIONAL, BatchHeader
from bucketlog.log_format.model import BatchIndex

READ_COMMITTED = 1
"""The isolation level of consumers that get no open or aborted transactions (KIP-98)."""


class OpenTransaction(NamedTuple):
    """A transaction that has not ended: the producer's epoch and the offset of its first batch."""

    producer_epoch: int
    first_offset: int


class AbortedTransaction(NamedTuple):
    """The producer's batches from `first_offset` on, and before its marker, are aborted."""

    producer_id: int
    first_offset: int
    marker_offset: int


class PartitionTransactions:
    """`open`: by producer id, in the order of first offsets. Only the methods change it.

    An `OrderedDict` finds its first entry in constant time. A `dict` steps over all deleted
    entries before the first, so the time for the markers of many open transactions is quadratic."""

    __slots__ = ("_bounds", "_firsts", "_markers", "_producers", "open")

    def __init__(self) -> None:
        self.open: OrderedDict[int, OpenTransaction] = _NONE_OPEN
        self._producers: array[int] | None = None
        self._firsts: array[int] = _NOTHING
        self._markers: array[int] = _NOTHING
        self._bounds: array[int] = _NOTHING
        """For each row: no later aborted transaction begins below this offset."""

    @classmethod
    def of(
        cls, opened: Mapping[int, OpenTransaction], aborted: Sequence[AbortedTransaction]
    ) -> "PartitionTransactions":
        """From the rows of a checkpoint. Raises `ValueError` if they do not ascend."""
        made = cls()
        firsts = [transaction.first_offset for transaction in opened.values()]
        markers = [transaction.marker_offset for transaction in aborted]
        if not (_ascend(firsts) and _ascend(markers)):
            raise ValueError("transactions do not ascend")
        if any(each.first_offset >= each.marker_offset for each in aborted):
            raise ValueError("an aborted transaction ends before it begins")
        if opened:
            made.open = OrderedDict(opened)
        bound = min(firsts, default=None)
        bounds = []
        for each in reversed(aborted):
            bounds.append(each.marker_offset + 1 if bound is None else bound)
            bound = each.first_offset if bound is None else min(bound, each.first_offset)
        for each, limit in zip(aborted, reversed(bounds), strict=True):
            made._append(each, limit)
        return made

    def copy(self) -> "PartitionTransactions":
        return PartitionTransactions.of(self.open, list(self.aborted()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionTransactions):
            return NotImplemented
        return (
            self.open == other.open
            and self._markers == other._markers
            and self._firsts == other._firsts
            and (self._producers or _NOTHING) == (other._producers or _NOTHING)
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"PartitionTransactions(open={self.open}, aborted={list(self.aborted())})"

    def __bool__(self) -> bool:
        """Whether a transaction is open, or an aborted one is known."""
        return bool(self.open or self._markers)

    def on_batch(self, row: BatchIndex) -> bool:
        """Note a transactional batch of records. Returns whether a transaction begins with it."""
        if row.producer_id in self.open:
            return False
        if not self.open:
            self.open = OrderedDict()
        self.open[row.producer_id] = OpenTransaction(row.producer_epoch, row.base_offset)
        return True

    def on_marker(self, row: BatchIndex, *, committed: bool) -> bool:
        """Note a marker. Returns whether it ends a transaction that has batches here."""
        ended = self.open.pop(row.producer_id, None)
        if not self.open:
            self.open = _NONE_OPEN
        if ended is not None and not committed:
            first = next(iter(self.open.values()), None)
            bound = row.next_offset if first is None else first.first_offset
            self._append(
                AbortedTransaction(row.producer_id, ended.first_offset, row.base_offset), bound
            )
        return ended is not None

    def _append(self, aborted: AbortedTransaction, bound: int) -> None:
        if self._producers is None:
            self._producers, self._firsts = array("q"), array("q")
            self._markers, self._bounds = array("q"), array("q")
        self._producers.append(aborted.producer_id)
        self._firsts.append(aborted.first_offset)
        self._markers.append(aborted.marker_offset)
        self._bounds.append(bound)

    def forget_below(self, offset: int) -> None:
        """Forget the aborted transactions whose markers are below `offset`."""
        count = bisect_left(self._markers, offset)
        if self._producers is not None and count:
            for column in (self._producers, self._firsts, self._markers, self._bounds):
                del column[:count]

    def stable_end(self, high_watermark: int, start: int) -> int:
        """The last stable offset. It is never below `start`, the offset from which batches are in
        log segments (Kafka: a log start beyond the first unstable offset takes its place)."""
        first = next(iter(self.open.values()), None)
        return (
            high_watermark if first is None else min(high_watermark, max(first.first_offset, start))
        )

    def aborted(self) -> Iterator[AbortedTransaction]:
        """The aborted transactions, in the order of their markers."""
        return map(AbortedTransaction, self._producers or (), self._firsts, self._markers)

    def aborted_in(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions that end at `start` or later and begin before `end`, by first
        offset: a consumer needs them to read from `start` to `end`. The cost grows with the number
        of such transactions."""
        at = bisect_left(self._markers, start)
        found = []
        rest = zip(
            islice(self._producers or (), at, None),
            islice(self._firsts, at, None),
            islice(self._markers, at, None),
            islice(self._bounds, at, None),
            strict=True,
        )
        for producer_id, first, marker, bound in rest:
            if first < end:
                found.append(AbortedTransaction(producer_id, first, marker))
            if bound >= end:
                break
        return sorted(found, key=lambda each: each.first_offset)


_NOTHING: "array[int]" = array("q")
"""Shared by partitions without aborted transactions, and never changed."""
_NONE_OPEN: "OrderedDict[int, OpenTransaction]" = OrderedDict()
"""Shared by partitions without open transactions, and never changed."""


def _ascend(offsets: Sequence[int]) -> bool:
    return all(low < high for low, high in pairwise(offsets))


class AbortedBatches:
    """Finder of the batches that belong to aborted transactions."""

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._spans: dict[int, list[AbortedTransaction]] = {}
        for each in aborted:
            self._spans.setdefault(each.producer_id, []).append(each)

    def __contains__(self, batch: BatchHeader | BatchIndex) -> bool:
        if not batch.attributes & TRANSACTIONAL or batch.producer_id not in self._spans:
            return False
        spans = self._spans[batch.producer_id]
        before = bisect_right(spans, batch.base_offset, key=lambda span: span.first_offset)
        return before > 0 and batch.base_offset < spans[before - 1].marker_offset
