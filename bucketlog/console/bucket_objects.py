"""The page Bucket: the objects of a log, listed once for a while; chains, sizes, deletions.

Invariant: a listing ends with an error at `objects_max` objects, so that neither memory nor
requests grow with the bucket. What is computed from a listing is pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import TopicId, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo, SyncBucket
from bucketlog.tiered_storage.segment import is_seal
from bucketlog.tiered_storage.tails import registered_epochs

KINDS: Mapping[str, str] = {
    keys.LOG: "Log segments and seals",
    keys.SEGMENTS: "Partition segments (tier)",
    keys.MANIFESTS: "Manifests (tier)",
    keys.CHECKPOINTS: "Checkpoints",
    keys.FLOORS: "Floors",
    keys.WRITERS: "Registrations of writers",
    keys.EPOCHS: "Claims of epochs",
}


@dataclass(frozen=True, slots=True)
class BucketObjects:
    """All objects by kind (`KINDS`), as listed at `listed_ms`."""

    listed_ms: int
    by_kind: Mapping[str, Sequence[ObjectInfo]]

    @property
    def count(self) -> int:
        return sum(map(len, self.by_kind.values()))

    @property
    def size_bytes(self) -> int:
        return sum(info.size_bytes for infos in self.by_kind.values() for info in infos)


def list_objects(bucket: SyncBucket, *, objects_max: int, now_ms: int) -> BucketObjects:
    """Raises `ConfigurationError` for more objects, and the bucket's errors."""
    left = objects_max
    found: dict[str, list[ObjectInfo]] = {}
    for kind in KINDS:
        listed = found.setdefault(kind, [])
        for info in bucket.list(kind):
            if not left:
                raise ConfigurationError(
                    f"the bucket has more than {objects_max:,} objects",
                    remedy="raise BUCKETLOG_CONSOLE_OBJECTS_MAX, or use `bucketlog segment ls`",
                )
            listed.append(info)
            left -= 1
    return BucketObjects(now_ms, found)


class KindRow(NamedTuple):
    kind: str
    name: str
    objects: int
    size_bytes: int
    newest_ms: int


def kind_rows(objects: BucketObjects) -> list[KindRow]:
    return [
        KindRow(
            kind,
            KINDS[kind],
            len(infos),
            sum(info.size_bytes for info in infos),
            max((info.modified_ms for info in infos), default=-1),
        )
        for kind, infos in objects.by_kind.items()
    ]


class ChainSegment(NamedTuple):
    seq: int
    size_bytes: int
    created_ms: int
    is_seal: bool


@dataclass(frozen=True, slots=True)
class WriterChain:
    """`segments` are the objects that are there. `gaps` are (first, end) of sequence numbers
    between them whose objects are not there; `first_seq` > 0: those below were deleted, too."""

    writer: WriterId
    epoch: int
    segments: Sequence[ChainSegment]
    gaps: Sequence[tuple[int, int]]

    @property
    def first_seq(self) -> int:
        return self.segments[0].seq if self.segments else 0

    @property
    def is_sealed(self) -> bool:
        return any(segment.is_seal for segment in self.segments)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def count(self) -> int:
        return sum(not segment.is_seal for segment in self.segments)

    @property
    def last_ms(self) -> int:
        return max((segment.created_ms for segment in self.segments), default=-1)


def writer_chains(objects: BucketObjects) -> list[WriterChain]:
    """The newest epoch first, in it the chain that was written last. Raises `InvalidDataError`."""
    epochs = registered_epochs(objects.by_kind[keys.WRITERS])
    listed: dict[WriterId, list[ChainSegment]] = {writer: [] for writer in epochs}
    for info in objects.by_kind[keys.LOG]:
        at = keys.parse_segment(info.key)
        listed.setdefault(at.writer, []).append(
            ChainSegment(at.seq, info.size_bytes, info.modified_ms, is_seal(info.size_bytes))
        )
    chains = [
        WriterChain(
            writer, epochs.get(writer, -1), segments := sorted(found), list(_gaps(segments))
        )
        for writer, found in listed.items()
    ]
    return sorted(chains, key=lambda chain: (-chain.epoch, -chain.last_ms))


def _gaps(segments: Sequence[ChainSegment]) -> Iterator[tuple[int, int]]:
    for before, after in pairwise(segments):
        if after.seq > before.seq + 1:
            yield before.seq + 1, after.seq


class SizeBar(NamedTuple):
    """Objects of at least `least` and less than twice as many bytes."""

    least: int
    objects: int


def size_bars(infos: Iterable[ObjectInfo]) -> list[SizeBar]:
    """By powers of two, without the empty ones at both ends."""
    counts: dict[int, int] = {}
    for info in infos:
        power = max(info.size_bytes, 1).bit_length() - 1
        counts[power] = counts.get(power, 0) + 1
    if not counts:
        return []
    return [SizeBar(1 << at, counts.get(at, 0)) for at in range(min(counts), max(counts) + 1)]


class TierSize(NamedTuple):
    """The number and size of the objects in a topic's tiers."""

    topic_id: TopicId
    objects: int
    size_bytes: int


def tier_sizes(objects: BucketObjects) -> list[TierSize]:
    """Objects of tiers by topic, the largest first. Raises `InvalidDataError`."""
    sums: dict[TopicId, tuple[int, int]] = {}
    for kind in (keys.SEGMENTS, keys.MANIFESTS):
        for info in objects.by_kind[kind]:
            topic_id = keys.parse_tier_object(info.key).partition.topic_id
            count, size = sums.get(topic_id, (0, 0))
            sums[topic_id] = count + 1, size + info.size_bytes
    rows = [TierSize(topic_id, *found) for topic_id, found in sums.items()]
    return sorted(rows, key=lambda row: -row.size_bytes)


class TimeBar(NamedTuple):
    """Bytes of log segments that were written from `begin_ms` on, for `span_ms`."""

    begin_ms: int
    span_ms: int
    size_bytes: int
    objects: int


BARS_MAX, BARS_MIN = 60, 30
SPANS_MS = (1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000)


def time_bars(objects: BucketObjects) -> list[TimeBar]:
    """The written bytes over time, by the store's clock. Long logs show their last part, and short
    ones begin with an empty time."""
    infos = [info for info in objects.by_kind[keys.LOG] if not is_seal(info.size_bytes)]
    if not infos:
        return []
    first = min(info.modified_ms for info in infos)
    last = max(info.modified_ms for info in infos)
    span = next((each for each in SPANS_MS if (last - first) // each < BARS_MAX), SPANS_MS[-1])
    newest = last // span
    oldest = max(min(first // span, newest - BARS_MIN + 1), newest - BARS_MAX + 1)
    sums = dict.fromkeys(range(oldest, newest + 1), (0, 0))
    for info in infos:
        at = info.modified_ms // span
        if at in sums:
            size, count = sums[at]
            sums[at] = size + info.size_bytes, count + 1
    return [TimeBar(at * span, span, *found) for at, found in sums.items()]


@dataclass(frozen=True, slots=True)
class ObjectsSummary:
    """The figures of a listing that pages show. `sizes` has a chart of object sizes for each kind
    with many objects."""

    kinds: Sequence[KindRow]
    chains: Sequence[WriterChain]
    time_bars: Sequence[TimeBar]
    sizes: Mapping[str, Sequence[SizeBar]]
    tiers: Sequence[TierSize]
    checkpoints: Sequence[ObjectInfo]
    floors: Sequence[ObjectInfo]


NEWEST_SHOWN = 5


def summary_of(objects: BucketObjects) -> ObjectsSummary:
    """Return the figures of a listing. Raises `InvalidDataError`."""
    by_kind = objects.by_kind
    return ObjectsSummary(
        kind_rows(objects),
        writer_chains(objects),
        time_bars(objects),
        {kind: size_bars(by_kind[kind]) for kind in (keys.LOG, keys.SEGMENTS) if by_kind[kind]},
        tier_sizes(objects),
        sorted(by_kind[keys.CHECKPOINTS], reverse=True)[:NEWEST_SHOWN],
        sorted(by_kind[keys.FLOORS], reverse=True)[:NEWEST_SHOWN],
    )
