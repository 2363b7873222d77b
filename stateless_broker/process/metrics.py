"""The broker's figures, in Prometheus' names with units.

They are read from the parts of the broker on request: nothing is counted twice, and the hot path
pays only for additions of integers.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.producer_rows import ProducerRows
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.assembly.broker_parts import WorkCounts
from bucketlog.stateless_broker.authentication.verification_keys import VerificationKeys
from bucketlog.stateless_broker.encryption.topic_keys import EncryptionCounts
from bucketlog.stateless_broker.fetch.session_cache import FetchSessions
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.quotas import ThrottleCounts
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.process.client_figures import client_metrics
from bucketlog.stateless_broker.process.work_figures import (
    commit_metric,
    read_metrics,
    upkeep_metrics,
)
from bucketlog.stateless_broker.produce.transaction_counts import TransactionCounts
from bucketlog.tiered_storage.counting import BucketCounts, CountingBucket


@dataclass(frozen=True, slots=True)
class MemoryBudgets:
    """The memory of received requests, and of responses that are not written yet."""

    frames: MemoryBudget
    answers: MemoryBudget


@dataclass(frozen=True, slots=True)
class BoundedState:
    """State with a limit. All functions return None until the broker has started. `group_bytes`
    returns the memory of the groups that the broker coordinates, `certificate_s` the time until the
    certificate expires, None without one. `token_keys` None: no listener takes tokens."""

    view: Callable[[], View | None]
    producers: Callable[[], ProducerRows | None]
    group_bytes: Callable[[], int | None]
    fetch_sessions: Callable[[], FetchSessions | None]
    certificate_s: Callable[[], float | None] = lambda: None
    token_keys: Callable[[], VerificationKeys | None] = lambda: None


@dataclass(frozen=True, slots=True)
class FigureSources:
    """The parts of a broker that the metrics read. `limits` are by the name of the setting."""

    bucket: CountingBucket
    budgets: MemoryBudgets
    health: Health
    work: WorkCounts
    requests: RequestFigures
    limits: Mapping[str, int]
    state: BoundedState


class RenderedFigures(Collector):
    def render(self) -> bytes:
        """Return the figures in the text form that Prometheus reads, with those of the process."""
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        return generate_latest(registry)


class BrokerFigures(RenderedFigures):
    def __init__(self, sources: FigureSources) -> None:
        self._limits = sources.limits
        self._bucket = sources.bucket
        self._upkeep = sources.work.upkeep
        self._reads = sources.work.reads
        self._commits = sources.work.commits
        self._transactions = sources.work.transactions
        self._throttles = sources.work.throttles
        self._encryption = sources.work.encryption
        self._budget = sources.budgets.frames
        self._answers = sources.budgets.answers
        self._health = sources.health
        self._requests = sources.requests
        self._telemetry = sources.work.telemetry
        self._state = sources.state

    def collect(self) -> Iterator[Metric]:
        counts = self._bucket.snapshot()
        yield _bucket_requests(counts)
        creates = self._bucket.create_seconds
        yield HistogramMetricFamily(
            "bucketlog_bucket_create_seconds",
            "Duration of PUT requests, with failed ones.",
            buckets=creates.cumulative(),
            sum_value=creates.total_s,
        )
        transferred = CounterMetricFamily(
            "bucketlog_bucket_bytes", "Bytes to and from the bucket.", labels=["direction"]
        )
        transferred.add_metric(["in"], counts.bytes_in)
        transferred.add_metric(["out"], counts.bytes_out)
        yield transferred
        yield CounterMetricFamily(
            "bucketlog_bucket_hedged_puts", "PUTs that were sent twice.", value=counts.hedges
        )
        yield from _requests(self._requests)
        yield GaugeMetricFamily(
            "bucketlog_connections", "Client connections.", value=self._requests.connections
        )
        yield closed_connections(self._requests)
        yield GaugeMetricFamily(
            "bucketlog_frame_bytes", "Memory of received requests.", value=self._budget.held_bytes
        )
        yield GaugeMetricFamily(
            "bucketlog_answer_bytes",
            "Memory of fetch responses and large responses that clients have not received.",
            value=self._answers.held_bytes,
        )
        yield GaugeMetricFamily(
            "bucketlog_epoch", "The epoch of this broker.", value=self._health.epoch
        )
        yield CounterMetricFamily(
            "bucketlog_epochs_ended",
            "Epochs that ended while this broker was in them.",
            value=self._health.epochs_ended,
        )
        yield GaugeMetricFamily(
            "bucketlog_sequencer_embedded",
            "1 if this broker runs the sequencer's Valkey.",
            value=int(self._health.runs_valkey()),
        )
        yield _degraded(self._health)
        yield from self._state_figures()
        yield _limits(self._limits)
        producers = self._state.producers()
        if producers is not None:
            yield from _producers(producers)
        yield from _transactions(self._transactions)
        yield from (*_throttles(self._throttles), *_encryption(self._encryption))
        yield from (commit_metric(self._commits), *upkeep_metrics(self._upkeep))
        yield from chain(read_metrics(self._reads), client_metrics(self._telemetry))
        yield GaugeMetricFamily(
            "bucketlog_ready", "1 if the broker is ready.", value=int(self._health.ready)
        )

    def _state_figures(self) -> Iterator[Metric]:
        yield from _certificate(self._state.certificate_s())
        yield from _token_keys(self._state.token_keys())
        view = self._state.view()
        if view is not None:
            yield from _contents(view)
            yield from _open_transactions(view)
        group_bytes = self._state.group_bytes()
        if group_bytes is not None:
            yield GaugeMetricFamily(
                "bucketlog_coordinated_groups_bytes",
                "Memory of the consumer groups that this broker coordinates.",
                value=group_bytes,
            )
        sessions = self._state.fetch_sessions()
        if sessions is not None:
            yield from _fetch_sessions(sessions)


def _fetch_sessions(sessions: FetchSessions) -> Iterator[Metric]:
    for name, text, value in (
        ("sessions", "Fetch sessions of this broker.", len(sessions)),
        ("session_partitions", "Partitions of all fetch sessions.", sessions.partitions),
        ("session_bytes", "Estimated memory of all fetch sessions.", sessions.bytes),
    ):
        yield GaugeMetricFamily(f"bucketlog_fetch_{name}", text, value=value)
    yield CounterMetricFamily(
        "bucketlog_fetch_session_evictions",
        "Fetch sessions evicted to make room for a new or larger session.",
        value=sessions.evictions,
    )


def _certificate(expires_in_s: float | None) -> Iterator[Metric]:
    if expires_in_s is not None:
        yield GaugeMetricFamily(
            "bucketlog_certificate_expires_seconds",
            "Time until the certificate of the SSL listeners expires.",
            value=expires_in_s,
        )


def _token_keys(keys: VerificationKeys | None) -> Iterator[Metric]:
    if keys is None:
        return
    if keys.age_s is not None:
        yield GaugeMetricFamily(
            "bucketlog_token_keys_age_seconds",
            "Time since the keys of the provider of tokens were loaded.",
            value=keys.age_s,
        )
    yield CounterMetricFamily(
        "bucketlog_token_keys_failed_loads",
        "Failed attempts to load the keys of the provider of tokens.",
        value=keys.failures,
    )


def _degraded(health: Health) -> Metric:
    family = GaugeMetricFamily(
        "bucketlog_degraded", "1 for each part of the broker that is degraded.", labels=["part"]
    )
    for part in sorted(health.degraded):
        family.add_metric([part], 1)
    return family


def _contents(view: View) -> Iterator[Metric]:
    """The items that the cluster's limits bound, as this broker sees them."""
    for name, text, value in (
        ("topics", "Topics of the cluster.", view.topic_count),
        ("partitions", "Partitions of all topics.", view.partition_count),
        ("groups_with_offsets", "Groups with committed offsets.", view.group_count()),
        (
            "committed_offsets",
            "Committed offsets of all groups. Each 128 bytes of metadata count as one more.",
            view.offset_weight,
        ),
    ):
        yield GaugeMetricFamily(f"bucketlog_{name}", text, value=value)


def _open_transactions(view: View) -> Iterator[Metric]:
    transactions = view.transactions
    for name, text, value in (
        ("transactional_ids", "Transactional ids in the cluster.", len(transactions.ids)),
        (
            "open_transactions",
            "Open transactions with records or offsets.",
            transactions.open_count(),
        ),
        (
            "unstable_offsets_max",
            "The largest distance between a partition's last stable offset and high watermark.",
            view.unstable_offsets_max(),
        ),
    ):
        yield GaugeMetricFamily(f"bucketlog_{name}", text, value=value)


def _transactions(counts: TransactionCounts) -> Iterator[Metric]:
    family = CounterMetricFamily(
        "bucketlog_transactions_ended",
        "Transactions that this broker ended. by=server: after a timeout or by an administrator.",
        labels=["outcome", "by"],
    )
    for (outcome, by), count in sorted(counts.ended.items()):
        family.add_metric([outcome, by.value], count)
    yield family
    yield GaugeMetricFamily(
        "bucketlog_oldest_two_phase_transaction_seconds",
        "Age of the oldest open transaction with two-phase commit; 0 if there is none.",
        value=counts.oldest_two_phase_ms / 1000,
    )


def _throttles(counts: ThrottleCounts) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "bucketlog_throttled_requests",
        "Requests, and refused connections, of clients above a quota.",
        labels=["quota"],
    )
    seconds = CounterMetricFamily(
        "bucketlog_throttle_seconds", "Sum of the clients' throttle times.", labels=["quota"]
    )
    for quota, count in sorted(counts.throttled.items()):
        requests.add_metric([quota], count)
        seconds.add_metric([quota], counts.throttle_ms[quota] / 1000)
    yield from (requests, seconds)
    yield GaugeMetricFamily(
        "bucketlog_quota_rates",
        "Number of rates that the broker measures for quotas.",
        value=counts.tracked,
    )


def _encryption(counts: EncryptionCounts) -> Iterator[Metric]:
    done = CounterMetricFamily(
        "bucketlog_encrypted_bytes",
        "Bytes of batches that were encrypted for producers, and decrypted for consumers.",
        labels=["direction"],
    )
    done.add_metric(["in"], counts.sealed_bytes)
    done.add_metric(["out"], counts.opened_bytes)
    yield done
    yield CounterMetricFamily(
        "bucketlog_data_keys_created", "Data keys that this broker created.", value=counts.data_keys
    )
    failed = CounterMetricFamily(
        "bucketlog_encryption_failures",
        "Requests that failed because a key was refused or unavailable, or a batch was changed.",
        labels=["reason"],
    )
    for reason in ("refused", "unavailable", "broken"):
        failed.add_metric([reason], getattr(counts, reason))
    yield failed


def _producers(rows: ProducerRows) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "bucketlog_producers", "Idempotent producers in Redis, per partition.", value=rows.known
    )
    yield CounterMetricFamily(
        "bucketlog_held_back_batches",
        "Batches of new producers that were refused because of producers_max.",
        value=rows.held_back,
    )


def _limits(limits: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(
        "bucketlog_limit", "Limits of this broker, by setting.", labels=["setting"]
    )
    for setting, limit in limits.items():
        family.add_metric([setting], limit)
    return family


def _requests(figures: RequestFigures) -> Iterator[Metric]:
    seconds = HistogramMetricFamily(
        "bucketlog_request_seconds",
        "Time from a request's last byte to its response, with the wait that it asked for.",
        labels=["api"],
    )
    taken = CounterMetricFamily("bucketlog_request_bytes", "Bytes of requests.", labels=["api"])
    given = CounterMetricFamily("bucketlog_response_bytes", "Bytes of responses.", labels=["api"])
    for api_key, each in sorted(figures.by_api.items()):
        labels = [ApiKey(api_key).message_name]
        seconds.add_metric(labels, each.seconds.cumulative(), each.seconds.total_s)
        taken.add_metric(labels, each.request_bytes)
        given.add_metric(labels, each.response_bytes)
    slow = CounterMetricFamily(
        "bucketlog_slow_requests",
        "Requests that took longer than slow_request_ms, without the wait that they asked for.",
        labels=["api"],
    )
    for api_key, count in sorted(figures.slow.items()):
        slow.add_metric([ApiKey(api_key).message_name], count)
    software = CounterMetricFamily(
        "bucketlog_client_handshakes",
        "Handshakes of clients (ApiVersions), by their software and its version.",
        labels=["software"],
    )
    for name, count in sorted(figures.software.items()):
        software.add_metric([name], count)
    yield from (seconds, taken, given, slow, software)
    errors = CounterMetricFamily(
        "bucketlog_request_errors",
        "Error codes in responses, by partition; of other APIs also by topic and group.",
        labels=["api", "error"],
    )
    for (api_key, code), count in sorted(figures.errors.items()):
        errors.add_metric([ApiKey(api_key).message_name, code.name.upper()], count)
    yield errors


def closed_connections(figures: RequestFigures) -> Metric:
    family = CounterMetricFamily(
        "bucketlog_connections_closed",
        "Connections that the broker closed, by the setting that is the reason.",
        labels=["reason"],
    )
    for reason, count in sorted(figures.closed.items()):
        family.add_metric([reason], count)
    return family


def _bucket_requests(counts: BucketCounts) -> Metric:
    family = CounterMetricFamily(
        "bucketlog_bucket_requests", "Requests to the bucket, by verb.", labels=["verb"]
    )
    for verb in ("creates", "gets", "lists", "deletes", "heads"):
        family.add_metric([verb.removesuffix("s")], getattr(counts, verb))
    return family
