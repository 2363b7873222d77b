"""Broker processes whose Redis is out of reach: when they start, when they end, and what they tell
of it."""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode
from redis import Redis

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient, build_batch
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.cluster import free_port
from tests.servers.own_valkey import OwnValkey
from tests.servers.way import State, Way

pytestmark = pytest.mark.long

QUICK = {"redis_timeout_ms": "500", "heartbeat_interval_ms": "100", "session_timeout_ms": "1000"}


@pytest.fixture
def way(valkey: OwnValkey, tmp_path: Path) -> Iterator[Way]:
    """To Valkey; it begins closed."""
    with Way(valkey.path, tmp_path / "way.sock") as way:
        way.be(State.CLOSED)
        yield way


def begin(start: Start, way: Way, **settings: str) -> BrokerProcess:
    """A broker that is not ready yet; `ready` has its ports."""
    port, http_port = free_port(), free_port()
    broker = start(
        redis_url=f"unix://{way.address}",
        port=str(port),
        http_port=str(http_port),
        **QUICK | settings,
    )
    broker.ready = {"port": port, "http_port": http_port}
    return broker


def tells(broker: BrokerProcess, *parts: str) -> bool:
    """Whether /readyz names all of these."""
    try:
        status, reasons = broker.readiness()
    except OSError:  # it does not listen yet
        return False
    return status == 503 and set(parts) <= reasons.keys()


def create_topic(client: WireClient) -> None:
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    topic |= {"configs": (), "assignments": ()}
    assert client.call(ApiKey.CREATE_TOPICS, 5, topics=[topic]).topics[0].error_code == 0


def produce(client: WireClient, value: bytes, timeout: int = 20_000) -> tuple[int, int]:
    rows = [{"index": 0, "records": build_batch([(None, value)])}]
    data = [{"name": "t", "partition_data": rows}]
    answer = client.call(ApiKey.PRODUCE, 9, acks=-1, timeout=timeout, topic_data=data)
    row = answer.responses[0].partition_responses[0]
    return row.error_code, row.base_offset


def lines_with(broker: BrokerProcess, words: str) -> list[str]:
    return [line for line in broker.log.read_text().splitlines() if words in line]


@pytest.mark.parametrize("state", [State.CLOSED, State.BLACK_HOLE])
def test_a_broker_that_starts_without_redis_waits_for_it(
    start: Start, way: Way, state: State
) -> None:
    way.be(state)
    broker = begin(start, way)
    eventually(lambda: tells(broker, "redis", "start"))
    assert "Redis is unreachable" in broker.readiness()[1]["redis"]
    with pytest.raises(ConnectionRefusedError):  # clients go elsewhere
        socket.create_connection(("127.0.0.1", broker.ready["port"]))
    way.be(State.OPEN)
    broker.wait_until_ready()
    eventually(lambda: broker.readiness() == (200, {}))
    assert len(lines_with(broker, "redis is degraded: Redis is unreachable")) == 1
    assert len(lines_with(broker, "redis works again")) == 1
    assert broker.terminate() == 0


def test_a_start_has_its_time(start: Start, way: Way) -> None:
    broker = begin(start, way, start_timeout_ms="1500")
    assert broker.wait() == 1
    said = lines_with(broker, "bucketlog broker: ")
    assert len(said) == 1
    assert "Redis is unreachable" in said[0]


def test_a_start_that_waits_may_be_ended(start: Start, way: Way) -> None:
    broker = begin(start, way)
    eventually(lambda: tells(broker, "redis"))
    assert broker.terminate() == 0


def test_it_tells_of_its_state_and_serves_new_clients(start: Start, way: Way) -> None:
    way.be(State.OPEN)
    broker = begin(start, way).wait_until_ready()
    with WireClient(broker.bootstrap) as client:
        create_topic(client)
        assert produce(client, b"kept") == (ErrorCode.none, 0)
    parts = ("heartbeat", "sequencer", "stream")
    for turn in (1, 2):
        way.be(State.BLACK_HOLE)
        eventually(lambda: tells(broker, *parts))
        metrics = broker.metrics()
        assert metrics["bucketlog_ready"] == 0
        assert {f'bucketlog_degraded{{part="{part}"}}' for part in parts} <= metrics.keys()
        with WireClient(broker.bootstrap) as client:  # a new connection
            row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
            topics = [{"topic": "t", "partitions": [row]}]
            answer = client.call(ApiKey.FETCH, 11, max_wait=0, min_bytes=1, topics=topics, **FETCH)
            found = answer.responses[0].partitions[0]
            assert found.error_code == 0
            assert b"kept" in found.records
            for _ in range(15):
                assert produce(client, b"late", 100)[0] == ErrorCode.request_timed_out
        way.be(State.OPEN)
        eventually(lambda: broker.readiness() == (200, {}))
        for part in parts:  # in turn, however often it was tried
            lines = lines_with(broker, f".health: {part} ")
            degraded = [" is degraded: " in line for line in lines]
            assert degraded == [True, False] * (len(degraded) // 2)
            assert len(degraded) >= 2 * turn
    assert not any(name.startswith("bucketlog_degraded{") for name in broker.metrics())
    assert broker.terminate() == 0


@pytest.mark.parametrize("what", ["login", "command"])
def test_what_redis_refuses_a_running_broker_is_waited_for(
    start: Start, valkey: OwnValkey, what: str
) -> None:
    """Passwords and permissions are changed while brokers run, and put right again."""
    broker = start(redis_url=f"unix://{valkey.path}", **QUICK).wait_until_ready()
    with WireClient(broker.bootstrap) as client, Redis(unix_socket_path=str(valkey.path)) as admin:
        create_topic(client)
        if what == "login":
            admin.config_set("requirepass", "changed")
            admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            words = "Redis refused the login"
        else:
            admin.execute_command("ACL", "SETUSER", "default", "-evalsha", "-eval")
            words = "Redis does not permit"
        eventually(lambda: words in broker.readiness()[1].get("heartbeat", ""))
        assert produce(client, b"late", 100)[0] == ErrorCode.request_timed_out
        assert "writing" not in broker.readiness()[1]
        if what == "login":
            admin.config_set("requirepass", "")
        else:
            admin.execute_command("ACL", "SETUSER", "default", "+evalsha", "+eval")
        eventually(lambda: broker.readiness() == (200, {}))
        assert produce(client, b"kept")[0] == ErrorCode.none
    assert broker.terminate() == 0


FETCH = {
    "replica_id": -1,
    "max_bytes": 1 << 20,
    "isolation_level": 0,
    "session_id": 0,
    "session_epoch": -1,
    "rack_id": "",
}


def test_a_broker_that_stops_without_redis_has_its_time_and_says_what_is_left(
    start: Start, way: Way
) -> None:
    way.be(State.OPEN)
    broker = begin(start, way, drain_timeout_ms="1500").wait_until_ready()
    with WireClient(broker.bootstrap) as client:
        create_topic(client)
        way.be(State.BLACK_HOLE)
        eventually(lambda: tells(broker, "heartbeat"))
        batch = build_batch([(None, b"late")])
        data = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
        client.send(ApiKey.PRODUCE, 9, acks=-1, timeout=60_000, topic_data=data)
        eventually(lambda: broker.frame_bytes() > 0)
        broker.process.send_signal(signal.SIGTERM)
        assert broker.wait() == 0
    said = lines_with(broker, "stopping after BUCKETLOG_DRAIN_TIMEOUT_MS (1500)")
    assert len(said) == 1
    assert "0 segments are not known to be in the log, 1 batches and changes" in said[0]
    assert "Redis is unreachable" in said[0]
    assert len(lines_with(broker, "left without saying so")) == 2
