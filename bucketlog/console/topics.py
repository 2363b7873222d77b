"""The pages Topics and Topic: what a `LogView` says of each topic. Pure, but for index reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.console.log_view import LogView, PartitionFigures
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_reader.plan import count_records, wanted_rows
from bucketlog.log_reader.planning import with_segments
from bucketlog.log_reader.ranges import OffsetRange
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.topic_configs import TOPIC_CONFIGS
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.log_cut import ReadablePartition
from bucketlog.tiered_storage.tier_reader import read_indexes


@dataclass(frozen=True, slots=True)
class TopicRow:
    """`records` is a bound from above unless `is_exact`. `worst_lag` is that of the group with the
    most unread records, None if no group has offsets."""

    name: str
    partitions: int
    records: int
    is_exact: bool
    log_bytes: int
    tier_bytes: int
    last_ms: int
    settings: int
    groups: int
    worst_lag: int | None
    withheld: int

    @property
    def size_bytes(self) -> int:
        return self.log_bytes + self.tier_bytes


def topic_rows(view: LogView) -> list[TopicRow]:
    """A row for each topic."""
    lags = group_lags(view)
    return [_row(view, topic, lags.get(topic.name, {})) for topic in view.state.topics.values()]


def _row(view: LogView, topic: TopicState, lags: Mapping[str, int]) -> TopicRow:
    figures = [view.figures[partition] for partition in view.partitions_of(topic)]
    exact = [each.is_exact and not each.tier_objects for each in figures]
    return TopicRow(
        name=topic.name,
        partitions=topic.partitions,
        records=sum(
            each.log_records if sure else each.offsets
            for each, sure in zip(figures, exact, strict=True)
        ),
        is_exact=all(exact),
        log_bytes=sum(each.log_bytes for each in figures),
        tier_bytes=sum(each.tier_bytes for each in figures),
        last_ms=max((each.last_ms for each in figures), default=-1),
        settings=len(topic.configs),
        groups=len(lags),
        worst_lag=max(lags.values(), default=None),
        withheld=sum(each.withheld for each in figures),
    )


def group_lags(view: LogView) -> dict[str, dict[str, int]]:
    """Unread records by topic and group, as far as offsets say: gaps count."""
    found: dict[str, dict[str, int]] = {}
    for group, rows in view.state.groups.items():
        for partition, committed in rows.items():
            name = view.state.topics[partition.topic_id].name
            lags = found.setdefault(name, {})
            lags[group] = lags.get(group, 0) + lag_of(view.figures[partition], committed.offset)
    return found


def lag_of(figures: PartitionFigures, committed: int) -> int:
    """Offsets from the committed one, or the log start if it is higher, to the latest."""
    return max(0, figures.latest - max(committed, figures.earliest))


class CountedPartitionRow(NamedTuple):
    """`records` None: not counted. `figures` as in the view."""

    number: int
    figures: PartitionFigures
    records: int | None


class SettingRow(NamedTuple):
    name: str
    value: str
    default: str
    doc: str


def setting_rows(topic: TopicState) -> list[SettingRow]:
    """The settings that were set."""
    known = TOPIC_CONFIGS
    return [
        SettingRow(
            name,
            value,
            known[name].default if name in known else "",
            known[name].documentation if name in known else "",
        )
        for name, value in sorted(topic.configs.items())
    ]


def counted_records(
    bucket: SyncBucket,
    topic: str,
    parts: Sequence[ReadablePartition],
    *,
    index_reads_max: int,
) -> dict[TopicIdPartition, int | None]:
    """The records of each partition, as `bucketlog doctor` counts them, from footers and at most
    `index_reads_max` indexes of partition segments. None: a batch begins below the log start, or
    more indexes would be needed. Raises `CorruptObjectError` and the bucket's errors."""
    found: dict[TopicIdPartition, int | None] = {}
    left = index_reads_max
    for part in parts:
        needed = sum(row.segments + row.manifest for row in part.rows)
        if needed > left:
            found[part.partition] = None
            continue
        left -= needed
        found[part.partition] = _counted(bucket, topic, part)
    return found


def _counted(bucket: SyncBucket, topic: str, part: ReadablePartition) -> int | None:
    end = max(part.log_start, part.end_offset)
    ranges = [OffsetRange(topic, part.partition, part.log_start, end)]
    parts = with_segments(bucket, ranges, {part.partition: part})
    wanted = [(each.partition, row) for each, row in wanted_rows(ranges, parts)]
    return count_records(ranges, parts, read_indexes(bucket, wanted))
