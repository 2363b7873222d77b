"""The part of `segment verify` that checks tiers: every object that the fold names is there, each
of its bytes holds, it is what its row says, and where a log segment still has batches that are in
the tier now, they are the same, or left out as aborted. Objects that nothing names are counted:
leftovers of a job that did not count, or objects that are soon to be deleted.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from bucketlog.inspect.verify_report import Damage, VerifyReport
from bucketlog.inspect.verify_transactions import InTier
from bucketlog.log_format.batch import read_header
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError, ObjectNotFoundError
from bucketlog.log_format.model import SegmentId, TierObject, TierRow, TopicIdPartition
from bucketlog.metadata.fold import LogState, PartitionState
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.manifest import MANIFEST_SPAN, decode_manifest
from bucketlog.tiered_storage.partition_segment import HEADER, check_partition_segment, walk_batches

OBJECTS_IN_FLIGHT = 2
"""Number of objects that are read at a time: they are large, and are read whole."""
_MISSING = "it is missing, and its tier names it"


class LoggedBatch(NamedTuple):
    """A batch of a committed log segment; `crc` is from its header. `in_tier`: whether the tier has
    the batch once its partition has been split up to it."""

    base_offset: int
    next_offset: int
    length: int
    crc: int
    segment: SegmentId
    position: int
    in_tier: InTier = InTier.KEPT


class _StoredBatch(NamedTuple):
    next_offset: int
    length: int
    crc: int
    records: int


class _TierObjectCheck(NamedTuple):
    damage: Damage | None
    batches: Mapping[int, "_StoredBatch"] = {}
    """By base offset."""


def check_tiers(
    bucket: SyncBucket,
    state: LogState,
    logged: Mapping[TopicIdPartition, Sequence[LoggedBatch]],
    report: VerifyReport,
    on_listed: Callable[[int], Callable[[], None]],
) -> None:
    """`logged` are the batches of committed log segments that are there, in offset order."""
    named: set[TierObject] = set()
    wanted: list[tuple[TopicIdPartition, TierRow, Sequence[LoggedBatch]]] = []
    for partition, entry in state.partitions.items():
        batches = _compared(entry, logged.get(partition, ()))
        rows: list[TierRow] = []
        damaged = len(report.damage)
        for row in entry.tier.rows:
            named.add(TierObject.of(partition, row))
            rows += _listed(bucket, partition, row, report) if row.manifest else [row]
        if len(report.damage) == damaged:  # else what a manifest lists is not known
            _check_gaps(rows, batches, report)
        named.update(TierObject.of(partition, row) for row in rows)
        wanted += [
            (partition, row, _in_row(row, batches)) for row in rows if row.end > entry.log_start
        ]
    on_checked = on_listed(len(wanted)) if wanted else lambda: None
    with ThreadPoolExecutor(OBJECTS_IN_FLIGHT) as pool:
        found = pool.map(lambda one: _check_object(bucket, one[0], one[1]), wanted)
        for (partition, row, batches), checked in zip(wanted, found, strict=True):
            if checked.damage is not None:
                report.damage.append(checked.damage)
            else:
                report.partition_segments += 1
                report.size_bytes += row.size_bytes
                _compare(TierObject.of(partition, row), checked.batches, batches, report)
            on_checked()
    _count_others(bucket, named, report)


def _listed(
    bucket: SyncBucket, partition: TopicIdPartition, row: TierRow, report: VerifyReport
) -> list[TierRow]:
    there = TierObject.of(partition, row)
    key = keys.tier_object(there)
    try:
        rows = decode_manifest(there, bucket.get(key, MANIFEST_SPAN).data)
    except ObjectNotFoundError:
        report.found(key, 0, _MISSING)
    except CorruptObjectError as error:
        report.found(key, error.position, error.reason)
    except InvalidDataError as error:
        report.found(key, 0, error.message)
    else:
        batch_bytes = sum(each.batch_bytes for each in rows)
        said = rows[-1].end, batch_bytes, len(rows)
        if said != (row.end, row.batch_bytes, row.segments):
            report.found(key, 0, "it lists something else than its row in the tier says")
        report.manifests += 1
        report.size_bytes += row.size_bytes
        return rows
    return []


def _check_object(
    bucket: SyncBucket, partition: TopicIdPartition, row: TierRow
) -> _TierObjectCheck:
    there = TierObject.of(partition, row)
    key = keys.tier_object(there)
    try:
        data = memoryview(bucket.get(key).data)
        index = check_partition_segment(there, data)
    except ObjectNotFoundError:
        return _TierObjectCheck(Damage(key, 0, _MISSING))
    except CorruptObjectError as error:
        return _TierObjectCheck(Damage(key, error.position, error.reason))
    except InvalidDataError as error:
        return _TierObjectCheck(Damage(key, 0, error.message))
    if (index.end, index.batch_bytes, len(data)) != (row.end, row.batch_bytes, row.size_bytes):
        return _TierObjectCheck(Damage(key, 0, "it is not what its row in the tier says"))
    first = len(HEADER)
    return _TierObjectCheck(
        None,
        {
            placed.base_offset: _StoredBatch(
                placed.next_offset, placed.length, header.crc, header.record_count
            )
            for placed in walk_batches(key, data[first : index.batches_end], first)
            for header in (read_header(data, placed.position),)
        },
    )


def _compared(entry: PartitionState, logged: Sequence[LoggedBatch]) -> Sequence[LoggedBatch]:
    """Which batches of log segments are in the tier byte for byte: none that key compaction has
    seen, nor those below the log start."""
    first = max(
        bisect_right(logged, entry.log_start, key=_end),
        bisect_left(logged, entry.tier.cleaned_to, key=_base),
    )
    return logged[first : bisect_right(logged, entry.tier.end, key=_end)]


def _base(batch: LoggedBatch) -> int:
    return batch.base_offset


def _end(batch: LoggedBatch) -> int:
    return batch.next_offset


def _in_row(row: TierRow, batches: Sequence[LoggedBatch]) -> Sequence[LoggedBatch]:
    first = bisect_left(batches, row.start, key=_base)
    return batches[first : bisect_left(batches, row.end, key=_base)]


def _compare(
    there: TierObject,
    found: Mapping[int, _StoredBatch],
    batches: Sequence[LoggedBatch],
    report: VerifyReport,
) -> None:
    for batch in batches:
        stored = found.get(batch.base_offset)
        is_same = stored is not None and stored[:3] == (batch.next_offset, batch.length, batch.crc)
        is_empty = stored is None or stored.records == 0
        if batch.in_tier is InTier.LEFT_OUT and not is_empty:
            reason = "is of an aborted transaction, or a marker: tiers leave both out"
        elif not is_same and (batch.in_tier is InTier.KEPT or not is_empty):
            reason = f"is not that of {keys.segment(batch.segment)!r}"
        else:
            continue
        report.found(
            keys.tier_object(there), 0, f"the batch at offset {batch.base_offset} {reason}"
        )


def _check_gaps(
    rows: Sequence[TierRow], batches: Sequence[LoggedBatch], report: VerifyReport
) -> None:
    """Every batch that left the log segments is in reach of an object."""
    reached = {batch.base_offset for row in rows for batch in _in_row(row, batches)}
    for batch in batches:
        if batch.base_offset not in reached and batch.in_tier is InTier.KEPT:
            report.found(
                keys.segment(batch.segment),
                batch.position,
                f"the batch at offset {batch.base_offset} is in no object of its tier",
            )


def _count_others(bucket: SyncBucket, named: set[TierObject], report: VerifyReport) -> None:
    for prefix in (keys.SEGMENTS, keys.MANIFESTS):
        for info in bucket.list(prefix):
            try:
                report.unreferenced += keys.parse_tier_object(info.key) not in named
            except InvalidDataError as error:
                report.found(info.key, 0, error.message)
