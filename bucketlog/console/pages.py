"""Computes the pages of a console: from the query of an address to the values of a template.

Functions run in threads: they ask the bucket, within the limits of `ConsoleSettings`. Errors are
those of the functions that they call; the application turns them into pages.
"""

import threading
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from secrets import token_urlsafe
from typing import Any, Generic, NamedTuple, TypeVar

from bucketlog.console import charts
from bucketlog.console.aged_value import AgedValue, StillReadingError
from bucketlog.console.broker_access import BrokerAccess
from bucketlog.console.broker_metrics import BrokerMetrics
from bucketlog.console.bucket_objects import (
    BucketObjects,
    ObjectsSummary,
    list_objects,
    summary_of,
)
from bucketlog.console.figures_text import count_text, size_text, time_text
from bucketlog.console.groups import GroupLagRow, group_rows
from bucketlog.console.lag_history import LagHistory
from bucketlog.console.log_checks import LogChecks
from bucketlog.console.log_view import ConsoleLog, LogView
from bucketlog.console.page_deadline import UNBOUNDED, Deadline, DeadlineBucket, TimedBucket
from bucketlog.console.page_query import PageQuery, table_page
from bucketlog.console.pending_plans import PendingPlans
from bucketlog.console.priced_usage import PricedUsage, priced_usage
from bucketlog.console.queries import Queries
from bucketlog.console.record_values import PageValues, RecordValues
from bucketlog.console.replay_runs import ReplayRuns
from bucketlog.console.settings import ConsoleSettings
from bucketlog.console.topics import (
    CountedPartitionRow,
    TopicRow,
    counted_records,
    setting_rows,
    topic_rows,
)
from bucketlog.cost.assumptions import Assumptions
from bucketlog.cost.of_bucket import LoadReader
from bucketlog.inspect.garbage import GarbageReport, find_garbage
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import TopicIdPartition, WallClock
from bucketlog.metadata.fold import TopicState
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from bucketlog.tiered_storage.log_cut import ReadablePartition

Values = dict[str, Any]
S = TypeVar("S")
T = TypeVar("T")

CHART_WIDTH, CHART_HEIGHT = 960.0, 120.0


class UnknownNameError(ConfigurationError):
    """Nothing has the name or the offset in the address."""


class LatestMemo(Generic[S, T]):
    """Keeps the result of `make` for the latest source. `version` returns an object of the source:
    sources with the same object have the same result."""

    def __init__(self, make: Callable[[S], T], version: Callable[[S], object]) -> None:
        self._make = make
        self._version = version
        self._latest: tuple[object, T] | None = None

    def of(self, source: S) -> T:
        version, latest = self._version(source), self._latest
        if latest is None or latest[0] is not version:
            latest = self._latest = version, self._make(source)
        return latest[1]


def itself(source: S) -> S:
    return source


class DueRow(NamedTuple):
    """Objects of a kind that brokers delete on the same occasion."""

    when: str
    kind: str
    objects: int
    size_bytes: int


def due_rows(garbage: GarbageReport) -> list[DueRow]:
    sizes: dict[tuple[str, str], list[int]] = {}
    for one in garbage.garbage:
        sizes.setdefault((one.due, one.kind), []).append(one.size_bytes)
    return [DueRow(*due, len(found), sum(found)) for due, found in sorted(sizes.items())]


@dataclass
class Console:
    """The state that the pages share. `place` names the bucket; `safety_age_ms` is the brokers'
    `deletion_safety_age_ms`; `registry` decodes values, if a schema registry is known; `checks`
    runs checks of the whole log, and is None if the console may not run them; `cluster` connects to
    brokers, and is None without `--bootstrap`; `replays` writes Parquet files, and is None without
    `--replay-folder`; `metrics` reads the brokers' metrics, and is None without `--metrics`."""

    bucket: SyncBucket
    place: str
    settings: ConsoleSettings
    access: KeyAccess
    safety_age_ms: int
    now_ms: WallClock
    now_s: Callable[[], float]
    registry: RecordValues | None = None
    checks: LogChecks | None = None
    cluster: BrokerAccess | None = None
    replays: ReplayRuns | None = None
    metrics: BrokerMetrics | None = None
    new_plan_id: Callable[[], str] = token_urlsafe
    deadline: Deadline = field(default=UNBOUNDED, init=False)
    values: PageValues | None = field(default=None, init=False)
    lag_history: LagHistory = field(init=False)

    def __post_init__(self) -> None:
        work, settings = partial(self._deadline, "read_ms_max"), self.settings
        self._stopped = threading.Event()
        self._whole_bucket = self.bucket
        patience_ms, listing_age_ms = settings.refresh_wait_ms, settings.listing_age_ms
        self._log = ConsoleLog(
            self.bucket,
            self.place,
            refresh_ms=settings.refresh_ms,
            now_ms=self.now_ms,
            work=work,
            patience_ms=patience_ms,
        )
        aged = partial(AgedValue, now_ms=self.now_ms, work=work, patience_ms=patience_ms)
        self._listing: AgedValue[BucketObjects] = aged(listing_age_ms)
        self._garbage: AgedValue[GarbageReport] = aged(listing_age_ms)
        self._usage: AgedValue[PricedUsage] = aged(settings.cost_age_ms, is_resumable=True)
        self._load_bucket = TimedBucket(self.bucket)
        self._load = LoadReader(self._load_bucket, Assumptions(), self.place)
        figures = attrgetter("figures")
        self._topic_rows = LatestMemo(topic_rows, figures)
        self._group_rows = LatestMemo(group_rows, figures)
        self._summary = LatestMemo(summary_of, itself)
        self._due = LatestMemo(due_rows, itself)
        self.plans = PendingPlans(
            plans_max=settings.plans_max,
            age_ms_max=settings.plan_age_ms_max,
            now_ms=self.now_ms,
            new_id=self.new_plan_id,
        )
        self.queries = Queries(settings, self.now_s)
        self.lag_history = LagHistory(
            history_ms=settings.lag_history_ms,
            interval_ms=settings.lag_interval_ms,
            groups_max=settings.lag_groups_max,
        )

    @property
    def may_change(self) -> bool:
        """Whether pages may change the log."""
        return self.cluster is not None and self.cluster.may_change

    def for_page(self) -> "Console":
        """Return the same console with a new `deadline` and new `values`, for one page."""
        found = copy(self)
        found.deadline = self._deadline("page_ms_max")
        found.bucket = DeadlineBucket(self._whole_bucket, found.deadline.check)
        found.values = None if self.registry is None else self.registry.for_page()
        return found

    def stop(self) -> None:
        """End the pages that are being computed, at their next request to the bucket."""
        self._stopped.set()

    def _deadline(self, setting: str) -> Deadline:
        limit_ms = getattr(self.settings, setting)
        return Deadline(self.now_s, limit_ms, setting, is_stopped=self._stopped.is_set)

    def look(self) -> LogView:
        """Return the latest reading of the log. Raises the errors of `ConsoleLog.look`."""
        return self._log.look(self.deadline)

    def look_patiently(self) -> LogView:
        """Return the view of `look`. Wait for a running reading, also beyond the time of a page."""
        return self._log.look(is_patient=True)

    def objects(self) -> BucketObjects:
        return self._listing.get(
            lambda deadline: list_objects(
                DeadlineBucket(self._whole_bucket, deadline.check),
                objects_max=self.settings.objects_max,
                now_ms=self.now_ms(),
            ),
            self.deadline,
        )

    def garbage(self) -> GarbageReport:
        return self._garbage.get(
            lambda deadline: find_garbage(
                DeadlineBucket(self._whole_bucket, deadline.check),
                safety_age_ms=self.safety_age_ms,
                place=self.place,
            ),
            self.deadline,
        )

    def summary(self, objects: BucketObjects) -> ObjectsSummary:
        """Return the figures of a listing. They are computed once for each listing."""
        return self._summary.of(objects)

    def due(self, garbage: GarbageReport) -> list[DueRow]:
        """Return the rows of a report. They are computed once for each report."""
        return self._due.of(garbage)

    def usage(self) -> PricedUsage:
        """The load of `bucketlog cost` with the default assumptions. Raises `StillReadingError`,
        which names the progress, and the errors of `LoadReader.read`."""
        try:
            return self._usage.get(self._read_load, self.deadline)
        except StillReadingError as error:
            known, wanted = self._load.progress
            raise StillReadingError(
                f"the footers of {known:,} of {wanted:,} log segments are read",
                remedy="try again in a moment",
            ) from error

    def _read_load(self, deadline: Deadline) -> PricedUsage:
        self._load_bucket.begin(deadline)
        return priced_usage(self._load.read(), self._load.given)

    def topics(self, view: LogView) -> list[TopicRow]:
        """Return the rows of all topics. They are computed once for the figures of a view."""
        return self._topic_rows.of(view)

    def groups(self, view: LogView) -> list[GroupLagRow]:
        """Return the rows of all groups. They are computed once for the figures of a view."""
        return self._group_rows.of(view)

    def topic(self, view: LogView, name: str) -> TopicState:
        """Raises `UnknownNameError`."""
        found = view.topic(name)
        if found is None:
            raise UnknownNameError(
                f"there is no topic {name[:249]!r}", remedy="choose one on the page Topics"
            )
        return found

    def partition(
        self, view: LogView, query: PageQuery
    ) -> tuple[TopicState, TopicIdPartition, ReadablePartition]:
        """The partition that the address names. Raises `UnknownNameError` and
        `ConfigurationError`."""
        topic = self.topic(view, query.text("topic"))
        number = query.number("partition", 0, most=topic.partitions - 1)
        key = TopicIdPartition(topic.topic_id, number)
        return topic, key, view.parts([key])[key]


def overview(console: Console, query: PageQuery) -> Values:
    view = console.look()
    rows = console.topics(view)
    objects = console.objects()
    summary = console.summary(objects)
    over_time = summary.time_bars
    return {
        "view": view,
        "health": health_of(view, console.now_ms()),
        "rows": rows,
        "records": sum(row.records for row in rows),
        "is_exact": all(row.is_exact for row in rows),
        "log_bytes": sum(row.log_bytes for row in rows),
        "tier_bytes": sum(row.tier_bytes for row in rows),
        "worst": max((row for row in rows if row.worst_lag), key=_lag, default=None),
        "largest": sorted(rows, key=attrgetter("size_bytes"), reverse=True)[:8],
        "objects": objects,
        "time_bars": over_time,
        "bars": charts.bars(
            [bar.size_bytes for bar in over_time],
            [
                f"{time_text(bar.begin_ms)}: {size_text(bar.size_bytes)} in {bar.objects} segments"
                for bar in over_time
            ],
            width=CHART_WIDTH,
            height=CHART_HEIGHT,
        ),
        "chains": summary.chains[:5],
    }


def _lag(row: TopicRow) -> int:
    return row.worst_lag or 0


def health_of(view: LogView, now_ms: int) -> tuple[str, str, str]:
    """Level ("ok" or "warning"), sentence and remedy, from what the bucket shows."""
    withheld = sum(each.withheld for each in view.figures.values())
    if withheld:
        return (
            "warning",
            f"{count_text(withheld)} committed batches wait behind a gap in the offsets.",
            "A broker closes the gap. If none runs, start one.",
        )
    checkpoint = view.snapshot.checkpoint
    if checkpoint is None and len(view.snapshot.segments) > 10_000:
        return (
            "warning",
            "The log has no checkpoint, so brokers and readers start slowly.",
            "Start a broker with checkpoints (BUCKETLOG_CHECKPOINT_INTERVAL_MS).",
        )
    return "ok", "The log is whole: every committed record can be read.", ""


def topics(console: Console, query: PageQuery) -> Values:
    view = console.look()
    page = table_page(
        console.topics(view),
        query,
        {
            "name": attrgetter("name"),
            "partitions": attrgetter("partitions"),
            "records": attrgetter("records"),
            "log": attrgetter("log_bytes"),
            "tier": attrgetter("tier_bytes"),
            "last": attrgetter("last_ms"),
            "lag": lambda row: -1 if row.worst_lag is None else row.worst_lag,
        },
        filter_text=attrgetter("name"),
        rows_max=console.settings.page_rows_max,
    )
    return {"view": view, "page": page}


def topic(console: Console, query: PageQuery) -> Values:
    view = console.look()
    found = console.topic(view, query.text("name"))
    page = table_page(
        list(view.partitions_of(found)),
        query,
        {
            "partition": attrgetter("partition"),
            "size": lambda key: view.figures[key].size_bytes,
        },
        filter_text=lambda key: str(key.partition),
        rows_max=console.settings.page_rows_max,
    )
    parts = view.parts(page.rows)
    counts = counted_records(
        console.bucket,
        found.name,
        [parts[key] for key in page.rows],
        index_reads_max=console.settings.index_reads_max,
    )
    names = sorted(
        name
        for name, rows in view.state.groups.items()
        if any(key.topic_id == found.topic_id for key in rows)
    )
    return {
        "view": view,
        "topic": found,
        "row": next(row for row in console.topics(view) if row.name == found.name),
        "page": page,
        "partitions": [
            CountedPartitionRow(key.partition, view.figures[key], counts[key]) for key in page.rows
        ],
        "settings_rows": setting_rows(found),
        "group_names": names[: console.settings.page_rows_max],
        "is_encrypted": found.topic_id in view.state.data_keys.by_topic,
    }
