"""`topic describe`: partitions with bytes and rates, settings that differ, and groups with lag.

The rate counts the records of the last minute by their timestamps, so one request suffices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from bucketlog.console.figures_text import duration_text, size_text
from bucketlog.log_format.errors import LogError
from bucketlog.terminal import Output, counted, note, print_rows, say, say_json, time_text

if TYPE_CHECKING:
    from bucketlog.client.log import Log
    from bucketlog.client.topics import FirstRecord, TopicDetails

RATE_WINDOW = timedelta(minutes=1)
RETENTION_MS = "retention.ms"
CLEANUP_POLICY = "cleanup.policy"
SHOWN_CONFIGS = frozenset({CLEANUP_POLICY, RETENTION_MS, "retention.bytes"})
"""Shown with their defaults, too."""
PARTITION_COLUMNS = ("partition", "earliest", "latest", "records", "bytes", "records/s")
CONFIG_COLUMNS = ("config", "value", "set")
GROUP_COLUMNS = ("group", "lag", "worst_partition", "its_lag")


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """`sizes`: bytes by partition, None if unknown. `recent`: records of the last minute by
    partition. `oldest`: the first record with a timestamp, by partition. `lags`: of each group."""

    details: "TopicDetails"
    sizes: Mapping[int, int] | None
    recent: Mapping[int, int]
    oldest: "Mapping[int, FirstRecord | None]"
    lags: "tuple[GroupLag, ...]"
    now: datetime

    @property
    def oldest_ms(self) -> int | None:
        times = [record.timestamp_ms for record in self.oldest.values() if record is not None]
        return min((time for time in times if time >= 0), default=None)

    def retention_left_ms(self) -> int | None:
        """Time until retention.ms deletes the oldest record; None if it deletes none."""
        retention_ms = int(self.details.configs.get(RETENTION_MS, -1))
        deletes = "delete" in self.details.configs.get(CLEANUP_POLICY, "delete")
        oldest_ms = self.oldest_ms
        if retention_ms < 0 or not deletes or oldest_ms is None:
            return None
        return max(0, oldest_ms + retention_ms - round(self.now.timestamp() * 1000))


@dataclass(frozen=True, slots=True)
class GroupLag:
    """`lag` is the sum over the topic's partitions with a committed offset, `worst_lag` the largest
    one, of `worst_partition`."""

    group: str
    lag: int
    worst_partition: int
    worst_lag: int


def figures_of(log: "Log", name: str, *, groups_max: int) -> TopicFigures:
    """Raises `LogError`. At most `groups_max` groups are asked for their offsets."""
    details = log.topics.describe(name)
    now = datetime.now(UTC)
    partitions = [part.partition for part in details.partitions]
    since = log.topics.first_records_at(name, partitions, now - RATE_WINDOW)
    sizes = log.cluster.partition_bytes(name)
    return TopicFigures(
        details,
        None if sizes is None else {part: size for (_, part), size in sizes.items()},
        {
            part.partition: _recent(part.latest, since[part.partition])
            for part in details.partitions
        },
        log.topics.first_records_at(name, partitions, datetime.fromtimestamp(0, UTC)),
        tuple(group_lags(log, details, groups_max)),
        now,
    )


def _recent(latest: int, first: "FirstRecord | None") -> int:
    return 0 if first is None else max(0, latest - first.offset)


def group_lags(log: "Log", details: "TopicDetails", groups_max: int) -> list[GroupLag]:
    try:
        groups = [info.group for info in log.groups.list()]
    except LogError as error:
        note(f"groups are not shown: {error}")
        return []
    if len(groups) > groups_max:
        note(f"{counted(len(groups) - groups_max, 'group')} not looked at: raise --groups-max")
    latest = {part.partition: part for part in details.partitions}
    found = []
    for group in filter(None, groups[:groups_max]):  # librdkafka refuses to ask for the group ""
        lags = {
            part: max(0, latest[part].latest - max(row.offset, latest[part].earliest))
            for part, row in log.groups.committed(group, details.name).items()
            if part in latest
        }
        if lags:
            worst = max(lags, key=lambda part: lags[part])
            found.append(GroupLag(group, sum(lags.values()), worst, lags[worst]))
    return sorted(found, key=lambda row: (-row.lag, row.group))


def print_figures(figures: TopicFigures, output: Output, *, all_configs: bool) -> None:
    details = figures.details
    rows = [_row(figures, at) for at in range(len(details.partitions))]
    configs = [
        {"config": key, "value": value, "set": "topic" if key in details.overrides else "default"}
        for key, value in sorted(details.configs.items())
        if all_configs or key in details.overrides or key in SHOWN_CONFIGS
    ]
    groups = [
        {
            "group": row.group,
            "lag": row.lag,
            "worst_partition": row.worst_partition,
            "its_lag": row.worst_lag,
        }
        for row in figures.lags
    ]
    if output is not Output.TABLE:
        whole = {
            "topic": details.name,
            "partitions": rows,
            "configs": details.configs,
            "overrides": sorted(details.overrides),
            "bytes": None if figures.sizes is None else sum(figures.sizes.values()),
            "oldest_ms": figures.oldest_ms,
            "retention_left_ms": figures.retention_left_ms(),
            "groups": groups,
        }
        say_json(whole)
        return
    say(*_summary(figures))
    say()
    print_rows(rows, PARTITION_COLUMNS, output)
    for table, columns in ((configs, CONFIG_COLUMNS), (groups, GROUP_COLUMNS)):
        if table:
            say()
            print_rows(table, columns, output)


def _row(figures: TopicFigures, at: int) -> dict[str, Any]:
    part = figures.details.partitions[at]
    sizes = figures.sizes or {}
    return {
        "partition": part.partition,
        "earliest": part.earliest,
        "latest": part.latest,
        "records": part.latest - part.earliest,
        "bytes": sizes.get(part.partition),
        "records/s": round(figures.recent[part.partition] / RATE_WINDOW.total_seconds(), 1),
    }


def _summary(figures: TopicFigures) -> list[str]:
    details = figures.details
    left_ms = figures.retention_left_ms()
    rate = sum(figures.recent.values()) / RATE_WINDOW.total_seconds()
    shown = {
        "topic": details.name,
        "partitions": f"{len(details.partitions):,}",
        "records": f"{sum(part.latest - part.earliest for part in details.partitions):,}",
        "size": "-" if figures.sizes is None else size_text(sum(figures.sizes.values())),
        "rate": f"{rate:,.1f} records/s in the last minute",
        "oldest record": "-" if figures.oldest_ms is None else time_text(figures.oldest_ms),
        "deleted in": "-" if left_ms is None else f"{duration_text(left_ms)} ({RETENTION_MS})",
    }
    return [f"{name:<16}{value}" for name, value in shown.items()]
