"""kaf, a command-line client for Kafka.

The tests in its repository start a broker in a container. The tests here cover the same commands,
and the commands for groups.
"""

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.compat.go_tools.conftest import Program

Kaf = Callable[..., str]


@pytest.fixture
def kaf(program: "Program") -> Kaf:
    def run(*arguments: str, stdin: str = "") -> str:
        return program("--brokers", os.environ["GIVEN_BROKER"], *arguments, stdin=stdin)

    return run


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_topics_are_created_and_deleted(kaf: Kaf, name: str) -> None:
    assert "Created topic!" in kaf("topic", "create", name, "--partitions", "3")
    assert [name, "3", "1"] in table(kaf("topics"))
    assert f"Deleted topic {name}!" in kaf("topic", "delete", name)
    assert name not in kaf("topics")


def test_a_topic_is_described(kaf: Kaf, topic: str) -> None:
    rows = table(kaf("topic", "describe", topic))
    assert ["0", "5", "1", "[1]", "[1]"] in rows
    assert ["Summed", "HighWatermark:", "5"] in rows


def test_a_config_is_added_and_removed(kaf: Kaf, topic: str) -> None:
    kaf("topic", "add-config", topic, "retention.ms", "123456789")
    assert ["retention.ms", "123456789", "false", "false"] in table(kaf("topic", "describe", topic))
    kaf("topic", "rm-config", topic, "retention.ms")
    assert "123456789" not in kaf("topic", "describe", topic)


def test_a_record_is_produced_and_consumed(kaf: Kaf, topic: str) -> None:
    arguments = ("--key", "a", "--header", "h:v", "--partition", "1")
    assert "partition 1 at offset 0" in kaf("produce", topic, *arguments, stdin='{"data":1}\n')
    lines = kaf("consume", topic, "--output", "json-each-row", "--partitions", "1").splitlines()
    record = json.loads(lines[0])
    assert (record["partition"], record["offset"], record["key"]) == (1, 0, "a")
    assert json.loads(record["payload"]) == {"data": 1}
    assert record["headers"] == [{"key": "h", "value": "v"}]


def test_records_are_found_by_their_header(kaf: Kaf, topic: str) -> None:
    arguments = ("--output", "json-each-row", "--header", "number:3")
    lines = kaf("consume", topic, *arguments).splitlines()
    assert [json.loads(line)["payload"] for line in lines] == ["value-3"]


def test_a_group_is_described(kaf: Kaf, group: str) -> None:
    assert [group, "Empty", "0"] in table(kaf("groups"))
    assert ["0", "2", "5", "3"] in [row[:4] for row in table(kaf("group", "describe", group))]


def test_a_group_is_reset(kaf: Kaf, topic: str, group: str) -> None:
    reset = ("-t", topic, "--offset", "oldest", "--all-partitions", "--noconfirm")
    kaf("group", "commit", group, *reset)
    assert ["0", "0", "5", "5"] in [row[:4] for row in table(kaf("group", "describe", group))]


def test_a_group_with_a_member_is_not_deleted(kaf: Kaf, group: str, member: str) -> None:
    kaf("group", "delete", group)
    assert group not in kaf("groups").split()
    with pytest.raises(AssertionError, match="not empty"):
        kaf("group", "delete", member)
    assert [member, "Stable", "1"] in table(kaf("groups"))


def test_brokers(kaf: Kaf) -> None:
    assert ["1", os.environ["GIVEN_BROKER"], "true"] in table(kaf("nodes"))
