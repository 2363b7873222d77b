"""Plans of compaction: windows of log segments, runs of small rows, old rows. Pure.

Invariants: a window is a prefix of the log segments that still hold their own batches, in an
order in which those of a partition come one after another, so that each partition's part of it
begins at the end of its tier; it ends at or before the last stable offset. A merge replaces
neighbours; a manifest replaces the oldest rows. Nothing here touches a batch: columns are bisected
and sliced. Source: docs/decisions/0008-old-segments.md.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, islice
from typing import NamedTuple, Protocol

from bucketlog.log_format.model import SegmentId, TierRow, TopicIdPartition, WaitingSegment
from bucketlog.log_format.transactions import AbortedTransaction, PartitionTransactions

MIB = 1024 * 1024
_TRIMMED_PART = 8


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """Settings of compaction. At most `window_bytes` of log segments are split at once, and held in
    memory. Fewer are split if the oldest is older than `interval_ms`. Segments younger than
    `age_ms_min` stay: the readers of the log's end have them in memory.

    Partition segments grow to `segment_bytes_target`, from parts that are alike: `merge_rows_min`
    neighbours or more, unless their partition is quiet. At most `tier_rows_max` rows that will not
    be merged any more stay beside manifests of up to `manifest_segments_max`.
    """

    window_bytes: int = 256 * MIB
    interval_ms: int = 3_600_000
    age_ms_min: int = 60_000
    segment_bytes_target: int = 128 * MIB
    merge_rows_min: int = 8
    tier_rows_max: int = 64
    manifest_segments_max: int = 1_024

    @property
    def full_bytes(self) -> int:
        """A partition segment with this many bytes of batches is not merged any more."""
        return self.segment_bytes_target // 2


# Splitting ----------------------------------------------------------------------------------------


class TierEnd(Protocol):
    @property
    def end(self) -> int: ...


class LogBatches(Protocol):
    """The batches of a partition that end above `batches_from`, hence are in log segments and not
    in its tier, column by column, in offset order. Borrowed: nobody changes them meanwhile."""

    @property
    def tier(self) -> TierEnd: ...

    @property
    def batches_from(self) -> int: ...

    @property
    def last_stable_offset(self) -> int: ...

    @property
    def transactions(self) -> PartitionTransactions: ...

    @property
    def next_offsets(self) -> Sequence[int]: ...

    @property
    def lengths(self) -> Sequence[int]: ...

    @property
    def segments(self) -> Sequence[SegmentId]: ...


class PartitionRange(NamedTuple):
    """A partition's part of a window: offsets from `start`, the end of its tier, and before `end`.
    A reader of the window finds this number of batches and bytes that end above `batches_from`;
    otherwise something is missing. Below it, batches are in the tier or are gone. The counts
    include batches of `aborted` transactions and markers, which the split leaves out."""

    start: int
    batches_from: int
    end: int
    batches: int
    batch_bytes: int
    aborted: tuple[AbortedTransaction, ...] = ()


class SplitPlan(NamedTuple):
    """The log segments to read, in that order, and the part of each partition to split off."""

    segments: tuple[WaitingSegment, ...]
    ranges: dict[TopicIdPartition, PartitionRange]


def plan_split(
    waiting: Iterable[WaitingSegment],
    logs: Mapping[TopicIdPartition, LogBatches],
    *,
    settings: CompactionSettings,
    now_ms: int,
) -> SplitPlan | None:
    """Plan a split. `waiting` are all log segments that have batches in `logs`, each after those
    before it of the same partitions. Segments without such batches may be among them, and are not
    read.

    A partition with an open transaction waits at its last stable offset, without delaying the
    others. Returns None if nothing is due. A window is due when it is full, or else after the
    interval: large windows give large objects, and each costs a PUT a partition, however little it
    holds. The plan's cost depends on the batches in the window, not on the batches behind it.
    """
    stable = {
        partition: (log, count)
        for partition, log in logs.items()
        if (count := bisect_right(log.next_offsets, log.last_stable_offset))
    }
    oldest = {log.segments[0] for log, _ in stable.values()}
    from_oldest = dropwhile(lambda each: each.segment not in oldest, waiting)
    chosen, full = _window(from_oldest, settings, now_ms)
    if not chosen or not (full or now_ms - chosen[0].created_ms >= settings.interval_ms):
        return None
    window = {each.segment for each in chosen}
    used: set[SegmentId] = set()
    ranges = {}
    for partition, (log, most) in stable.items():
        count = bisect_left(log.segments, True, key=lambda segment: segment not in window)
        count = min(count, most)
        if count:
            used.update(islice(log.segments, count))
            end = log.next_offsets[count - 1]
            ranges[partition] = PartitionRange(
                log.tier.end,
                log.batches_from,
                end,
                count,
                sum(islice(log.lengths, count)),
                tuple(log.transactions.aborted_in(log.batches_from, end)),
            )
    return SplitPlan(tuple(each for each in chosen if each.segment in used), ranges)


def _window(
    waiting: Iterable[WaitingSegment], settings: CompactionSettings, now_ms: int
) -> tuple[list[WaitingSegment], bool]:
    """Return the segments of a window, and whether it is full: one segment more would be too
    much."""
    chosen: list[WaitingSegment] = []
    total = 0
    for each in waiting:
        if now_ms - each.created_ms < settings.age_ms_min:
            break
        if chosen and total + each.batch_bytes > settings.window_bytes:
            return chosen, True
        chosen.append(each)
        total += each.batch_bytes
    return chosen, total >= settings.window_bytes


# Merging ------------------------------------------------------------------------------------------


def plan_merge(
    rows: Sequence[TierRow], *, quiet: bool, settings: CompactionSettings
) -> list[tuple[TierRow, ...]]:
    """Groups of neighbours to become one partition segment each. `quiet`: no batch of the partition
    waits in a log segment.

    Rows of half the target or more are left alone, and manifests. Of the others, neighbours are
    merged
    - when they reach the target together, or
    - when there are `merge_rows_min` or more, none larger than all others together, or
    - in a quiet partition, when there are two or more, none larger than `merge_rows_min` times all
      others together.

    What that costs: by the first two rules whatever is rewritten is in a row at least twice as
    large afterwards, hence a byte is rewritten log2(target / first size) times at most; with 400
    windows of about like size it was 1.0 to 4.5 times. The last rule tidies up behind a burst: of
    up to ninety windows two rows are left at most. A partition that is quiet after every window
    pays for it (300 windows of 1 MB: ten times), but it has little to rewrite. Each group is less
    than one and a half times the target, which is held in memory.
    """
    groups: list[tuple[TierRow, ...]] = []
    for run in _small_runs(rows, settings):
        at = 0
        while (end := _reaches(run, at, settings.segment_bytes_target)) is not None:
            groups.append(tuple(run[at:end]))
            at = end
        rest = run[at:]
        found = _longest(rest, settings.merge_rows_min, 1)
        if not found and quiet:
            found = _longest(rest, 2, settings.merge_rows_min)
        if found:
            groups.append(found)
    return groups


def _small_runs(rows: Sequence[TierRow], settings: CompactionSettings) -> list[list[TierRow]]:
    runs: list[list[TierRow]] = [[]]
    for row in rows:
        if row.manifest or row.batch_bytes >= settings.full_bytes:
            runs.append([])
        else:
            runs[-1].append(row)
    return [run for run in runs if len(run) > 1]


def _reaches(run: Sequence[TierRow], start: int, target_bytes: int) -> int | None:
    """Return the end of the fewest rows from `start` on that reach the target size; None if all
    together do not."""
    total = 0
    for at in range(start, len(run)):
        total += run[at].batch_bytes
        if total >= target_bytes:
            return at + 1
    return None


def _longest(run: Sequence[TierRow], count_min: int, ratio: int) -> tuple[TierRow, ...]:
    """The most neighbours, at least this many, none larger than `ratio` times all others together;
    the oldest of equally many."""
    best: tuple[int, int] = (0, 0)
    for start in range(len(run) - count_min + 1):
        total = largest = 0
        for at in range(start, len(run)):
            size = run[at].batch_bytes
            total, largest = total + size, max(largest, size)
            count = at + 1 - start
            if (
                count >= count_min
                and count > best[1] - best[0]
                and (largest <= ratio * (total - largest))
            ):
                best = (start, at + 1)
    return tuple(run[best[0] : best[1]])


# Manifests ----------------------------------------------------------------------------------------


class ManifestPlan(NamedTuple):
    """A plan for a manifest: `joined`, the manifest before the rows or None, and `rows` become one
    manifest."""

    joined: TierRow | None
    rows: tuple[TierRow, ...]

    @property
    def replaced(self) -> tuple[TierRow, ...]:
        return self.rows if self.joined is None else (self.joined, *self.rows)


def plan_manifest(rows: Sequence[TierRow], *, settings: CompactionSettings) -> ManifestPlan | None:
    """Plan a manifest of the oldest rows, if more than `tier_rows_max` of them will not be merged
    any more: those up to the last that is large enough. Half of them become a manifest, so that
    this is not done again for each.

    Rows that `plan_merge` would still merge stay, and so do all rows after them.
    """
    listed = next((at for at, row in enumerate(rows) if not row.manifest), len(rows))
    merging = {
        row.name for group in plan_merge(rows, quiet=True, settings=settings) for row in group
    }
    settled = listed
    for at in range(listed, len(rows)):
        if rows[at].manifest or rows[at].name in merging:
            break
        if rows[at].batch_bytes >= settings.full_bytes:
            settled = at + 1
    if settled - listed <= settings.tier_rows_max:
        return None
    count = settled - listed - settings.tier_rows_max // 2
    joined = rows[listed - 1] if listed else None
    if joined is not None and joined.segments >= settings.manifest_segments_max:
        joined = None
    room = settings.manifest_segments_max - (0 if joined is None else joined.segments)
    return ManifestPlan(joined, tuple(rows[listed : listed + min(count, room)]))


class ManifestTrim(NamedTuple):
    """A manifest of `kept` replaces a manifest that lists `removed`, too."""

    kept: tuple[TierRow, ...]
    removed: tuple[TierRow, ...]


def plan_trim(listed: Sequence[TierRow], log_start: int) -> ManifestTrim | None:
    """Return which rows of a manifest to remove: those that end at or before the log start. None if
    they are fewer than an eighth, or all rows: then the manifest itself has left the tier."""
    gone = bisect_right(listed, log_start, key=lambda row: row.end)
    if not 0 < gone < len(listed) or gone * _TRIMMED_PART < len(listed):
        return None
    return ManifestTrim(tuple(listed[gone:]), tuple(listed[:gone]))
