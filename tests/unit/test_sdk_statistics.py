"""Statistics of librdkafka are parsed with care: what is missing or wrong is 0 or None."""

import json
from random import Random
from typing import Any

import pytest

from bucketlog.client.option_bounds import READ, SENT
from bucketlog.client.options import consumer_config, producer_config
from bucketlog.client.statistics import LatestStatistics, Statistics

BROKER = {
    "name": "h:9092/3",
    "nodeid": 3,
    "source": "learned",
    "state": "UP",
    "outbuf_cnt": 1,
    "waitresp_cnt": 2,
    "tx": 30,
    "txbytes": 4000,
    "rxbytes": 500,
    "txerrs": 6,
    "req_timeouts": 7,
    "rtt": {"avg": 1500, "p99": 80_000, "cnt": 9},
    "throttle": {"avg": 12, "cnt": 9},
}
PARTITION = {
    "leader": 3,
    "msgq_cnt": 1,
    "msgq_bytes": 10,
    "xmit_msgq_cnt": 2,
    "xmit_msgq_bytes": 20,
    "fetchq_cnt": 3,
    "fetchq_size": 30,
    "txmsgs": 4,
    "rxmsgs": 5,
    "consumer_lag": 6,
    "committed_offset": -1001,
}
WHOLE: dict[str, Any] = {
    "name": "shop#producer-1",
    "time": 1_700_000_000,
    "age": 2_500_000,
    "msg_cnt": 3,
    "msg_size": 30,
    "tx": 30,
    "tx_bytes": 4000,
    "rx_bytes": 500,
    "txmsgs": 4,
    "rxmsgs": 5,
    "brokers": {"b": BROKER, "g": {"name": "GroupCoordinator", "source": "logical"}},
    "topics": {"t": {"topic": "t", "partitions": {"10": {}, "2": PARTITION, "-1": PARTITION}}},
}
WRONG: tuple[Any, ...] = (None, True, -5, 1.5, "text", [], {}, [{}], {"x": 1}, 10**30)


def parsed(text: str) -> Statistics:
    found = Statistics.parse(text)
    assert found is not None
    return found


def test_figures_have_the_units_of_their_names() -> None:
    found = parsed(json.dumps(WHOLE))
    assert (found.name, found.time_ms, found.age_ms) == ("shop#producer-1", 1_700_000_000_000, 2500)
    assert (found.queued_records, found.queued_bytes) == (3, 30)
    assert (found.sent_requests, found.sent_bytes, found.received_bytes) == (30, 4000, 500)
    assert (found.sent_records, found.received_records) == (4, 5)
    (broker,) = found.brokers
    assert (broker.name, broker.node_id, broker.is_connected) == ("h:9092/3", 3, True)
    assert (broker.queued_requests, broker.outstanding_requests) == (1, 2)
    assert (broker.rtt_mean_ms, broker.rtt_p99_ms, broker.throttle_mean_ms) == (1.5, 80, 12)
    assert (broker.failed_requests, broker.timed_out_requests) == (6, 7)
    first, second = found.partitions
    assert (first.topic, first.partition, second.partition) == ("t", 2, 10)
    assert (first.queued_records, first.queued_bytes) == (3, 30)
    assert (first.fetched_records, first.fetched_bytes) == (3, 30)
    assert (first.leader, first.lag_records, first.committed_offset) == (3, 6, None)
    assert (second.leader, second.lag_records, second.queued_records) == (None, None, 0)


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "null", "1", "[" * 100_000, "\ud800"])
def test_another_text_gives_no_statistics(text: str) -> None:
    assert Statistics.parse(text) is None


def test_wrong_values_are_survived() -> None:
    random = Random(1)

    def damaged(value: Any) -> Any:
        if random.random() < 0.15:
            return random.choice(WRONG)
        if isinstance(value, dict):
            return {key: damaged(inner) for key, inner in value.items() if random.random() < 0.95}
        return value

    for _ in range(2000):
        found = Statistics.parse(json.dumps(damaged(WHOLE)))
        if found is not None:
            assert found.queued_records >= 0
            hash(found)


def test_the_last_readable_text_counts() -> None:
    latest = LatestStatistics()
    found = [latest.latest]
    for text in (json.dumps(WHOLE), "nonsense", json.dumps(WHOLE | {"msg_cnt": 4})):
        latest.take(text)
        found += [latest.latest, latest.latest]
    assert found[0] is None
    assert found[1] is found[2] is found[3] is found[4]
    assert [each and each.queued_records for each in found] == [None, 3, 3, 3, 3, 4, 4]


def test_a_function_of_the_caller_is_kept() -> None:
    latest = LatestStatistics()
    assert latest.added_to({"a": 1}) == {"a": 1}
    assert latest.added_to({"statistics.interval.ms": 5})["stats_cb"] == latest.take
    mine = {"statistics.interval.ms": 5, "stats_cb": print}
    assert latest.added_to(mine) == mine


@pytest.mark.parametrize(("interval_s", "interval_ms"), [(0.0001, 1), (2.5, 2500)])
def test_an_interval_is_never_rounded_to_none(interval_s: float, interval_ms: int) -> None:
    assert producer_config({"statistics_interval_s": interval_s})["statistics.interval.ms"] == (
        interval_ms
    )
    options = {"statistics_interval_s": interval_s}
    assert consumer_config(options, None)["statistics.interval.ms"] == interval_ms
    assert not options


def test_without_an_interval_nothing_is_asked_for() -> None:
    for config in (producer_config({}), consumer_config({}, None)):
        assert "statistics.interval.ms" not in config
    assert SENT["statistics_interval_s"] == READ["statistics_interval_s"]
