"""Metrics of topics and groups for Prometheus, from the bucket alone: a built-in exporter of lag.

Invariant: the number of topics and groups with metrics is bounded. The largest topics, and the
groups with the most unread records, have metrics. Gauges count the other topics and groups.
"""

import heapq
import logging
from collections.abc import Iterator, Mapping

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bucketlog.console.groups import GroupWait, group_waits
from bucketlog.console.log_view import LogView
from bucketlog.console.pages import Console
from bucketlog.console.topics import TopicRow, lag_of
from bucketlog.log_format.errors import BucketlogError

CONTENT_TYPE = CONTENT_TYPE_LATEST
GROUP, TOPIC, SYSTEM = "group", "topic", "system"
logger = logging.getLogger(__name__)


class LogCollector(Collector):
    """The metrics of one view of the log."""

    def __init__(self, console: Console, view: LogView) -> None:
        self._console = console
        self._view = view

    def collect(self) -> Iterator[Metric]:
        yield from self._topics()
        yield from self._groups()
        if self._console.settings.metrics_cost:
            yield from self._cost()
        read = GaugeMetricFamily(
            "bucketlog_log_read_timestamp_seconds", "Time at which the console read the log."
        )
        read.add_metric([], self._view.read_ms / 1000)
        yield read

    def _largest_topics(self) -> list[TopicRow]:
        rows = self._console.topics(self._view)
        most = self._console.settings.metrics_topics_max
        return heapq.nlargest(most, rows, key=lambda row: row.size_bytes)

    def _cost(self) -> Iterator[Metric]:
        """No metric while the footers are read, or if they cannot be read."""
        try:
            priced = self._console.usage()
        except BucketlogError as error:
            logger.info("no metrics of cost: %s", error)
            return
        found = {row.topic: row.usd for row in priced.topics}
        by_topic = GaugeMetricFamily(
            "bucketlog_topic_cost_usd",
            "Price of what the bucket shows of a topic, in US dollars.",
            labels=[TOPIC, SYSTEM],
        )
        for name in (row.name for row in self._largest_topics()):
            for system, usd in found.get(name, {}).items():
                by_topic.add_metric([name, system.value], usd)
        yield by_topic
        yield _gauge(
            "bucketlog_cost_usd",
            "Price of all that the bucket shows of the log, in US dollars.",
            SYSTEM,
            {system.value: usd for system, usd in priced.sums.items()},
        )

    def _topics(self) -> Iterator[Metric]:
        rows = self._console.topics(self._view)
        shown = self._largest_topics()
        yield _gauge(
            "bucketlog_topic_partitions",
            "Partitions of a topic.",
            TOPIC,
            {row.name: row.partitions for row in shown},
        )
        yield _gauge(
            "bucketlog_topic_offsets",
            "Offsets between the earliest and the latest offset of a topic. Gaps count.",
            TOPIC,
            {row.name: self._offsets(row.name) for row in shown},
        )
        yield _gauge(
            "bucketlog_topic_log_bytes",
            "Bytes of a topic's batches in log segments.",
            TOPIC,
            {row.name: row.log_bytes for row in shown},
        )
        yield _gauge(
            "bucketlog_topic_tier_bytes",
            "Bytes of a topic's batches in tiers.",
            TOPIC,
            {row.name: row.tier_bytes for row in shown},
        )
        yield _gauge(
            "bucketlog_topic_last_record_timestamp_seconds",
            "Highest timestamp of a topic's records.",
            TOPIC,
            {row.name: row.last_ms / 1000 for row in shown if row.last_ms >= 0},
        )
        yield _hidden("bucketlog_topics_without_metrics", "Topics", len(rows) - len(shown))

    def _offsets(self, name: str) -> int:
        topic = self._view.topic(name)
        assert topic is not None
        figures = (self._view.figures[key] for key in self._view.partitions_of(topic))
        return sum(each.offsets for each in figures)

    def _groups(self) -> Iterator[Metric]:
        console, view = self._console, self._view
        rows = console.groups(view)
        most = console.settings.metrics_groups_max
        shown = heapq.nlargest(most, rows, key=lambda row: row.lag)
        names = [row.name for row in shown]
        waits = group_waits(
            view, names, console.now_ms(), stuck_after_ms=console.settings.stuck_after_ms
        )
        lags = GaugeMetricFamily(
            "bucketlog_group_lag_records",
            "Offsets of a topic that a group has not read. Gaps count.",
            labels=[GROUP, TOPIC],
        )
        for name in names:
            by_topic: dict[str, int] = {}
            for key, row in view.state.groups[name].items():
                topic = view.state.topics[key.topic_id].name
                lag = lag_of(view.figures[key], row.offset)
                by_topic[topic] = by_topic.get(topic, 0) + lag
            for topic, lag in by_topic.items():
                lags.add_metric([name, topic], lag)
        yield lags
        yield _gauge(
            "bucketlog_group_lag_seconds",
            "Longest lag in time of a group's partitions; 0 without a lag in time.",
            GROUP,
            {name: _seconds(wait) for name, wait in waits.items()},
        )
        yield _gauge(
            "bucketlog_group_stuck_partitions",
            "Partitions in which a group is stuck.",
            GROUP,
            {name: wait.stuck for name, wait in waits.items()},
        )
        yield _hidden("bucketlog_groups_without_metrics", "Groups", len(rows) - len(shown))


def _seconds(wait: GroupWait) -> float:
    return 0.0 if wait.unread_ms is None else wait.unread_ms / 1000


def _gauge(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    found = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        found.add_metric([key], value)
    return found


def _hidden(name: str, what: str, number: int) -> Metric:
    found = GaugeMetricFamily(name, f"{what} that the limits leave out of the metrics.")
    found.add_metric([], number)
    return found


def metrics_text(console: Console) -> bytes:
    """The metrics in Prometheus's text format. Raises the errors of `Console.look`."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(LogCollector(console, console.look()))
    return generate_latest(registry)
