"""Histories of one compacted partition, and a naive model of Kafka's cleaner, which cleans with a
dictionary. Batches of transactions are committed, as in every tier. Except for the encoder of
batches, the model is independent of the code under test.
"""

from dataclasses import dataclass, field, replace

from bucketlog.log_format.batch import Codec, read_header
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.log_format.rewriting import empty_batch


@dataclass(frozen=True)
class Batch:
    """A batch as the model sees it; records have their own timestamps, also under LogAppendTime."""

    base: int
    last: int
    records: tuple[DecodedRecord, ...]
    codec: Codec = Codec.NONE
    producer_id: int = -1
    append_time_ms: int | None = None
    transactional: bool = False
    horizon_ms: int | None = None
    max_timestamp: int = -1

    @property
    def next(self) -> int:
        return self.last + 1

    def encoded(self) -> bytes:
        """A batch without records is what is left of a batch with one record."""
        batch = encode_batch(
            self.records or [DecodedRecord(self.last, -1, b"", b"")],
            codec=self.codec,
            base_offset=self.base,
            producer_id=self.producer_id,
            producer_epoch=0 if self.producer_id >= 0 else -1,
            base_sequence=7 if self.producer_id >= 0 else -1,
            append_time_ms=self.append_time_ms,
            transactional=self.transactional,
        )
        return batch if self.records else empty_batch(read_header(batch))


def made(batch: Batch) -> Batch:
    """`batch` with the highest timestamp that its producer (or broker) writes."""
    highest = max((record.timestamp for record in batch.records), default=-1)
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

    def round_end(self, limit: int, capacity: int) -> int:
        """Where a round ends whose map holds `capacity` keys."""
        keys: set[bytes] = set()
        end = self.cleaned_to
        for batch in self.batches:
            if batch.next <= self.cleaned_to:
                continue
            if batch.next > limit:
                break
            fits = set(keys)
            for record in batch.records:
                if record.key is None or record.offset < self.cleaned_to:
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
                if self.cleaned_to <= record.offset < end and record.key is not None:
                    latest[record.key] = record.offset
        cleaned = []
        for batch in self.batches:
            stays: Batch | None = batch
            if batch.base < end:
                stays = self._cleaned(batch, end, latest, now_ms, now_ms + delete_retention_ms)
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
        now_ms: int,
        horizon_ms: int,
    ) -> Batch | None:
        past = batch.horizon_ms is not None and batch.horizon_ms <= now_ms
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
        """What a consumer gets: offset, key, value."""
        return [
            (record.offset, record.key, record.value)
            for batch in self.batches
            for record in batch.records
        ]
