"""Clients above their quotas are told so and muted; other clients are not slowed."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Producer, ThrottleEvent

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.rigs.wire_client import WireClient, build_batch, fetch_values
from tests.servers.broker_process import BrokerProcess, Start

pytestmark = pytest.mark.long

BATCH = build_batch([(None, b"v" * 10_000)])
HOUR_MS = 3_600_000
THROTTLED = 89
"""THROTTLING_QUOTA_EXCEEDED."""
Open = Callable[..., WireClient]


@pytest.fixture
def broker(start: Start) -> BrokerProcess:
    return start(auto_create_topics="true").wait_until_ready()


@pytest.fixture
def connect(broker: BrokerProcess) -> Iterator[Open]:
    with ExitStack() as stack:

        def opened(client_id: str) -> WireClient:
            return stack.enter_context(WireClient(broker.bootstrap, client_id=client_id))

        yield opened


@pytest.fixture
def admin(connect: Open) -> WireClient:
    client = connect("admin")
    topics = [{"name": "t", "num_partitions": 1, "replication_factor": 1}]
    answer = client.call(ApiKey.CREATE_TOPICS, 7, topics=topics, timeout=30_000)
    assert answer.topics[0].error_code == 0
    return client


def limit(client: WireClient, kind: str, name: str | None, **values: float) -> None:
    entry = {
        "entity": [{"entity_type": kind, "entity_name": name}],
        "ops": [{"key": key, "value": value, "remove": False} for key, value in values.items()],
    }
    answer = client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=[entry], validate_only=False)
    assert answer.entries[0].error_code == 0, answer


def produce(client: WireClient, batch: bytes = BATCH) -> int:
    """The throttle time in milliseconds."""
    rows = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
    answer = client.call(ApiKey.PRODUCE, 8, acks=-1, timeout=30_000, topic_data=rows)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return milliseconds(answer)


def fetched(client: WireClient) -> tuple[int, int]:
    """The throttle time in milliseconds, and the number of bytes."""
    answer = client.call(ApiKey.FETCH, 11, **fetch_values("t", {0: 0}))
    rows = [part for topic in answer.responses for part in topic.partitions]
    return milliseconds(answer), sum(len(part.records or b"") for part in rows)


def milliseconds(answer: Any) -> int:
    seconds: float = answer.throttle_time.total_seconds()
    return round(seconds * 1000)


def ask(client: WireClient) -> Any:
    return client.call(ApiKey.METADATA, 8, topics=[], **RIGHTS)


RIGHTS = {
    "allow_auto_topic_creation": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
}


def test_a_producer_above_its_quota_is_muted_and_others_are_not(
    admin: WireClient, connect: Open, broker: BrokerProcess
) -> None:
    limit(admin, "client-id", "fast", producer_byte_rate=1)
    fast, other = connect("fast"), connect("other")
    assert produce(fast) == pytest.approx(len(BATCH) * 1000, rel=0.1)
    fast.send(ApiKey.METADATA, 8, topics=[], **RIGHTS)
    for _ in range(20):
        assert produce(other) == 0
        assert milliseconds(ask(other)) == 0
    assert not fast.has_answer()
    metrics = broker.metrics()
    assert metrics['bucketlog_throttled_requests_total{quota="producer_byte_rate"}'] == 1
    assert metrics["bucketlog_quota_rates"] == 1


def test_the_connection_answers_again_after_the_throttle_time(
    admin: WireClient, connect: Open
) -> None:
    limit(admin, "client-id", "fast", producer_byte_rate=1_000)
    fast = connect("fast")
    deadline = Deadline("", 1.9)
    assert 0 < produce(fast, build_batch([(None, b"v" * 12_000)])) <= 2_500
    assert milliseconds(ask(fast)) == 0
    assert deadline.is_over


def test_a_user_has_one_quota_for_all_its_clients(admin: WireClient, connect: Open) -> None:
    limit(admin, "user", "ANONYMOUS", producer_byte_rate=1)
    limit(admin, "client-id", "second", producer_byte_rate=10**9)
    assert produce(connect("first")) > 0
    assert produce(connect("second")) > len(BATCH) * 1000, "the user's use is that of both"


def test_a_fetch_above_the_quota_is_empty(admin: WireClient, connect: Open) -> None:
    for _ in range(4):
        produce(admin)
    limit(admin, "client-id", None, consumer_byte_rate=1)
    first, second = connect("reader"), connect("reader")
    throttle_ms, size = fetched(first)
    assert throttle_ms == pytest.approx(len(BATCH) * 1000, rel=0.1)
    assert size == len(BATCH), "one batch, whatever its size"
    throttle_ms, size = fetched(second)
    assert throttle_ms > HOUR_MS
    assert size == 0
    first.send(ApiKey.METADATA, 8, topics=[], **RIGHTS)
    assert fetched(connect("other"))[1] > 0, "each client id has a quota of its own"
    assert not first.has_answer()


def test_the_time_of_requests_is_limited(admin: WireClient, connect: Open) -> None:
    limit(admin, "client-id", "busy", request_percentage=0.000_001)
    busy = connect("busy")
    assert 0 < milliseconds(ask(busy)) <= 1_000, "at most one sample"
    assert 0 < milliseconds(ask(busy)) <= 1_000, "muted, then answered again"
    assert 0 < produce(busy) <= 1_000
    assert 0 < fetched(busy)[0] <= 1_000
    assert milliseconds(ask(connect("other"))) == 0


def test_partition_changes_above_the_quota_are_refused(admin: WireClient, connect: Open) -> None:
    limit(admin, "client-id", "maker", controller_mutation_rate=0.01)
    maker = connect("maker")

    def create(client: WireClient, name: str, version: int = 6) -> tuple[int, int]:
        topics = [{"name": name, "num_partitions": 5, "replication_factor": 1}]
        answer = client.call(ApiKey.CREATE_TOPICS, version, topics=topics, timeout=30_000)
        return answer.topics[0].error_code, milliseconds(answer)

    code, throttle_ms = create(maker, "first")
    assert code == 0, "the first change is accepted, whatever it costs"
    assert throttle_ms > 100_000
    code, throttle_ms = create(connect("maker"), "second")
    assert code == THROTTLED
    assert throttle_ms > 100_000
    code, throttle_ms = create(connect("maker"), "third", version=5)
    assert code == 0, "old clients do not know the error"
    assert throttle_ms > 100_000
    assert create(connect("other"), "fourth") == (0, 0)


def test_connections_of_an_address_are_limited(
    admin: WireClient, broker: BrokerProcess, connect: Open
) -> None:
    limit(admin, "ip", "127.0.0.1", connection_creation_rate=1)
    with ExitStack() as stack:
        refused = 0
        for _ in range(30):
            client = stack.enter_context(WireClient(broker.bootstrap))
            try:
                ask(client)
            except OSError:
                refused += 1
        assert refused > 0
    assert broker.metrics()[
        'bucketlog_connections_closed_total{reason="connection_creation_rate"}'
    ] == pytest.approx(refused)
    limit(admin, "ip", "127.0.0.1", connection_creation_rate=1_000)
    ask(connect("again"))


def test_librdkafka_stays_within_its_rate(admin: WireClient, broker: BrokerProcess) -> None:
    limit(admin, "client-id", "rdkafka", producer_byte_rate=50_000)
    throttles: list[ThrottleEvent] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": "rdkafka",
            "throttle_cb": throttles.append,
            "batch.size": 20_000,
        }
    )
    deadline = Deadline("", 800_000 / 50_000 - 11)
    """The quota of a window may be used at once."""
    for _ in range(80):
        producer.produce("t", b"v" * 10_000)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0
    assert deadline.is_over
    assert max(event.throttle_time for event in throttles) > 0
