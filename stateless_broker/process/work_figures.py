"""The metrics of a broker's own work: the steps of its commits, its reads, and its duties."""

from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from bucketlog.stateless_broker.duties.upkeep import UpkeepCounts
from bucketlog.stateless_broker.fetch.reading import ReadCounts
from bucketlog.stateless_broker.produce.step_durations import StepDurations


def commit_metric(durations: StepDurations) -> Metric:
    family = HistogramMetricFamily(
        "bucketlog_commit_seconds",
        "Duration of the steps between a batch's arrival and its acknowledgement, by flush.",
        labels=["step"],
    )
    for step, seconds in durations.by_step():
        family.add_metric([step], seconds.cumulative(), seconds.total_s)
    return family


def read_metrics(counts: ReadCounts) -> Iterator[Metric]:
    fetched = CounterMetricFamily(
        "bucketlog_fetched_bytes",
        "Bytes of batches in responses to Fetch requests.",
        labels=["from"],
    )
    fetched.add_metric(["memory"], counts.bytes_from_memory)
    fetched.add_metric(["bucket"], counts.bytes_from_bucket)
    yield fetched
    yield CounterMetricFamily(
        "bucketlog_range_requests", "Reads of ranges of objects.", value=counts.requests
    )
    yield CounterMetricFamily(
        "bucketlog_range_bytes", "Bytes of read ranges of objects.", value=counts.requested_bytes
    )


def upkeep_metrics(counts: UpkeepCounts) -> Iterator[Metric]:
    yield CounterMetricFamily(
        "bucketlog_checkpoints", "Checkpoints that this broker wrote.", value=counts.checkpoints
    )
    for name, text, value in (
        ("bytes", "Size of the last checkpoint that this broker wrote.", counts.checkpoint_bytes),
        ("segments", "Log segments in the last checkpoint.", counts.checkpoint_segments),
        ("seconds", "Duration of the last checkpoint.", counts.checkpoint_ms / 1000),
    ):
        yield GaugeMetricFamily(f"bucketlog_last_checkpoint_{name}", text, value=value)
    for name, text, value in (
        ("split_segments", "Log segments that were split by partition.", counts.split_segments),
        ("split_bytes", "Bytes of split log segments.", counts.split_bytes),
        ("merged_segments", "Partition segments that were merged.", counts.merged_segments),
        ("merged_bytes", "Bytes of merged partition segments.", counts.merged_bytes),
        ("cleaned_bytes", "Bytes of batches that key compaction read.", counts.cleaned_bytes),
        ("cleaned_away_bytes", "Bytes that key compaction removed.", counts.cleaned_away_bytes),
    ):
        yield CounterMetricFamily(f"bucketlog_{name}", text, value=value)
    deleted = CounterMetricFamily(
        "bucketlog_deleted_objects", "Objects of the log that were deleted.", labels=["kind"]
    )
    for kind, count in sorted(counts.deleted_by_kind.items()):
        deleted.add_metric([kind], count)
    yield deleted
