"""The metrics and the readiness of a broker with tenants, for its operator.

Invariants: each metric of a tenant's log has the label `tenant`; figures of the process appear
once, without the label. A broker is ready while it serves at least one tenant: the problems of one
tenant do not affect the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.samples import Sample

from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.network.loop_share import LoopShare
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.process.hosted_log import HostedLog
from bucketlog.stateless_broker.process.metrics import RenderedFigures, closed_connections

OF_PROCESS = frozenset(
    {
        "bucketlog_answer_bytes",
        "bucketlog_certificate_expires_seconds",
        "bucketlog_frame_bytes",
        "bucketlog_token_keys_age_seconds",
        "bucketlog_token_keys_failed_loads",
    }
)
LABEL = "tenant"


class TenantFigures(RenderedFigures):
    def __init__(
        self,
        logs: Callable[[], Sequence[HostedLog]],
        shares: Mapping[str, LoopShare],
        lobby: RequestFigures,
    ) -> None:
        """`lobby` counts the connections that were closed before their tenant was known."""
        self._logs = logs
        self._lobby = lobby
        self._shares = shares

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for log in self._logs():
            for metric in log.figures.collect():
                merged = found.get(metric.name)
                if merged is None:
                    merged = found[metric.name] = Metric(
                        metric.name, metric.documentation, metric.type, metric.unit
                    )
                if metric.name not in OF_PROCESS:
                    merged.samples += [_labelled(sample, log.tenant) for sample in metric.samples]
                elif not merged.samples:
                    merged.samples += metric.samples
        closed = closed_connections(self._lobby)
        if closed.name in found:
            found[closed.name].samples += [_labelled(sample, "") for sample in closed.samples]
        yield from found.values()
        loop = CounterMetricFamily(
            "bucketlog_tenant_loop_seconds",
            "Time for which requests of the tenant have kept the event loop busy.",
            labels=[LABEL],
        )
        for tenant, share in self._shares.items():
            loop.add_metric([tenant], share.used_ns / 1e9)
        yield loop


def _labelled(sample: Sample, tenant: str) -> Sample:
    return sample._replace(labels={LABEL: tenant, **sample.labels})


class TenantsHealth:
    """`health` is that of the process."""

    def __init__(self, health: Health, logs: Callable[[], Sequence[HostedLog]]) -> None:
        self._health = health
        self._logs = logs

    @property
    def ready(self) -> bool:
        return self._health.ready and any(log.health.ready for log in self._logs())

    def report(self) -> dict[str, str]:
        """Return the reasons why the broker is not ready, also those of single tenants."""
        report = self._health.report()
        for log in self._logs():
            report |= {f"{log.tenant}/{part}": why for part, why in log.health.report().items()}
        return report
