"""`cluster health`: what is wrong with a cluster, worst first, each with its remedy.

It asks what every client depends on: whether each live broker answers, whether there is a
controller, whether partitions have leaders, and whether the sequencer answers, without which no
broker returns the latest offset. `/readyz` of a broker adds the state of its parts.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bucketlog.log_format.errors import ConfigurationError, LogError
from bucketlog.terminal import counted

if TYPE_CHECKING:
    from bucketlog.client.cluster import ClusterDetails, TopicStatus
    from bucketlog.client.log import Log

READY_BYTES_MAX = 1 << 20
READY_TIMEOUT_S = 5.0


class Problem(NamedTuple):
    what: str
    remedy: str


class ClusterHealth(NamedTuple):
    cluster_id: str
    brokers: int
    topics: int
    partitions: int
    problems: Sequence[Problem]

    def sentence(self, others_are: str = "-o json lists all") -> str:
        """Return one sentence: the worst problem and its remedy, or that the cluster works.
        `others_are` says where the other problems are shown."""
        if not self.problems:
            return (
                f"healthy: {counted(self.brokers, 'broker')}, {counted(self.topics, 'topic')} and "
                f"{counted(self.partitions, 'partition')} answer"
            )
        first, *others = self.problems
        more = f"; {counted(len(others), 'more problem')}: {others_are}" if others else ""
        return f"unhealthy: {first.what} ({first.remedy}{more})"

    def as_json(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "healthy": not self.problems,
            "problems": [problem._asdict() for problem in self.problems],
        }


def health_of(log: "Log", ready_urls: Sequence[str]) -> ClusterHealth:
    """Raises `LogError` if the cluster cannot be asked, `ConfigurationError` for a wrong URL."""
    details = log.cluster.describe()
    topics = log.cluster.topics()
    problems = [
        *_silent_brokers(log, details),
        *_without_controller(details),
        *_without_leaders(topics),
        *_sequencer(log, topics),
        *(problem for url in ready_urls for problem in _not_ready(url)),
    ]
    partitions = sum(topic.partitions for topic in topics)
    return ClusterHealth(
        details.cluster_id, len(details.brokers), len(topics), partitions, problems
    )


def _silent_brokers(log: "Log", details: "ClusterDetails") -> Iterator[Problem]:
    for broker in details.brokers:
        try:
            log.cluster.check_broker(broker)
        except LogError as error:
            yield Problem(
                f"broker {broker.node_id} at {broker.address} does not answer",
                f"start it, or open the network to it: {error.code}",
            )


def _without_controller(details: "ClusterDetails") -> Iterator[Problem]:
    if not any(broker.is_controller for broker in details.brokers):
        yield Problem("the cluster has no controller", "look at /readyz of its brokers")


def _without_leaders(topics: "Sequence[TopicStatus]") -> Iterator[Problem]:
    broken = [(topic.name, part, code) for topic in topics for part, code in topic.problems.items()]
    if broken:
        name, part, code = broken[0]
        where = name if part is None else f"{name}[{part}]"
        yield Problem(
            f"{counted(len(broken), 'partition')} cannot be used, the first is {where}: {code}",
            "start more brokers, or wait until the cluster has chosen leaders",
        )


def _sequencer(log: "Log", topics: "Sequence[TopicStatus]") -> Iterator[Problem]:
    asked = next((topic.name for topic in topics if topic.partitions), None)
    if asked is None:
        return
    try:
        log.topics.offsets_of(asked)
    except LogError as error:
        yield Problem(
            f"no broker returns the latest offsets of {asked}: {error.code}",
            "check that the brokers reach Redis and the bucket: /readyz names the failing part",
        )


def _not_ready(url: str) -> Iterator[Problem]:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"--http {url} is not the HTTP endpoint of a broker",
            remedy="give it as http://HOST:PORT, with the broker's BUCKETLOG_HTTP_PORT",
        )
    import json
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import urlopen

    place = f"{parts.scheme}://{parts.netloc}/readyz"
    try:
        with urlopen(place, timeout=READY_TIMEOUT_S) as answer:
            answer.read(READY_BYTES_MAX)
            return
    except HTTPError as error:
        text = error.read(READY_BYTES_MAX)
    except (OSError, HTTPException) as error:
        why = getattr(error, "reason", error)
        yield Problem(
            f"{place} does not answer: {why}", "check the address and BUCKETLOG_HTTP_PORT"
        )
        return
    try:
        reasons = json.loads(text)["reasons"].items()
        found = [f"{part}: {reason}" for part, reason in reasons]
    except (ValueError, KeyError, TypeError, AttributeError):
        yield Problem(f"{place} is not the endpoint of a broker", "check BUCKETLOG_HTTP_PORT")
        return
    yield Problem(
        f"the broker at {parts.netloc} is not ready: {'; '.join(found) or 'no reason given'}",
        "see its log, and docs/operations.md",
    )
