"""GetTelemetrySubscriptions and PushTelemetry: metrics that clients send (KIP-714).

Invariants: clients, series and bytes are bounded. A client sends no more often than the interval
says, else it is refused before its metrics are read. Source: KIP-714; Kafka's ClientMetricsManager
and ClientMetricsInstance.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from crc32c import crc32c
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.compression import decompress
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.otlp_metrics import TEXT_CHARS_MAX, Series, read_metrics
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from bucketlog.log_format.wire.messages.push_telemetry import (
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from bucketlog.stateless_broker.network.apis import Request

KEPT_INTERVALS = 3
"""Metrics of a client that has been silent for longer are not shown."""
CODECS = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""The accepted codecs, in the order of Kafka's brokers."""


class TelemetryRules(NamedTuple):
    """`prefixes` are those of the names that clients should send; none: clients send nothing."""

    prefixes: tuple[str, ...]
    interval_ms: int
    bytes_max: int
    decompressed_bytes_max: int
    series_max: int
    clients_max: int

    @property
    def subscription_id(self) -> int:
        """The id of the subscription. Different subscriptions have different ids."""
        text = "\0".join((str(self.interval_ms), *sorted(self.prefixes)))
        return int(crc32c(text.encode())) - (1 << 31)


@dataclass(slots=True)
class ClientInstance:
    client_id: str
    asked_s: float = float("-inf")
    pushed_s: float = float("-inf")
    is_over: bool = False
    """Whether the client has said that it ends."""
    has_erred: bool = False
    """Whether the client may ask again at once."""
    series: Mapping[Series, float] = field(default_factory=dict)


class ClientMetrics:
    """The clients that send metrics, the one that was silent for longest first."""

    def __init__(self) -> None:
        self.instances: OrderedDict[UUID, ClientInstance] = OrderedDict()
        self.interval_ms = 0
        self.refused = 0
        """Number of requests that were refused."""

    def shown(self, now_s: float) -> Iterator[tuple[UUID, ClientInstance]]:
        """Clients that have sent metrics lately."""
        since_s = now_s - KEPT_INTERVALS * self.interval_ms / 1000
        for instance_id, instance in self.instances.items():
            if instance.pushed_s >= since_s:
                yield instance_id, instance

    def instance(
        self, instance_id: UUID, client_id: str, rules: TelemetryRules, now_s: float
    ) -> ClientInstance | None:
        """Return the client's instance, new if it is unknown. None: there is no room for another
        client."""
        found = self.instances.get(instance_id)
        if found is None:
            silent_s = now_s - KEPT_INTERVALS * rules.interval_ms / 1000
            while len(self.instances) >= rules.clients_max:
                oldest_id, oldest = next(iter(self.instances.items()))
                if max(oldest.asked_s, oldest.pushed_s) >= silent_s:
                    return None
                del self.instances[oldest_id]
            found = self.instances[instance_id] = ClientInstance(client_id[:TEXT_CHARS_MAX])
        self.instances.move_to_end(instance_id)
        return found


class ClientTelemetryHandler:
    def __init__(
        self,
        rules: TelemetryRules,
        metrics: ClientMetrics,
        *,
        new_uuid: Callable[[], UUID],
        now_s: Callable[[], float],
    ) -> None:
        self._rules = rules
        self._metrics = metrics
        metrics.interval_ms = rules.interval_ms
        self._new_uuid = new_uuid
        self._now_s = now_s

    async def subscriptions(
        self, request: Request, message: GetTelemetrySubscriptionsRequest
    ) -> GetTelemetrySubscriptionsResponse:
        rules, now_s = self._rules, self._now_s()
        instance_id = message.client_instance_id or self._new_uuid()
        client_id = request.header.client_id
        instance = self._metrics.instance(instance_id, client_id, rules, now_s)
        error = ErrorCode.none
        if instance is None or not self._may_ask(instance, now_s):
            error = ErrorCode.throttling_quota_exceeded
            self._metrics.refused += 1
        else:
            instance.asked_s, instance.has_erred = now_s, False
        is_right = error is ErrorCode.none
        return {
            "error_code": error,
            "client_instance_id": instance_id if is_right else None,
            "subscription_id": rules.subscription_id if is_right else 0,
            "accepted_compression_types": list(map(int, CODECS)) if is_right else [],
            "push_interval": timedelta(milliseconds=rules.interval_ms if is_right else 0),
            "telemetry_max_bytes": rules.bytes_max if is_right else 0,
            "delta_temporality": False,
            "requested_metrics": list(rules.prefixes) if is_right else [],
        }

    def _may_ask(self, instance: ClientInstance, now_s: float) -> bool:
        last_s = max(instance.asked_s, instance.pushed_s)
        return instance.has_erred or now_s - last_s >= self._rules.interval_ms / 1000

    async def push(self, request: Request, message: PushTelemetryRequest) -> PushTelemetryResponse:
        error = await self._push(request, message)
        if error is not ErrorCode.none:
            self._metrics.refused += 1
        return {"error_code": error}

    async def _push(self, request: Request, message: PushTelemetryRequest) -> ErrorCode:
        rules, now_s, instance_id = self._rules, self._now_s(), message.client_instance_id
        if instance_id is None:
            return ErrorCode.invalid_request
        client_id = request.header.client_id
        instance = self._metrics.instance(instance_id, client_id, rules, now_s)
        if instance is None:
            return ErrorCode.throttling_quota_exceeded
        if instance.is_over:
            return ErrorCode.invalid_request
        is_first = instance.asked_s > instance.pushed_s
        is_early = not is_first and now_s - instance.pushed_s < rules.interval_ms / 1000
        if is_early and not message.terminating:
            return ErrorCode.throttling_quota_exceeded
        instance.pushed_s, instance.is_over = now_s, message.terminating
        if message.subscription_id != rules.subscription_id:
            instance.has_erred = True
            return ErrorCode.unknown_subscription_id
        if message.compression_type not in (Codec.NONE, *CODECS):
            instance.has_erred = True
            return ErrorCode.unsupported_compression_type
        if len(message.metrics) > rules.bytes_max:
            return ErrorCode.telemetry_too_large
        try:
            found = await asyncio.to_thread(_read, rules, message.compression_type, message.metrics)
        except InvalidDataError as error:
            return kafka_code(error, ApiFamily.PRODUCE)
        instance.series = {} if message.terminating else found
        return ErrorCode.none


def _read(rules: TelemetryRules, codec: int, data: bytes) -> Mapping[Series, float]:
    plain = decompress(codec, data, max_bytes=rules.decompressed_bytes_max)
    return read_metrics(bytes(plain), rules.prefixes, series_max=rules.series_max)
