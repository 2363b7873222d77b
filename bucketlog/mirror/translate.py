"""Finishes an export: compares both clusters, and commits the groups' offsets in the target.

The n-th record of a partition is the same in both clusters. One pass over both compares the
records, and finds the target's offset for each offset that a group has committed. In compacted
topics, only the latest record of each key is compared, because the clusters compact at different
times. There, a group continues at the first of these records that it has not read.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import NamedTuple

from bucketlog.client.admin import Admin
from bucketlog.log_format.errors import LogError
from bucketlog.mirror.copier import MirrorError
from bucketlog.mirror.export import Export, ends_of
from bucketlog.mirror.groups import (
    HAS_MEMBERS,
    Committed,
    commit_offsets,
    committed_offsets,
    group_names,
)
from bucketlog.mirror.run import ClusterAccess
from bucketlog.mirror.source import Partition
from bucketlog.mirror.topics import compacted_of
from bucketlog.mirror.verify import DIGEST_BYTES, ComparedReader, ReadRecord
from bucketlog.terminal import counted


@dataclass(frozen=True, slots=True)
class ExportEnd:
    """The result of `finish`.

    `partitions` and `records` are the numbers that were compared. `same_offsets` is the number of
    partitions whose records all have the same offsets in both clusters. `groups` is the number of
    groups whose offsets were committed in the target.
    """

    partitions: int
    same_offsets: int
    records: int
    groups: int


def finish(
    export: Export,
    source: ClusterAccess,
    target: ClusterAccess,
    groups: Sequence[str],
    report: Callable[[str], None],
    *,
    timeout_s: float,
) -> ExportEnd:
    """Compare both clusters, and commit the offsets of groups that match the patterns.

    All records must be exported, and producers stopped. `timeout_s` bounds each wait for a record.
    Raises `MirrorError`, `LogError`.
    """
    export.check_partitions()
    committed = {
        group: committed_offsets(source.admin, group) for group in group_names(source.admin, groups)
    }
    starts = ends_of(source.admin, export.topics, earliest=True)
    ours, theirs = ends_of(source.admin, export.topics), ends_of(target.admin, export.topics)
    readers = ComparedReader(source.config, timeout_s), ComparedReader(target.config, timeout_s)
    compacted = compacted_of(source.admin, export.topics)
    translated: dict[tuple[Partition, int], int] = {}
    records = same = 0
    try:
        for partition in sorted(starts):
            wanted = sorted(
                {rows[partition][0] for rows in committed.values() if partition in rows}
            )
            places = starts[partition], ours[partition], theirs[partition]
            compare = _compare_latest if partition.topic in compacted else _compare
            count, is_same = compare(partition, places, readers, wanted, translated)
            records += count
            same += is_same
    finally:
        for reader in readers:
            reader.close()
    export.wait_for_coordinator()
    moved_groups = 0
    for group, rows in committed.items():
        moved: Committed = {
            partition: (translated[partition, offset], metadata)
            for partition, (offset, metadata) in rows.items()
            if (partition, offset) in translated
        }
        moved_groups += _move(group, moved, target.admin, report)
    return ExportEnd(len(starts), same, records, moved_groups)


def _move(group: str, moved: Committed, target: Admin, report: Callable[[str], None]) -> bool:
    """Commit the offsets, except where the target has a higher offset: consumers may have read
    further there. Returns whether an offset was committed."""
    there = committed_offsets(target, group) if moved else {}
    behind = {each for each, (offset, _) in moved.items() if offset < there.get(each, (0, ""))[0]}
    if behind:
        report(
            f"group {group!r} has read further in the target: its offsets there of "
            f"{counted(len(behind), 'partition')} are not changed"
        )
    left = {partition: row for partition, row in moved.items() if partition not in behind}
    try:
        if left:
            commit_offsets(target, group, left)
    except LogError as error:
        if error.code not in HAS_MEMBERS:
            raise
        report(f"group {group!r} has members in the target: its offsets there are not changed")
        return False
    return bool(left)


def _compare(
    partition: Partition,
    places: tuple[int, int, int],
    readers: tuple[ComparedReader, ComparedReader],
    wanted: list[int],
    translated: dict[tuple[Partition, int], int],
) -> tuple[int, bool]:
    """Compare a partition. Returns the number of records, and whether all have the same offsets.

    `places` are the start and end at the source, and the end in the target. `wanted` are the
    offsets to translate, in ascending order; their translations are added to `translated`.
    """
    _, end, end_there = places
    ours, theirs = _both(partition, places, readers)
    count, is_same = 0, True
    for one, other in zip_longest(ours, theirs):
        if one is None or other is None or one[1:] != other[1:]:
            raise _different(partition, one.offset if one is not None else end)
        while wanted and wanted[0] <= one.offset:
            translated[partition, wanted.pop(0)] = other.offset
        count += 1
        is_same &= one.offset == other.offset
    for offset in wanted:
        translated[partition, offset] = end_there
    return count, is_same


def _compare_latest(
    partition: Partition,
    places: tuple[int, int, int],
    readers: tuple[ComparedReader, ComparedReader],
    wanted: list[int],
    translated: dict[tuple[Partition, int], int],
) -> tuple[int, bool]:
    """Compare the latest record of each key, as `_compare` does for all records. One cluster may
    have deleted a tombstone. Keeps a digest of each key in memory."""
    ours, theirs = map(_latest, _both(partition, places, readers))
    for key in ours.keys() | theirs.keys():
        one, other = ours.get(key), theirs.get(key)
        if (one and one.digest) != (other and other.digest):
            raise _different(partition, one.offset if one is not None else places[1])
    pairs = sorted((one.offset, theirs[key].offset) for key, one in ours.items() if key in theirs)
    for offset in wanted:
        after = (there for here, there in pairs if here >= offset)
        translated[partition, offset] = next(after, places[2])
    live = sum(one.digest is not None for one in ours.values())
    return live, all(here == there for here, there in pairs)


class _Latest(NamedTuple):
    """The latest record of a key. `digest` is None for a tombstone."""

    offset: int
    digest: bytes | None


def _latest(records: Iterator[ReadRecord]) -> dict[bytes, _Latest]:
    return {
        record.key or b"": _Latest(
            record.offset,
            None
            if record.value is None
            else blake2b(repr(record[1:]).encode(), digest_size=DIGEST_BYTES).digest(),
        )
        for record in records
    }


def _both(
    partition: Partition,
    places: tuple[int, int, int],
    readers: tuple[ComparedReader, ComparedReader],
) -> tuple[Iterator[ReadRecord], Iterator[ReadRecord]]:
    start, end, end_there = places
    return (
        readers[0].records(partition, start, end) if start < end else iter(()),
        readers[1].records(partition, 0, end_there) if end_there else iter(()),
    )


def _different(partition: Partition, offset: int) -> MirrorError:
    return MirrorError(
        f"{partition}: the clusters differ at offset {offset} of the source",
        remedy="stop the producers of both clusters, and run the command again",
    )
