"""kcl, a command-line client for Kafka with all administrative requests.

The tests in its repository use an imitation of a broker, or none at all.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.compat.go_tools.conftest import Program

Kcl = Callable[..., str]
Answer = Callable[..., Any]


@pytest.fixture
def kcl(program: "Program") -> Kcl:
    silent = replace(program, variables={"KCL_NO_CONFIG_FILE": "1"})

    def run(*arguments: str, stdin: str = "") -> str:
        return silent("-B", os.environ["GIVEN_BROKER"], *arguments, stdin=stdin)

    return run


@pytest.fixture
def answer(kcl: Kcl) -> Answer:
    """Run kcl, and return the list of results from its JSON output."""

    def run(*arguments: str) -> Any:
        found = json.loads(kcl(*arguments, "--format", "json"))
        (results,) = (value for key, value in found.items() if not key.startswith("_"))
        return results

    return run


def test_topics_are_created_and_deleted(answer: Answer, name: str) -> None:
    created = answer("topic", "create", name, "-p", "3", "-k", "cleanup.policy=compact")
    assert [row["message"] for row in created] == ["OK"]
    (row,) = answer("topic", "list", "--regex", name)
    assert (row["name"], row["partitions"], row["replicas"]) == (name, 3, 1)
    assert [row["message"] for row in answer("topic", "delete", name)] == ["OK"]
    assert answer("topic", "list", "--regex", name) == []


def test_partitions_are_added(answer: Answer, topic: str) -> None:
    assert [row["status"] for row in answer("topic", "add-partitions", "-t", topic, "1")] == ["OK"]
    (row,) = answer("topic", "describe", topic)
    assert row["partition_count"] == 3


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_are_produced_and_consumed(kcl: Kcl, name: str, codec: str) -> None:
    kcl("topic", "create", name)
    written = ("-f", "%k:%v\n", "-o", "%p %o\n", "-z", codec, "-H", "h=1")
    assert kcl("produce", name, *written, stdin="a:1\nb:2\n") == "0 0\n0 1\n"
    read = kcl("consume", name, "-n", "2", "-f", "%o %k %v %{%h{%k=%v}}\n")
    assert read == "0 a 1 {h=1}\n1 b 2 {h=1}\n"


def test_records_from_an_offset(kcl: Kcl, topic: str) -> None:
    read = kcl("consume", topic, "-p", "0", "-o", "3:5", "-n", "2", "-f", "%v\n")
    assert read == "value-3\nvalue-4\n"


def test_a_group_continues_at_its_offset(kcl: Kcl, topic: str, group: str) -> None:
    read = kcl("consume", topic, "-g", group, "-n", "1", "-f", "%v\n", "--balancer", "range")
    assert read == "value-2\n"


def test_a_group_is_described_and_reset(answer: Answer, kcl: Kcl, topic: str, group: str) -> None:
    (row,) = answer("group", "describe", group)
    assert [(lag["topic"], lag["partition"], lag["lag"]) for lag in row["lag"]] == [(topic, 0, 3)]
    kcl("group", "seek", group, "--to", "start", "-y")
    (row,) = answer("group", "describe", group)
    assert [lag["lag"] for lag in row["lag"] if lag["partition"] == 0] == [5]
    answer("group", "delete", group)
    assert group not in [row["group_id"] for row in answer("group", "list")]


def test_a_share_group(kcl: Kcl, answer: Answer, topic: str) -> None:
    share = f"share-{topic}"
    arguments = ("-t", "g", "-s", "share.auto.offset.reset=earliest", "-y")
    answer("config", "alter", share, *arguments)
    read = kcl("consume", topic, "--share-group", share, "-n", "5", "-f", "%v\n")
    assert sorted(read.split()) == [f"value-{number}" for number in range(5)]
    (row,) = answer("share-group", "describe", share)
    assert (row["group_id"], row["assignor"]) == (share, "simple")


def test_records_are_deleted(answer: Answer, kcl: Kcl, topic: str) -> None:
    kcl("topic", "trim-prefix", topic, "--offset", "2", "--partitions", "0", "-y")
    rows = {row["partition"]: row for row in answer("misc", "list-offsets", topic)}
    assert (rows[0]["start"], rows[0]["end"]) == ("2", "5")


def test_configs(answer: Answer, kcl: Kcl, topic: str) -> None:
    answer("config", "alter", topic, "-s", "retention.ms=86400000", "-y")
    lines = [line.split() for line in kcl("config", "describe", topic).splitlines()]
    assert ["retention.ms", "86400000", "DYNAMIC_TOPIC_CONFIG"] in lines
    lines = [line.split() for line in kcl("config", "describe", "1", "-t", "broker").splitlines()]
    assert "auto.create.topics.enable*" in [line[0] for line in lines if line]


def test_acls(answer: Answer, name: str) -> None:
    create = ("--allow-principal", "User:a", "--operation", "read", "-t", name)
    assert [row["error"] for row in answer("acl", "create", *create)] == ["OK"]
    wanted = [row for row in answer("acl", "list", "--type", "any") if row["name"] == name]
    found = {key: wanted[0][key] for key in ("principal", "operation", "permission", "pattern")}
    assert found == {
        "principal": "User:a",
        "operation": "READ",
        "permission": "ALLOW",
        "pattern": "LITERAL",
    }
    delete = ("-t", name, "--pattern", "literal", "--op", "any", "--perm", "any", "-y")
    assert [row["error"] for row in answer("acl", "delete", *delete)] == ["OK"]
    assert name not in [row["name"] for row in answer("acl", "list", "--type", "any")]


def test_quotas(answer: Answer, name: str) -> None:
    entity = ("--name", f"user={name}")
    answer("quota", "alter", *entity, "--add", "producer_byte_rate=1000")
    (row,) = answer("quota", "describe", *entity)
    assert (row["key"], row["value"]) == ("producer_byte_rate", 1000)
    answer("quota", "alter", *entity, "--delete", "producer_byte_rate")
    assert answer("quota", "describe", *entity) == []


def test_users(answer: Answer, name: str) -> None:
    answer("user", "alter", "--set", f"user={name},mechanism=scram-sha-256,password=secret")
    assert name in json.dumps(answer("user", "list"))
    answer("user", "alter", "--del", f"user={name},mechanism=scram-sha-256")
    assert name not in json.dumps(answer("user", "list"))


def test_subscriptions_to_metrics_of_clients(answer: Answer, name: str) -> None:
    answer("client-metrics", "alter", name, "--set", "interval.ms=30000")
    assert name in json.dumps(answer("client-metrics", "list"))
    answer("client-metrics", "delete", name)
    assert name not in json.dumps(answer("client-metrics", "list"))


def test_the_cluster(answer: Answer, kcl: Kcl) -> None:
    host, port = os.environ["GIVEN_BROKER"].split(":")
    (broker,) = json.loads(kcl("cluster", "metadata", "--format", "json"))["brokers"]
    assert (broker["id"], broker["host"], broker["port"]) == (1, host, int(port))
    features = {row["name"] for row in answer("cluster", "features", "describe")}
    assert {"group.version", "share.version"} <= features
    assert answer("reassign", "list") == []


def test_bytes_in_the_log_directory(answer: Answer, topic: str) -> None:
    assert topic in json.dumps(answer("logdirs", "describe"))
