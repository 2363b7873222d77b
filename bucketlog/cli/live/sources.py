"""A look at a cluster: Kafka's protocol for topics and groups, /metrics for the brokers' figures.

Invariant: the work of a look is bounded. A look asks for the offsets of at most `topics_max` topics
and `groups_max` groups. A look reads the first unread records of at most `LAGS_MAX` partitions of a
group, and at most `METRICS_BYTES_MAX` bytes of each answer of /metrics.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from bucketlog.cli.live.sample import Look, TopicExtent, WorstLag
from bucketlog.cost.of_brokers import Figures, metrics_address, metrics_of
from bucketlog.log_format.errors import BucketlogError, LogError
from bucketlog.terminal import counted

if TYPE_CHECKING:
    from bucketlog.client.groups import GroupDetails
    from bucketlog.client.log import Log

LAGS_MAX = 10
"""Most partitions of a group whose first unread record is read: those with the largest lag."""
CONNECTIONS_MAX = 8
"""Most brokers whose /metrics are read at the same time."""


class ShownProblem(Protocol):
    @property
    def what(self) -> str: ...

    @property
    def remedy(self) -> str: ...


class ShownHealth(Protocol):
    """The health of a cluster, as `bucketlog cluster health` finds it."""

    @property
    def problems(self) -> Sequence[ShownProblem]: ...

    def sentence(self, others_are: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest numbers of topics and groups whose offsets a look asks for."""

    topics_max: int
    groups_max: int


class ClusterSources:
    """The sources of looks. `health` returns the cluster's health. Raises `ConfigurationError` for
    a wrong URL."""

    def __init__(
        self,
        log: "Log",
        *,
        metrics: Sequence[str],
        health: Callable[[], ShownHealth],
        limits: Limits,
        now_s: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._log = log
        self._metrics = {broker_name(metrics_address(url)): url for url in metrics}
        self._health = health
        self._limits = limits
        self._now_s = now_s
        self._now_ms = now_ms

    def look(self, wanted: str = "") -> Look:
        """Look at topics and groups whose names contain `wanted`. Raises `LogError` if no broker
        answers."""
        health = self._health()
        at_s = self._now_s()
        brokers = self._brokers()
        topics, left_topics = self._topics(wanted)
        groups, left_groups = self._groups(wanted)
        notes = [f"{each.what} ({each.remedy})" for each in health.problems[1:]]
        notes += [
            f"{counted(left, noun)} not looked at: raise --{noun}s-max, or set a filter"
            for left, noun in ((left_topics, "topic"), (left_groups, "group"))
            if left
        ]
        return Look(
            at_s,
            health.sentence("see below"),
            not health.problems,
            brokers,
            topics,
            groups,
            tuple(notes),
        )

    def _brokers(self) -> dict[str, Figures | str]:
        if not self._metrics:
            return {}
        with ThreadPoolExecutor(min(CONNECTIONS_MAX, len(self._metrics))) as pool:
            found = pool.map(_figures_or_problem, self._metrics.values())
            return dict(zip(self._metrics, found, strict=True))

    def _topics(self, wanted: str) -> tuple[dict[str, TopicExtent], int]:
        """Return the topics, and the number of topics that were left out."""
        names = [info.name for info in self._log.topics.list() if wanted in info.name]
        sizes = self._log.cluster.partition_bytes()
        stored = None if sizes is None else _by_topic(sizes)
        found: dict[str, TopicExtent] = {}
        for name in names[: self._limits.topics_max]:
            try:
                parts = self._log.topics.offsets_of(name)
            except LogError:  # deleted meanwhile, or not this user's
                continue
            latest = {part.partition: part.latest for part in parts}
            found[name] = TopicExtent(latest, None if stored is None else stored.get(name, 0))
        return found, max(0, len(names) - self._limits.topics_max)

    def _groups(self, wanted: str) -> tuple[tuple[WorstLag, ...], int]:
        """Return the groups, and the number of groups that were left out."""
        names = [info.group for info in self._log.groups.list() if wanted in info.group]
        named = [name for name in names if name]  # librdkafka refuses to ask for the group ""
        rows: list[WorstLag] = []
        for name in named[: self._limits.groups_max]:
            try:
                details = self._log.groups.describe(name)
                since_ms = self._log.groups.unread_since_ms(_with_largest_lags(details))
            except LogError:  # deleted meanwhile, or not this user's
                continue
            rows.append(group_row(details, since_ms, self._now_ms()))
        return tuple(rows), max(0, len(named) - self._limits.groups_max)


def broker_name(url: str) -> str:
    """Return the host and port of a URL, without user and password."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or url


def _figures_or_problem(url: str) -> Figures | str:
    try:
        return metrics_of(url)
    except BucketlogError as error:
        return error.message


def _by_topic(sizes: Mapping[tuple[str, int], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (topic, _), size in sizes.items():
        found[topic] = found.get(topic, 0) + size
    return found


def _with_largest_lags(details: "GroupDetails") -> "GroupDetails":
    lagging = sorted(details.positions, key=lambda row: -(row.lag or 0))
    return replace(details, positions=tuple(lagging[:LAGS_MAX]))


def group_row(
    details: "GroupDetails", since_ms: Mapping[tuple[str, int], int], now_ms: int
) -> WorstLag:
    """Fold a group's positions, and the timestamps of its first unread records, into a row."""
    known = [row for row in details.positions if row.lag is not None]
    worst = max(known, key=lambda row: row.lag or 0, default=None)
    if worst is None:
        return WorstLag(details.group, None, None, None)
    oldest_ms = min(since_ms.values(), default=None)
    lag_ms = 0 if not worst.lag else None
    return WorstLag(
        details.group,
        worst.lag,
        f"{worst.topic}[{worst.partition}]",
        lag_ms if oldest_ms is None else max(0, now_ms - oldest_ms),
    )
