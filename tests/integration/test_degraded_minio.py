"""Broker processes on a real MinIO, or a disk, that goes away under librdkafka's load, alone and
together with Redis: judged by the promises of `tests/models/promises.py`."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

import psutil
import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from localstack.servers import RunningStore
from tests.models.history import History
from tests.models.promises import check
from tests.rigs.patience import PATIENCE_S, eventually, let_pass
from tests.rigs.wire_client import WireClient, build_batch
from tests.scenarios.load import Load, read_to_end
from tests.scenarios.round_trip import create_topic
from tests.servers.broker_process import BrokerProcess
from tests.servers.cluster import free_port
from tests.servers.own_valkey import OwnValkey
from tests.servers.way import ANY_PORT, State, Way

pytestmark = pytest.mark.long

TOPIC, PARTITIONS = "degraded", 3
MIB = 1 << 20
GIVE_UP_MS = 1000
QUICK = {
    "put_give_up_ms": str(GIVE_UP_MS),
    "reservation_limit_ms": str(2 * GIVE_UP_MS),
    "redis_timeout_ms": "500",
    "heartbeat_interval_ms": "100",
    "session_timeout_ms": "1000",
    "fetch_read_ms_max": "2000",
}
OUTAGE_S = 3 * GIVE_UP_MS / 1000


class Place:
    """Two ways: to MinIO and to Valkey; brokers that take them."""

    def __init__(self, store: RunningStore, to_store: Way, to_redis: Way, folder: Path) -> None:
        self.to_store = to_store
        self.to_redis = to_redis
        self.brokers: list[BrokerProcess] = []
        self._store = store
        self._folder = folder

    def begin(self, **settings: str) -> BrokerProcess:
        """It is not ready yet."""
        assert isinstance(self.to_store.address, tuple)
        host, port = self.to_store.address
        found = {"AWS_ENDPOINT_URL_S3": f"http://{host}:{port}", **QUICK_S3}
        broker = BrokerProcess(
            self._folder / f"broker-{len(self.brokers)}.log",
            self._store.environment() | found,
            bucket_url=f"s3://degraded/{self._folder.name}",
            redis_url=f"unix://{self.to_redis.address}",
            **QUICK | settings,
        )
        self.brokers.append(broker)
        return broker

    def start(self, **settings: str) -> BrokerProcess:
        return self.begin(**settings).wait_until_ready()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)


QUICK_S3 = {"BUCKETLOG_S3_REQUEST_TIMEOUT_MS": "1500", "BUCKETLOG_S3_CONNECT_TIMEOUT_MS": "500"}


@pytest.fixture
def place(minio: RunningStore, valkey: OwnValkey, tmp_path: Path) -> Iterator[Place]:
    minio.make_bucket("degraded")
    host, _, port = minio.endpoint_url.rpartition("/")[2].partition(":")
    with ExitStack() as closing:
        to_store = closing.enter_context(Way((host, int(port)), ANY_PORT))
        to_redis = closing.enter_context(Way(valkey.path, tmp_path / "way.sock"))
        place = Place(minio, to_store, to_redis, tmp_path)
        yield place
        to_store.be(State.OPEN)
        to_redis.be(State.OPEN)
        for broker in place.brokers:
            broker.kill()


@contextmanager
def judged_load(bootstrap: str) -> Iterator[History]:
    """What it was told must be in the log when the block is left."""
    create_topic(bootstrap.partition(",")[0], TOPIC, PARTITIONS)
    history = History()
    load = Load("producer", bootstrap, history, topic=TOPIC, partitions=PARTITIONS)
    load.start()
    try:
        load.wait_for(500)
        yield history
        load.wait_for(500)
    finally:
        load.stop()
    assert not load.failures
    check(history, read_to_end(bootstrap, history, topic=TOPIC, partitions=PARTITIONS))


@pytest.mark.parametrize("state", [State.BLACK_HOLE, State.CLOSED])
@pytest.mark.parametrize("what", ["bucket", "redis", "both"])
def test_load_across_an_outage(place: Place, state: State, what: str) -> None:
    ways = {"bucket": [place.to_store], "redis": [place.to_redis]}
    gone = [way for name, mine in ways.items() if what in (name, "both") for way in mine]
    place.start()
    place.start()
    with judged_load(place.bootstrap) as history:
        for way in gone:
            way.be(state)
        eventually(lambda: all(broker.readiness()[0] == 503 for broker in place.brokers))
        if what == "redis":  # a client that comes now reads all there is
            read_to_end(place.bootstrap, history, topic=TOPIC, partitions=PARTITIONS)
        let_pass(OUTAGE_S)
        for way in gone:
            way.be(State.OPEN)
    eventually(lambda: all(broker.readiness() == (200, {}) for broker in place.brokers))
    for broker in place.brokers:
        assert broker.metrics()["bucketlog_epoch"] == 1
        assert broker.terminate() == 0


@pytest.mark.parametrize("state", [State.BLACK_HOLE, State.CLOSED])
def test_a_broker_that_starts_without_its_bucket_waits_for_it(place: Place, state: State) -> None:
    place.to_store.be(state)
    http_port = free_port()
    broker = place.begin(http_port=str(http_port))
    broker.ready = {"http_port": http_port}
    eventually(lambda: tells(broker, "bucket"))
    place.to_store.be(State.OPEN)
    broker.wait_until_ready()
    eventually(lambda: broker.readiness() == (200, {}))
    assert broker.terminate() == 0


def tells(broker: BrokerProcess, part: str) -> bool:
    try:
        status, reasons = broker.readiness()
    except OSError:  # it does not listen yet
        return False
    return status == 503 and part in reasons


def test_memory_is_bounded_and_sockets_are_not_read(place: Place) -> None:
    """A client that sends and sends is held back, and then served."""
    budget = 8 * MIB
    broker = place.start(produce_buffer_bytes=str(budget), produce_buffer_address_percent_max="100")
    process = psutil.Process(broker.process.pid)
    create_topic(broker.bootstrap, TOPIC, 1)
    batch = build_batch([(None, os.urandom(MIB // 2))])
    requests = 200
    with WireClient(broker.bootstrap, timeout_s=2 * PATIENCE_S) as client:
        data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
        for _ in range(4):  # what it costs at all
            client.call(ApiKey.PRODUCE, 9, acks=-1, timeout=60_000, topic_data=data)
        before = process.memory_info().rss
        place.to_store.be(State.BLACK_HOLE)
        sender = Sender(client, data, requests)
        with sender:
            eventually(lambda: broker.frame_bytes() > budget - MIB)
            let_pass(OUTAGE_S)
            assert broker.frame_bytes() <= budget + MIB
            assert sender.sent < requests / 2
            assert process.memory_info().rss - before < 6 * budget
            place.to_store.be(State.OPEN)
            outcomes = [sender.receive() for _ in range(requests)]
    assert {error for error, _ in outcomes} == {ErrorCode.none}
    offsets = [offset for _, offset in outcomes]  # with a gap where a writer was given up
    assert offsets == sorted(set(offsets))
    eventually(lambda: broker.frame_bytes() == 0)
    assert broker.terminate() == 0


class Sender(threading.Thread):
    """Sends on while it can; `sent` requests have left."""

    def __init__(self, client: WireClient, data: Sequence[Any], requests: int) -> None:
        super().__init__(name="sender", daemon=True)
        self.sent = 0
        self._client = client
        self._data = data
        self._requests = requests

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.join(PATIENCE_S)

    def run(self) -> None:
        for _ in range(self._requests):
            self._client.send(ApiKey.PRODUCE, 9, acks=-1, timeout=60_000, topic_data=self._data)
            self.sent += 1

    def receive(self) -> tuple[int, int]:
        row = self._client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0]
        return row.error_code, row.base_offset


# A disk that is full -----------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_load_across_a_full_disk(small_disk: Path, valkey: OwnValkey, tmp_path: Path) -> None:
    broker = BrokerProcess(
        tmp_path / "broker.log",
        bucket_url=f"file://{small_disk}/bucket",
        redis_url=f"unix://{valkey.path}",
        **QUICK,
    )
    try:
        broker.wait_until_ready()
        with judged_load(broker.bootstrap):
            filler = small_disk / "filler"
            with filler.open("wb") as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(MIB))
                    file.flush()
            eventually(lambda: "free space on its disk" in broker.readiness()[1].get("bucket", ""))
            let_pass(OUTAGE_S)
            filler.unlink()
        eventually(lambda: broker.readiness() == (200, {}))
        assert broker.metrics()["bucketlog_epoch"] == 1
        assert broker.terminate() == 0
    finally:
        broker.kill()
