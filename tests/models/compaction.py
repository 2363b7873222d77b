"""Histories of one compacted partition, and what Kafka's cleaner makes of them, naively.

The model knows what happened (which transaction a batch belongs to, how that ended), where the
cleaner must find out from bytes, and cleans with a dictionary. Independent of the code under test
but for the encoder of batches.
"""

import struct
from dataclasses import dataclass, field, replace

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.records import DecodedRecord, encode_batch

ABORT, COMMIT = 0, 1


@dataclass(eq=False)
class Transaction:
    """`outcome` is None while it is open."""

    outcome: int | None = None


@dataclass(frozen=True)
class Batch:
    """A batch as the model sees it; records have their own timestamps, also under LogAppendTime."""

    base: int
    last: int
    records: tuple[DecodedRecord, ...]
    codec: Codec = Codec.NONE
    producer_id: int = -1
    append_time_ms: int | None = None
    transaction: Transaction | None = None
    marker: int | None = None
    horizon_ms: int | None = None
    max_timestamp: int = -1

    @property
    def next(self) -> int:
        return self.last + 1

    @property
    def aborted(self) -> bool:
        return self.transaction is not None and self.transaction.outcome == ABORT

    def encoded(self) -> bytes:
        return encode_batch(
            self.records,
            codec=self.codec,
            base_offset=self.base,
            producer_id=self.producer_id,
            producer_epoch=0 if self.producer_id >= 0 else -1,
            base_sequence=-1 if self.marker is not None or self.producer_id < 0 else 7,
            append_time_ms=self.append_time_ms,
            transactional=self.transaction is not None,
            control=self.marker is not None,
        )


def marker_record(offset: int, timestamp: int, kind: int) -> DecodedRecord:
    return DecodedRecord(offset, timestamp, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 3))


def made(batch: Batch) -> Batch:
    """`batch` with the highest timestamp that its producer (or broker) writes."""
    highest = max(record.timestamp for record in batch.records)
    append_time = batch.append_time_ms
    return replace(batch, max_timestamp=highest if append_time is None else append_time)


@dataclass
class Log:
    """Batches in offset order; `cleaned_to` is where the last round ended."""

    batches: list[Batch] = field(default_factory=list)
    cleaned_to: int = 0
    end: int = 0

    def append(self, batch: Batch) -> None:
        assert batch.base >= self.end
        self.batches.append(made(batch))
        self.end = batch.next

    @property
    def last_stable_offset(self) -> int:
        firsts = [
            batch.base
            for batch in self.batches
            if batch.transaction is not None and batch.transaction.outcome is None
        ]
        return min([self.end, *firsts])

    def stable_end(self, limit: int) -> int:
        """Before the first transaction that is open at `limit`, looking at whole batches."""
        ended = {
            batch.transaction
            for batch in self.batches
            if batch.marker is not None and self.cleaned_to < batch.next <= limit
        }
        firsts = [
            batch.base
            for batch in self.batches
            if batch.transaction is not None
            and batch.marker is None
            and self.cleaned_to < batch.next <= limit
            and batch.transaction not in ended
        ]
        return min([limit, *firsts])

    def round_end(self, limit: int, capacity: int) -> int:
        """Where a round ends whose map holds `capacity` keys."""
        stable_end = self.stable_end(limit)
        keys: set[bytes] = set()
        end = self.cleaned_to
        for batch in self.batches:
            if batch.next <= self.cleaned_to:
                continue
            if batch.next > stable_end:
                break
            fits = set(keys)
            for record in batch.records:
                if batch.marker is not None or batch.aborted or record.key is None:
                    continue
                if record.offset < self.cleaned_to:
                    continue
                fits.add(record.key)
                if len(fits) > capacity:
                    return end if end > self.cleaned_to else record.offset
            keys, end = fits, batch.next
        return end

    def clean(self, limit: int, capacity: int, now_ms: int, delete_retention_ms: int) -> None:
        end = self.round_end(limit, capacity)
        latest: dict[bytes, int] = {}
        for batch in self.batches:
            for record in batch.records:
                if (
                    batch.marker is None
                    and not batch.aborted
                    and self.cleaned_to <= record.offset < end
                    and record.key is not None
                ):
                    latest[record.key] = record.offset
        met: set[Transaction] = set()
        cleaned = []
        for batch in self.batches:
            stays: Batch | None = batch
            if batch.base < end:
                stays = self._cleaned(batch, end, latest, met, now_ms, now_ms + delete_retention_ms)
                if batch.marker is None and batch.transaction is not None:
                    met.add(batch.transaction)
            if stays is None and batch.next == end:
                stays = replace(batch, records=(), codec=Codec.NONE, horizon_ms=None)
            if stays is not None:
                cleaned.append(stays)
        self.batches = cleaned
        self.cleaned_to = end

    def _cleaned(
        self,
        batch: Batch,
        end: int,
        latest: dict[bytes, int],
        met: set[Transaction],
        now_ms: int,
        horizon_ms: int,
    ) -> Batch | None:
        past = batch.horizon_ms is not None and batch.horizon_ms <= now_ms
        if batch.aborted and batch.marker is None:
            return None
        if batch.marker is not None:
            if not batch.records:
                return None
            if batch.transaction in met:
                return batch
            return None if past else replace(batch, horizon_ms=batch.horizon_ms or horizon_ms)
        kept = tuple(
            record
            for record in batch.records
            if record.offset >= end
            or (
                record.key is not None
                and record.offset >= latest.get(record.key, -1)
                and not (past and record.value is None)
            )
        )
        if not kept:
            return None
        changed = replace(batch, records=kept)
        if (
            any(record.value is None for record in kept)
            and batch.horizon_ms is None
            and batch.next <= end
        ):
            changed = replace(changed, horizon_ms=horizon_ms)
        return made(changed) if changed != batch else batch

    def records(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """What a consumer of committed transactions gets: offset, key, value."""
        return [
            (record.offset, record.key, record.value)
            for batch in self.batches
            if batch.marker is None
            and (batch.transaction is None or batch.transaction.outcome == COMMIT)
            for record in batch.records
        ]
