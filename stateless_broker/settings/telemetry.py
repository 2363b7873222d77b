"""The broker's settings for metrics of clients (KIP-714): a part of `BrokerSettings`."""

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import Positive

ALL_METRICS = "*"


class TelemetrySettings(BaseSettings):
    client_metrics: str = Field(
        "",
        description="Metrics that brokers ask clients for (KIP-714): prefixes of names, separated "
        "by commas, as in org.apache.kafka.producer.; *: all. Empty: none "
        "(docs/operations.md#metrics-of-clients).",
    )
    client_metrics_interval_ms: Annotated[int, Field(ge=100, le=3_600_000)] = Field(
        300_000, description="How often a client sends its metrics."
    )
    client_metrics_bytes_max: Positive = Field(
        1_048_576, description="telemetry.max.bytes: limit of the metrics in one request."
    )
    client_metrics_decompressed_bytes_max: Positive = Field(
        4_194_304, description="Limit of the metrics in one request, decompressed."
    )
    client_metrics_series_max: Positive = Field(
        500, description="Limit of the series of one client. A broker leaves out further ones."
    )
    client_metrics_clients_max: Positive = Field(
        1_000, description="Limit of the clients whose metrics a broker keeps."
    )

    @property
    def client_metric_prefixes(self) -> tuple[str, ...]:
        """The empty prefix is that of all names. No prefix: clients send nothing."""
        names = [each.strip() for each in self.client_metrics.split(",") if each.strip()]
        return ("",) if ALL_METRICS in names else tuple(dict.fromkeys(names))
