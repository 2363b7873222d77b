"""The APIs by which clients send their metrics (KIP-714)."""

import time
from typing import Any

from bucketlog.log_format.wire.messages.get_telemetry_subscriptions import (
    GET_TELEMETRY_SUBSCRIPTIONS,
)
from bucketlog.log_format.wire.messages.push_telemetry import PUSH_TELEMETRY
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.authorization.needs import NOTHING
from bucketlog.stateless_broker.handlers.client_telemetry import (
    ClientTelemetryHandler,
    TelemetryRules,
)
from bucketlog.stateless_broker.network.apis import Api
from bucketlog.stateless_broker.network.request_order import UNORDERED


def telemetry_apis(broker: BrokerParts) -> list[Api[Any, Any]]:
    """Return the APIs for clients' metrics. Every client may use them, as in Kafka."""
    settings = broker.settings
    rules = TelemetryRules(
        settings.client_metric_prefixes,
        settings.client_metrics_interval_ms,
        settings.client_metrics_bytes_max,
        settings.client_metrics_decompressed_bytes_max,
        settings.client_metrics_series_max,
        settings.client_metrics_clients_max,
    )
    handler = ClientTelemetryHandler(
        rules, broker.counts.telemetry, new_uuid=broker.new_uuid, now_s=time.monotonic
    )
    return [
        Api(GET_TELEMETRY_SUBSCRIPTIONS, handler.subscriptions, NOTHING, UNORDERED),
        Api(PUSH_TELEMETRY, handler.push, NOTHING, UNORDERED),
    ]
