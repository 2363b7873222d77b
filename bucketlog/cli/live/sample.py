"""Two looks at a cluster, folded into one sample: rates, latencies, lags and dollars. Pure.

A look has counters and offsets as the cluster reports them; a sample has their differences per
second. A counter that is lower than before has started again at 0, as after a restart of a broker.
None is an unknown figure, which differs from 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bucketlog.cost.assumptions import Assumptions
from bucketlog.cost.of_brokers import Figures

STEPS = ("waiting", "reserve", "put", "publish")
"""The steps between the arrival of a batch and its acknowledgement, in their order."""
VERBS = ("create", "get", "list", "delete", "head")
HOUR_S = 3_600
NO_METRICS = (
    "the brokers' rates, latencies and dollars are missing: give --metrics "
    "http://HOST:PORT/metrics for each broker"
)
NO_STEPS = "the steps of acknowledgement are missing: update the brokers to this release"
NO_SIZES = (
    "the topics' bytes/s are missing: give this user the right to describe the cluster "
    "(`bucketlog acl add`)"
)


@dataclass(frozen=True, slots=True)
class TopicExtent:
    """The size of a topic. `latest`: end offsets by partition. `stored_bytes`: bytes in the log and
    its tiers; None if unknown."""

    latest: Mapping[int, int]
    stored_bytes: int | None


class WorstLag(NamedTuple):
    """The lag of a group. `worst_lag`: the largest lag of a partition, in records; the partition is
    `worst_partition`. `lag_ms`: the largest age of a first unread record. None: nothing is
    committed, or the figure is unknown."""

    group: str
    worst_lag: int | None
    worst_partition: str | None
    lag_ms: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a cluster at one time (`at_s`, monotonic). `brokers`: figures of /metrics by
    broker, or the reason why there are none. `notes`: what was left out, and why."""

    at_s: float
    health: str
    is_healthy: bool
    brokers: Mapping[str, Figures | str] = field(default_factory=dict)
    topics: Mapping[str, TopicExtent] = field(default_factory=dict)
    groups: tuple[WorstLag, ...] = ()
    notes: tuple[str, ...] = ()


class BrokerRates(NamedTuple):
    """Rates of a broker, per second. `steps_ms`: mean duration of each step of `STEPS`, in ms; None
    if no flush had this step. `problem`: why there are no figures."""

    broker: str
    bytes_in: float | None = None
    bytes_out: float | None = None
    requests: float | None = None
    steps_ms: tuple[float | None, ...] = (None,) * len(STEPS)
    bucket_requests: float | None = None
    usd_per_hour: float | None = None
    problem: str | None = None


class TopicRates(NamedTuple):
    """Rates of a topic, per second. `bytes`: growth of the stored bytes; None if it is unknown, or
    if the topic has shrunk."""

    topic: str
    bytes: float | None
    records: float | None
    stored_bytes: int | None


@dataclass(frozen=True, slots=True)
class Sample:
    """The difference of two looks. `interval_s` is 0 after the first look: no rate is known yet."""

    interval_s: float
    health: str
    is_healthy: bool
    brokers: tuple[BrokerRates, ...]
    topics: tuple[TopicRates, ...]
    groups: tuple[WorstLag, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "interval_s": round(self.interval_s, 3),
            "healthy": self.is_healthy,
            "health": self.health,
            "brokers": [_broker_json(row) for row in self.brokers],
            "topics": [
                {
                    "topic": row.topic,
                    "bytes_per_s": _rounded(row.bytes),
                    "records_per_s": _rounded(row.records),
                    "stored_bytes": row.stored_bytes,
                }
                for row in self.topics
            ],
            "groups": [row._asdict() for row in self.groups],
            "notes": list(self.notes),
        }


def sample_of(before: Look | None, now: Look, prices: Assumptions) -> Sample:
    """Return the rates between two looks. Without `before`, no rates are known yet."""
    interval_s = now.at_s - before.at_s if before is not None else 0.0
    earlier = before if before is not None and interval_s > 0 else None
    brokers = tuple(
        _broker_row(
            name, found, None if earlier is None else earlier.brokers.get(name), prices, interval_s
        )
        for name, found in now.brokers.items()
    )
    topics = tuple(
        _topic_row(name, state, None if earlier is None else earlier.topics.get(name), interval_s)
        for name, state in now.topics.items()
    )
    return Sample(
        max(interval_s, 0.0),
        now.health,
        now.is_healthy,
        brokers,
        topics,
        now.groups,
        (*now.notes, *_missing(now)),
    )


def _missing(now: Look) -> Iterable[str]:
    """Return sentences that name missing columns and say how to get them."""
    figures = [found for found in now.brokers.values() if not isinstance(found, str)]
    if not now.brokers:
        yield NO_METRICS
    if any(("bucketlog_commit_seconds_count", STEPS[0]) not in found for found in figures):
        yield NO_STEPS
    if any(state.stored_bytes is None for state in now.topics.values()):
        yield NO_SIZES


def _broker_row(
    name: str,
    now: Figures | str,
    before: Figures | str | None,
    prices: Assumptions,
    interval_s: float,
) -> BrokerRates:
    if isinstance(now, str):
        return BrokerRates(name, problem=now)
    if before is None or isinstance(before, str):
        return BrokerRates(name)
    grown = _growth(before, now)
    by_verb = {
        verb: grown.get(("bucketlog_bucket_requests_total", verb), 0.0) / interval_s
        for verb in VERBS
    }
    return BrokerRates(
        name,
        bytes_in=_sum(grown, "bucketlog_request_bytes_total") / interval_s,
        bytes_out=_sum(grown, "bucketlog_response_bytes_total") / interval_s,
        requests=_sum(grown, "bucketlog_request_seconds_count") / interval_s,
        steps_ms=tuple(_mean_ms(grown, step) for step in STEPS),
        bucket_requests=sum(by_verb.values()),
        usd_per_hour=request_usd(by_verb, prices) * HOUR_S,
    )


def request_usd(requests: Mapping[str, float], prices: Assumptions) -> float:
    """Return the price of requests to S3 Standard. DELETE requests cost nothing."""
    written = requests.get("create", 0.0) + requests.get("list", 0.0)
    read = requests.get("get", 0.0) + requests.get("head", 0.0)
    return (
        written * prices.s3_standard_put_usd_per_1000 + read * prices.s3_standard_get_usd_per_1000
    ) / 1000


def _growth(before: Figures, now: Figures) -> dict[tuple[str, str], float]:
    return {
        key: value - before[key] if value >= before.get(key, 0.0) and key in before else value
        for key, value in now.items()
    }


def _sum(figures: Figures, name: str) -> float:
    return sum(value for (each, _), value in figures.items() if each == name)


def _mean_ms(grown: Figures, step: str) -> float | None:
    count = grown.get(("bucketlog_commit_seconds_count", step), 0.0)
    seconds = grown.get(("bucketlog_commit_seconds_sum", step), 0.0)
    return seconds / count * 1000 if count > 0 else None


def _topic_row(
    name: str, now: TopicExtent, before: TopicExtent | None, interval_s: float
) -> TopicRates:
    if before is None:
        return TopicRates(name, None, None, now.stored_bytes)
    records = sum(
        latest - before.latest[part] if latest >= before.latest[part] else latest
        for part, latest in now.latest.items()
        if part in before.latest
    )
    grown = None
    if now.stored_bytes is not None and before.stored_bytes is not None:
        grown = now.stored_bytes - before.stored_bytes
    rate = None if grown is None or grown < 0 else grown / interval_s
    return TopicRates(name, rate, records / interval_s, now.stored_bytes)


def _broker_json(row: BrokerRates) -> dict[str, Any]:
    return {
        "broker": row.broker,
        "bytes_in_per_s": _rounded(row.bytes_in),
        "bytes_out_per_s": _rounded(row.bytes_out),
        "requests_per_s": _rounded(row.requests),
        **{f"{step}_ms": _rounded(value) for step, value in zip(STEPS, row.steps_ms, strict=True)},
        "bucket_requests_per_s": _rounded(row.bucket_requests),
        "usd_per_hour": None if row.usd_per_hour is None else round(row.usd_per_hour, 6),
        "problem": row.problem,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
