"""Computes the page Replay: the plan of a replay, its cost, code for it, and the latest run."""

from typing import NamedTuple

from bucketlog.console.copied_code import ReplayCode, ReplayedRanges, offsets_text, replay_code
from bucketlog.console.log_view import LogView
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console, Values
from bucketlog.console.replay_range import RANGES, ReplayRange, replay_range
from bucketlog.console.replay_runs import ReplayRuns
from bucketlog.cost.assumptions import Assumptions
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.replay_plan import ReplayPlan, plan_replay_of, planned_reads
from bucketlog.replaying.record_bar import expected_records
from bucketlog.tiered_storage.counting import BucketCounts, CountingSyncBucket
from bucketlog.tiered_storage.log_cut import LogSnapshot

LOOK_AGAIN_MS = 500


class ReplaysOffError(ConfigurationError):
    """The console has no folder for replays."""


class ReplayFigures(NamedTuple):
    """The cost of a replay, without the few requests that list the bucket. `gets` read the records.
    `planning_gets` read the checkpoint, footers, indexes and manifests for the plan. Without
    `is_exact`, there may be fewer records. `withheld` committed records are left out, because a
    broker may still be writing offsets below them."""

    objects: int
    stored_bytes: int
    gets: int
    planning_gets: int
    usd: float
    records: int
    is_exact: bool
    withheld: int


class PlannedReplay(NamedTuple):
    """A plan with its figures. `offsets` has the partitions with records."""

    plan: ReplayPlan
    figures: ReplayFigures
    offsets: dict[int, tuple[int, int]]


def replay(console: Console, query: PageQuery) -> Values:
    """The form, and the plan if the address names a topic. Raises the errors of `replay_range` and
    of `plan_replay`."""
    view = console.look()
    settings = console.settings
    values: Values = {
        "view": view,
        "names": sorted(view.state.names)[: settings.page_rows_max],
        "ranges": RANGES,
        "topic": None,
        "run": None if console.replays is None else console.replays.latest,
        "folder": None if console.replays is None else str(console.replays.folder),
        "look_again_ms": LOOK_AGAIN_MS,
    }
    if not query.text("topic"):
        return values
    wanted = replay_range(console, view, query)
    found = planned_replay(console, view, wanted)
    return values | {
        "topic": wanted.topic,
        "figures": found.figures,
        "offsets": found.offsets,
        "too_large": _too_large(console, found),
        "offsets_text": offsets_text(found.offsets),
        "code": _code(console, wanted, found),
        "is_encrypted": wanted.topic.topic_id in view.state.data_keys.by_topic,
    }


def start_replay(console: Console, query: PageQuery) -> None:
    """Start the replay of a form, to Parquet files. Raises `ReplayRefusedError`,
    `ReplayFolderError`, and the errors of `replay_range`."""
    runs = replays_of(console)
    wanted = replay_range(console, console.look(), query)
    if query.text("topic_id") != wanted.topic.topic_id.hex():
        raise ConfigurationError(
            "the topic was created again after the plan", remedy="make the plan again"
        )
    runs.start(wanted.topic.name, wanted.given)


def stop_replay(console: Console) -> None:
    replays_of(console).stop()


def replays_of(console: Console) -> ReplayRuns:
    """Return the replays. Raises `ReplaysOffError` if this console runs none."""
    if console.replays is None:
        raise ReplaysOffError(
            "this console writes no files",
            remedy="start `bucketlog console` with --replay-folder, or use `bucketlog replay`",
        )
    return console.replays


def planned_replay(console: Console, view: LogView, wanted: ReplayRange) -> PlannedReplay:
    """Plan as a replay does, with the requests and the limits of a page. The plan uses the log of
    `view`, because the console has already read its footers."""
    bucket = CountingSyncBucket(console.bucket)
    threads = console.settings.replay_threads
    plan = plan_replay_of(
        bucket, wanted.options(console), cores=lambda: threads, snapshot=view.snapshot
    )
    return PlannedReplay(
        plan,
        figures_of(plan, bucket.snapshot(), view.snapshot),
        {
            each.partition.partition: (each.start, each.end)
            for each in plan.ranges
            if each.start < each.end
        },
    )


def figures_of(plan: ReplayPlan, planning: BucketCounts, snapshot: LogSnapshot) -> ReplayFigures:
    """The figures of a plan. `planning` counts the requests that made the plan of `snapshot`. A
    replay also reads the snapshot's checkpoint, and the footer of each of its segments. Prices are
    those of S3 Standard."""
    reads, prices = planned_reads(plan), Assumptions()
    planning_gets = planning.gets + planning.heads + len(snapshot.segments)
    planning_gets += snapshot.checkpoint is not None
    return ReplayFigures(
        objects=reads.objects,
        stored_bytes=plan.stored_bytes,
        gets=reads.gets,
        planning_gets=planning_gets,
        usd=(reads.gets + planning_gets) / 1_000 * prices.s3_standard_get_usd_per_1000,
        records=expected_records(plan),
        is_exact=plan.records is not None,
        withheld=plan.withheld_records,
    )


def _too_large(console: Console, found: PlannedReplay) -> bool:
    """Whether a process of the console would refuse the plan."""
    return found.plan.stored_bytes > console.settings.replay_stored_bytes_max


def _code(console: Console, wanted: ReplayRange, found: PlannedReplay) -> ReplayCode | None:
    """Code for the offsets of the plan, or None if there is no record."""
    if not found.offsets:
        return None
    return replay_code(ReplayedRanges(console.place, wanted.topic.name, found.offsets))
