"""`cluster info` and `health`, `broker list`, `client list`, and the lag of a group in time."""

import json
import signal
from itertools import count
from typing import Any

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.own_shell import OwnShell
from tests.rigs.patience import eventually
from tests.rigs.shell import Shell
from tests.servers.cluster import running_cluster

pytestmark = pytest.mark.long

LONG = {"session_timeout_ms": "120000"}
"""The broker stays a member for as long as the test lasts."""
_numbers = count()


@pytest.fixture
def name() -> str:
    return f"cli-health-{next(_numbers)}"


@pytest.fixture
def shell(broker: EmbeddedCluster) -> Shell:
    return OwnShell(broker.bootstrap)


def as_json(shell: Shell, *arguments: str) -> Any:
    return json.loads(shell.ok(*arguments, "-o", "json"))


def test_a_cluster_that_works(shell: Shell, broker: EmbeddedCluster, name: str) -> None:
    shell.ok("topic", "create", name, "-p", "2")
    (row,) = as_json(shell, "broker", "list")
    assert (row["address"], row["controller"]) == (broker.bootstrap, "yes")
    info = as_json(shell, "cluster", "info")
    assert (info["brokers"], info["topics"] > 0, info["bytes"] >= 0) == (1, True, True)
    http = f"http://127.0.0.1:{broker.http_port}"
    assert shell.ok("cluster", "health", "--http", http).startswith(b"healthy: 1 broker, ")
    found = as_json(shell, "cluster", "health")
    assert (found["healthy"], found["problems"]) == (True, [])


def test_an_endpoint_that_is_not_a_brokers(shell: Shell) -> None:
    done = shell("cluster", "health", "--http", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert b"unhealthy: http://127.0.0.1:1/readyz does not answer" in done.stdout
    assert b"(check the address and BUCKETLOG_HTTP_PORT)" in done.stdout


def test_a_broker_that_hangs_is_named() -> None:
    with running_cluster(2, settings=LONG) as cluster:
        shell = OwnShell(cluster.brokers[0].bootstrap)
        assert len(as_json(shell, "broker", "list")) == 2
        cluster.brokers[1].stop_in_its_tracks()
        done = shell("cluster", "health", "-o", "json")
        cluster.brokers[1].go_on()
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["healthy"], found["brokers"]) == (False, 2)
    assert found["problems"][0]["what"].startswith("broker 1 at ")
    assert "start it" in found["problems"][0]["remedy"]


def test_the_lag_of_a_group_in_time(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name, "-p", "2", "-c", "retention.ms=-1")
    old = b'{"value": "old", "timestamp": 1000}\n'
    shell.ok("produce", name, "--jsonl", "--partition", "0", stdin=old)
    shell.ok("produce", name, "--partition", "1", stdin=b"new\n")
    reset = ("group", "reset", name, "--topic", name, "-y")
    shell.ok(*reset, "--to", "start")
    found = as_json(shell, "group", "describe", name)
    first, second = (row["lag_ms"] for row in found["partitions"])
    assert first > 50 * 365 * 86_400_000 > second >= 0
    assert found["lag_ms"] == first
    shell.ok(*reset, "--to", "end")
    found = as_json(shell, "group", "describe", name)
    assert [row["lag_ms"] for row in found["partitions"]] == [0, 0]


def test_a_watched_group_and_its_client(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"a\n")
    with shell.start("consume", name, "--group", name, "--from", "start") as member:
        assert member.stdout is not None
        assert member.stdout.readline() == b"a\n"
        eventually(lambda: any(row["group"] == name for row in as_json(shell, "client", "list")))
        (row,) = (row for row in as_json(shell, "client", "list") if row["group"] == name)
        assert (row["client"], row["topics"], row["partitions"]) == ("bucketlog", 1, 1)
        watch = ("group", "describe", name, "--watch", "--interval-s", "0.1", "-o", "json")
        with shell.start(*watch) as process:
            assert process.stdout is not None
            looks = [json.loads(process.stdout.readline()) for _ in range(2)]
            process.send_signal(signal.SIGINT)
            assert process.wait() == 130
    assert [look["group"] for look in looks] == [name] * 2


def test_segments_of_a_topic(shell: Shell, broker: EmbeddedCluster, name: str) -> None:
    for topic in (name, f"{name}-other"):
        shell.ok("topic", "create", topic)
        shell.ok("produce", topic, stdin=b"a\nb\n")
    listed = as_json(shell, "segment", "ls", broker.bucket_url, "--topic", name)
    assert sum(row["records"] for row in listed) == 2
    key = listed[0]["key"]
    shown = json.loads(shell.ok("segment", "inspect", broker.bucket_url, key, "-o", "json"))
    assert name in [row["topic"] for row in shown["rows"]]
    assert name in shell.ok("segment", "inspect", broker.bucket_url, key).decode()
