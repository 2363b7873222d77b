"""Idempotent producers of other people that come for the first time while Redis is out of reach:
what they are told makes each of them wait, and go on when it is back."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient
from tests.scenarios.round_trip import create_topic
from tests.servers.broker_process import BrokerProcess
from tests.servers.components import Components
from tests.servers.kafka_tools import participating_tools
from tests.servers.own_valkey import OwnValkey
from tests.servers.way import State, Way

pytestmark = pytest.mark.long

TOPIC = "t"
CLIENT_TRIES = 3
ANSWERED = 'bucketlog_request_seconds_count{api="InitProducerId"}'
QUICK = {"redis_timeout_ms": "500", "heartbeat_interval_ms": "100", "session_timeout_ms": "1000"}


@pytest.fixture
def outage(tmp_path: Path) -> Iterator[tuple[BrokerProcess, Way]]:
    """A broker with topic `t`, whose Redis does not answer."""
    valkey = OwnValkey(tmp_path)
    valkey.start()
    with Way(valkey.path, tmp_path / "way.sock") as way:
        broker = BrokerProcess(
            tmp_path / "broker.log",
            bucket_url=f"file://{tmp_path}/bucket",
            redis_url=f"unix://{way.address}",
            **QUICK,
        ).wait_until_ready()
        create_topic(broker.bootstrap, TOPIC, 1)
        way.be(State.BLACK_HOLE)
        yield broker, way
        way.be(State.OPEN)
        broker.kill()
    valkey.stop()


def of_librdkafka(bootstrap: str, components: Components) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    outcomes: list[object] = []
    producer.produce(TOPIC, b"value", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(60) == 0
    assert outcomes == [None]


def of_java(bootstrap: str, components: Components) -> None:
    """Idempotent by default."""
    tools = participating_tools(bootstrap, components)
    done = tools.run("kafka-console-producer", "--topic", TOPIC, stdin=b"value\n")
    assert done.returncode == 0, done.stderr.decode()
    assert b"ERROR" not in done.stderr + done.stdout, done.stderr.decode()


def open_when_asked(broker: BrokerProcess, way: Way) -> None:
    """Once the client was refused its producer id, and again."""
    try:
        eventually(lambda: broker.metrics().get(ANSWERED, 0) >= 1 + CLIENT_TRIES)
    finally:
        way.be(State.OPEN)


@pytest.mark.parametrize("produce", [of_librdkafka, of_java])
def test_a_producer_that_comes_meanwhile_waits(
    outage: tuple[BrokerProcess, Way],
    produce: Callable[[str, Components], None],
    components: Components,
) -> None:
    broker, way = outage
    with WireClient(broker.bootstrap) as client:
        asked = client.call(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=0
        )
    assert asked.error_code != 0
    back = threading.Thread(target=open_when_asked, args=(broker, way))
    back.start()
    try:
        produce(broker.bootstrap, components)
    finally:
        back.join()
    with WireClient(broker.bootstrap) as client:
        eventually(lambda: is_known(client))
        assert latest(client) == (ErrorCode.none, 1)


def latest(client: WireClient) -> tuple[ErrorCode, int]:
    """The error and the latest offset."""
    topics = [{"name": TOPIC, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    answer = client.call(ApiKey.LIST_OFFSETS, 4, replica_id=-1, isolation_level=0, topics=topics)
    (row,) = answer.topics[0].partitions
    return ErrorCode(row.error_code), row.offset


def is_known(client: WireClient) -> bool:
    """Whether the broker knows the latest offset. The broker may acknowledge a batch before it
    reads the stream again: then clients ask again."""
    error, _ = latest(client)
    assert error in (ErrorCode.none, ErrorCode.leader_not_available)
    return error is ErrorCode.none
