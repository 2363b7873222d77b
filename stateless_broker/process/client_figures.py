"""The metrics that clients have sent (KIP-714), as the broker's figures."""

import time
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from bucketlog.stateless_broker.handlers.client_telemetry import ClientMetrics


def client_metrics(found: ClientMetrics) -> Iterator[Metric]:
    """Return the metrics that clients have sent (KIP-714)."""
    values = GaugeMetricFamily(
        "bucketlog_client_metric",
        "Last value of a metric that a client has sent (KIP-714).",
        labels=["name", "client_id", "instance", "attributes"],
    )
    clients = 0
    for instance_id, instance in found.shown(time.monotonic()):
        clients += 1
        for (name, attributes), value in instance.series.items():
            pairs = ",".join(f"{key}={text}" for key, text in attributes)
            values.add_metric([name, instance.client_id, str(instance_id), pairs], value)
    yield GaugeMetricFamily(
        "bucketlog_client_metrics_clients", "Clients that send metrics.", value=clients
    )
    yield CounterMetricFamily(
        "bucketlog_client_metrics_refused",
        "Requests about metrics of clients that were refused.",
        value=found.refused,
    )
    yield values
