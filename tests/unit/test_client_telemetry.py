"""Metrics of clients: the limits, the order of requests, and the reading of OTLP."""

import asyncio
import struct
import zlib
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.otlp_metrics import TEXT_CHARS_MAX, Series, read_metrics
from bucketlog.log_format.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
)
from bucketlog.log_format.wire.messages.push_telemetry import PushTelemetryRequest
from bucketlog.stateless_broker.handlers.client_telemetry import (
    KEPT_INTERVALS,
    ClientMetrics,
    ClientTelemetryHandler,
    TelemetryRules,
)

RULES = TelemetryRules(("org.",), 1_000, 400, 1_000, 3, 2)
REQUEST: Any = SimpleNamespace(header=SimpleNamespace(client_id="app"))


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def part(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(key: str, value: str) -> bytes:
    return part(1, key.encode()) + part(2, part(1, value.encode()))


def metric(name: str, value: float = 1.0, **attributes: str) -> bytes:
    point = varint(4 << 3 | 1) + struct.pack("<d", value)
    point += b"".join(part(7, attribute(*each)) for each in attributes.items())
    return part(2, part(1, name.encode()) + part(5, part(1, point)))


def otlp(*metrics: bytes) -> bytes:
    return part(1, part(1, b"") + part(2, b"".join(metrics)))


@dataclass
class Rig:
    rules: TelemetryRules = RULES
    now_s: float = 50.0
    metrics: ClientMetrics = field(default_factory=ClientMetrics)

    def __post_init__(self) -> None:
        self.handler = ClientTelemetryHandler(
            self.rules, self.metrics, new_uuid=uuid4, now_s=lambda: self.now_s
        )

    def ask(self, instance: UUID | None = None) -> Any:
        message = GetTelemetrySubscriptionsRequest(client_instance_id=instance)
        return asyncio.run(self.handler.subscriptions(REQUEST, message))

    def push(self, instance: UUID | None, data: bytes = b"", **changes: Any) -> ErrorCode:
        values: dict[str, Any] = {
            "subscription_id": self.rules.subscription_id,
            "terminating": False,
            "compression_type": 0,
        }
        message = PushTelemetryRequest(
            client_instance_id=instance, metrics=data, **(values | changes)
        )
        return asyncio.run(self.handler.push(REQUEST, message))["error_code"]

    def shown(self) -> dict[Series, float]:
        rows = [instance.series for _, instance in self.metrics.shown(self.now_s)]
        return {series: value for row in rows for series, value in row.items()}


def test_a_client_asks_and_sends() -> None:
    rig = Rig()
    told = rig.ask()
    assert told["error_code"] is ErrorCode.none
    assert list(told["requested_metrics"]) == ["org."]
    assert told["push_interval"] == timedelta(seconds=1)
    data = otlp(metric("org.a", 2.5, topic="t", z="1"), metric("other", 1))
    instance = told["client_instance_id"]
    assert rig.push(instance, data) is ErrorCode.none
    assert rig.shown() == {Series("org.a", (("topic", "t"), ("z", "1"))): 2.5}
    rig.now_s += 1
    gzip = zlib.compressobj(wbits=31)
    squeezed = gzip.compress(otlp(metric("org.a", 3))) + gzip.flush()
    assert rig.push(instance, squeezed, compression_type=1) is ErrorCode.none
    assert rig.shown() == {Series("org.a", ()): 3.0}
    rig.now_s += KEPT_INTERVALS + 0.1
    assert rig.shown() == {}


def test_requests_that_come_too_early_or_late() -> None:
    rig = Rig()
    instance = rig.ask()["client_instance_id"]
    assert rig.ask(instance)["error_code"] is ErrorCode.throttling_quota_exceeded
    assert rig.push(instance, otlp(metric("org.a"))) is ErrorCode.none
    assert rig.push(instance, otlp(metric("org.a", 9))) is ErrorCode.throttling_quota_exceeded
    assert rig.shown() == {Series("org.a", ()): 1.0}
    assert rig.push(instance, b"", terminating=True) is ErrorCode.none
    assert rig.shown() == {}
    rig.now_s += 5
    assert rig.push(instance) is ErrorCode.invalid_request
    assert rig.metrics.refused == 3


def test_requests_that_are_refused() -> None:
    rig = Rig()
    assert rig.push(None) is ErrorCode.invalid_request
    instance = rig.ask()["client_instance_id"]
    assert rig.push(instance, subscription_id=1) is ErrorCode.unknown_subscription_id
    rig.now_s += 0.01
    assert rig.ask(instance)["error_code"] is ErrorCode.none, "it may ask again at once"
    assert rig.push(instance, compression_type=9) is ErrorCode.unsupported_compression_type
    for data, codec, error in (
        (b"x" * 401, 0, ErrorCode.telemetry_too_large),
        (zlib.compress(bytes(10_000), wbits=31), 1, ErrorCode.invalid_record),
        (b"not gzip", 1, ErrorCode.invalid_record),
        (b"\xff" * 20, 0, ErrorCode.invalid_record),
    ):
        rig.now_s += 1
        assert rig.push(instance, data, compression_type=codec) is error
    assert rig.shown() == {}


def test_clients_and_series_are_bounded() -> None:
    rig = Rig()
    instances = [rig.ask()["client_instance_id"] for _ in range(RULES.clients_max)]
    assert rig.ask()["error_code"] is ErrorCode.throttling_quota_exceeded
    assert rig.push(uuid4()) is ErrorCode.throttling_quota_exceeded
    many = otlp(*(metric(f"org.{number}") for number in range(9)))
    assert rig.push(instances[0], many) is ErrorCode.none
    assert len(rig.shown()) == RULES.series_max
    rig.now_s += KEPT_INTERVALS + 0.1
    assert rig.ask()["error_code"] is ErrorCode.none, "the silent client is forgotten"
    assert len(rig.metrics.instances) == RULES.clients_max


def test_no_subscription() -> None:
    rig = Rig(RULES._replace(prefixes=()))
    told = rig.ask()
    assert (told["error_code"], list(told["requested_metrics"])) == (ErrorCode.none, [])
    assert rig.push(told["client_instance_id"], otlp(metric("org.a"))) is ErrorCode.none
    assert rig.shown() == {}


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        found = read_metrics(data, ("",), series_max=5)
    except InvalidDataError:
        return
    assert len(found) <= 5


@given(st.data())
def test_mutated_metrics_are_read_or_refused(data: st.DataObject) -> None:
    whole = bytearray(otlp(metric("org.a", 1, topic="t"), metric("org.b", 2)))
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        found = read_metrics(cut, ("",), series_max=5)
    except InvalidDataError:
        return
    assert all(len(series.name) <= TEXT_CHARS_MAX + 6 for series in found)


@pytest.mark.parametrize(("form", "count", "total"), [(9, 9, 9), (10, 1, 1), (11, 7, 7)])
def test_histograms_become_counts_and_sums(form: int, count: int, total: int) -> None:
    point = varint(4 << 3 | 1) + struct.pack("<q", 3) + varint(5 << 3 | 1) + struct.pack("<d", 4.5)
    point += part(count, attribute("a", "b"))
    assert count == total
    data = otlp(part(2, part(1, b"org.h") + part(form, part(1, point))))
    name = (("a", "b"),)
    assert read_metrics(data, ("",), series_max=9) == {
        Series("org.h.count", name): 3.0,
        Series("org.h.sum", name): 4.5,
    }


def test_whole_numbers() -> None:
    point = varint(6 << 3 | 1) + struct.pack("<q", -7)
    data = otlp(part(2, part(1, b"org.n") + part(7, part(1, point))))
    assert read_metrics(data, ("org",), series_max=9) == {Series("org.n", ()): -7.0}
