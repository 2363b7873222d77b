"""The brokers' metrics on the page Brokers: states, and metrics pages that cannot be read."""

import pytest

from bucketlog.console.broker_metrics import (
    PAGES_MAX,
    BrokerMetrics,
    BrokerState,
    UsedLimit,
    state_of,
)
from bucketlog.console.page_deadline import UNBOUNDED
from bucketlog.cost.of_brokers import Figures, figures_in
from bucketlog.log_format.errors import BucketlogError, ConfigurationError

TEXT = """
bucketlog_ready 1
bucketlog_degraded{part="bucket"} 1
bucketlog_degraded{part="reading"} 0
bucketlog_frame_bytes{tenant="a"} 100
bucketlog_frame_bytes{tenant="b"} 28
bucketlog_limit{setting="produce_buffer_bytes"} 256
bucketlog_connections 3
# TYPE bucketlog_slow_requests counter
bucketlog_slow_requests_total{api="Produce"} 2
bucketlog_slow_requests_total{api="Metadata"} 7
# TYPE bucketlog_client_handshakes counter
bucketlog_client_handshakes_total{software="librdkafka 2.16.0"} 5
"""


def test_a_page_becomes_a_state() -> None:
    found = state_of("http://b/metrics", figures_in(TEXT))
    assert (found.is_ready, found.degraded) == (True, ["bucket"])
    frames = found.limits[0]
    assert frames == UsedLimit("received requests", "produce_buffer_bytes", 128, 256)
    assert (frames.percent, frames.is_bytes) == (50, True)
    connections = next(each for each in found.limits if each.name == "connections")
    assert (connections.used, connections.percent, connections.is_bytes) == (3, 0, False)
    assert found.slow == [("Metadata", 7), ("Produce", 2)]
    assert found.software == [("librdkafka 2.16.0", 5)]


def test_a_broker_that_does_not_answer_has_a_problem() -> None:
    def read(address: str) -> Figures:
        if "first" in address:
            raise BucketlogError(f"{address}: connection refused")
        return figures_in(TEXT)

    metrics = BrokerMetrics(
        ["http://first:1", "http://second:2/metrics"],
        refresh_ms=1_000,
        now_ms=lambda: 0,
        patience_ms=float("inf"),
        read=read,
    )
    first, second = metrics.states(UNBOUNDED)
    problem = "http://first:1/metrics: connection refused"
    assert first == BrokerState("http://first:1/metrics", problem)
    assert (second.address, second.problem) == ("http://second:2/metrics", "")


def test_pages_are_read_once_for_all_pages_of_the_console() -> None:
    calls: list[str] = []

    def read(address: str) -> Figures:
        calls.append(address)
        return {}

    metrics = BrokerMetrics(
        ["http://b:1"], refresh_ms=1_000, now_ms=lambda: 0, patience_ms=float("inf"), read=read
    )
    assert metrics.states(UNBOUNDED) == metrics.states(UNBOUNDED)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("urls", "problem"),
    [(["file:///etc/passwd"], "--metrics file"), (["http://b:1"] * (PAGES_MAX + 1), "101 times")],
)
def test_wrong_addresses_are_refused(urls: list[str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        BrokerMetrics(urls, refresh_ms=1, now_ms=lambda: 0, patience_ms=0)
