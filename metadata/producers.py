"""Idempotent producers in the fold: which batches are kept, and when a producer is forgotten. Pure.

Invariants: times come from the committed segments in ticket order, never from the wall clock, so
that every fold computes the same times. A producer is forgotten as a whole or not at all. A
checkpoint forgets producers by the log's clock or the checkpointer's, whichever is earlier.
"""

import struct
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import NamedTuple, TypeAlias

PRODUCER_BATCHES_KEPT = 5
"""Batches kept for each producer to recognise duplicates; the same number as in Kafka."""

CLOCK_BLOCK_SEGMENTS = 1024
"""Segments in a block of the log's clock. A segment counts in its own block and in the next."""


def last_sequence(first: int, record_count: int) -> int:
    """Sequence numbers wrap to 0 after 2^31 - 1 (Kafka: DefaultRecordBatch.incrementSequence)."""
    return (first + record_count - 1) & 0x7FFFFFFF


class ProducedBatch(NamedTuple):
    """A kept batch, to recognise duplicates. `appended_ms` is the log's clock after the segment of
    the batch."""

    producer_epoch: int
    first_sequence: int
    last_sequence: int
    base_offset: int
    appended_ms: int


Producers: TypeAlias = Mapping[int, Sequence[ProducedBatch]]
"""The batches of one partition by producer id, oldest first."""

PACKED_BATCH = struct.Struct(">hiiqq")
"""A `ProducedBatch` in a checkpoint."""


class ProducerTable(MutableMapping[int, list[ProducedBatch]]):
    """`Producers` in packed form, because a log may have a million of them: a producer with one
    batch takes about 200 bytes, half of what objects would take. Returned lists are copies."""

    __slots__ = ("_packed",)

    def __init__(self, producers: Producers | None = None) -> None:
        self._packed: dict[int, bytes] = {}
        for producer_id, batches in (producers or {}).items():
            self[producer_id] = batches

    def note(self, producer_id: int, batch: ProducedBatch) -> None:
        """Append a batch, and drop all but the last `PRODUCER_BATCHES_KEPT` of its producer."""
        before = self._packed.get(producer_id, b"")
        kept = before[-(PRODUCER_BATCHES_KEPT - 1) * PACKED_BATCH.size :]
        self._packed[producer_id] = kept + PACKED_BATCH.pack(*batch)

    def packed_batches(self) -> Iterator[tuple[int, bytes]]:
        """Return each batch as producer id and `PACKED_BATCH`, a producer's oldest batch first."""
        size = PACKED_BATCH.size
        for producer_id, packed in self._packed.items():
            for at in range(0, len(packed), size):
                yield producer_id, packed[at : at + size]

    def batch_count(self) -> int:
        return sum(map(len, self._packed.values())) // PACKED_BATCH.size

    def __getitem__(self, producer_id: int) -> list[ProducedBatch]:
        return [*map(ProducedBatch._make, PACKED_BATCH.iter_unpack(self._packed[producer_id]))]

    def __setitem__(self, producer_id: int, batches: Sequence[ProducedBatch]) -> None:
        self._packed[producer_id] = b"".join(PACKED_BATCH.pack(*batch) for batch in batches)

    def __delitem__(self, producer_id: int) -> None:
        del self._packed[producer_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


class LogClock(NamedTuple):
    """The log's clock: the latest `created_ms` of the last 1,024 to 2,048 segments.

    Kafka measures a producer's idle time by the clock of one broker. Here many brokers write, and
    the clock of each may be wrong:

    - A clock that is behind has no effect while segments of another broker count.
    - A clock that is ahead, even by years, expires no producer by itself: a checkpoint uses the
      earlier of this clock and the checkpointer's (`IdleLimit`). Producers that write while the
      wrong time counts stay until that time, or until they write again. After 2,048 segments
      with right times, the log's clock is right again.

    `segments` is the number of segments in the current block. `latest_ms` is their latest time,
    `before_ms` the latest time of the block before.
    """

    segments: int = 0
    latest_ms: int = 0
    before_ms: int = 0

    @property
    def now_ms(self) -> int:
        return max(self.latest_ms, self.before_ms)

    def after(self, created_ms: int) -> "LogClock":
        """The clock after one more segment."""
        if self.segments >= CLOCK_BLOCK_SEGMENTS:
            return LogClock(1, max(0, created_ms), self.latest_ms)
        return LogClock(self.segments + 1, max(self.latest_ms, created_ms), self.before_ms)


class IdleLimit(NamedTuple):
    """Producers that have not written for `idle_ms` may be forgotten (Kafka:
    `producer.id.expiration.ms`). `now_ms` is the earliest of the checkpointer's clocks."""

    now_ms: int
    idle_ms: int

    def since_ms(self, clock: LogClock) -> int:
        """Producers whose batches are all from before this time may be forgotten."""
        return max(0, min(self.now_ms, clock.now_ms) - self.idle_ms)


def is_idle(batches: Sequence[ProducedBatch], since_ms: int) -> bool:
    """Return whether a producer with these batches may be forgotten."""
    return all(batch.appended_ms < since_ms for batch in batches)


def same_producers(
    one: Producers, other: Producers, *, since_ms: int, times_from_ms: int = 0
) -> bool:
    """Return whether two folds of one log agree about producers. Each fold may have forgotten
    producers whose batches are all from before `since_ms`.

    A producer that was forgotten and wrote again has fewer batches than in a fold that never
    forgot the producer. The batches in both folds must be equal; batches in only one fold must be
    from before `since_ms`. Times before `times_from_ms` may be guesses, and are not compared.
    """
    return all(
        _same_batches(one.get(producer, ()), other.get(producer, ()), since_ms, times_from_ms)
        for producer in one.keys() | other.keys()
    )


def _same_batches(
    one: Sequence[ProducedBatch],
    other: Sequence[ProducedBatch],
    since_ms: int,
    times_from_ms: int,
) -> bool:
    shorter, longer = sorted((one, other), key=len)
    cut = len(longer) - len(shorter)
    return is_idle(longer[:cut], since_ms) and all(
        left[:-1] == right[:-1]
        and (
            left.appended_ms == right.appended_ms
            or min(left.appended_ms, right.appended_ms) < times_from_ms
        )
        for left, right in zip(shorter, longer[cut:], strict=True)
    )
