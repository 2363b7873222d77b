"""Topics on the command line, against a real broker: describe, alter, add-partitions, trim."""

import json
from itertools import count
from typing import Any

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.own_shell import OwnShell
from tests.rigs.shell import Shell

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"cli-topic-{next(_numbers)}"


@pytest.fixture
def shell(broker: EmbeddedCluster) -> Shell:
    return OwnShell(broker.bootstrap)


def described(shell: Shell, name: str) -> dict[str, Any]:
    every_group = ("--groups-max", "100000")  # the broker is shared with other tests
    shown = shell.ok("topic", "describe", name, *every_group, "-o", "json")
    found: dict[str, Any] = json.loads(shown)
    return found


def test_describe_has_bytes_rates_retention_and_groups(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name, "-p", "2", "-c", "retention.ms=86400000")
    shell.ok("produce", name, "--partition", "1", stdin=b"a\n" * 60)
    shell.ok("group", "reset", f"{name}-slow", "--topic", name, "--to", "10", "-y")
    shell.ok("group", "reset", f"{name}-fast", "--topic", name, "--to", "50", "-y")
    found = described(shell, name)
    empty, full = found["partitions"]
    assert (empty["records"], empty["records/s"], empty["bytes"]) == (0, 0.0, 0)
    assert (full["records"], full["records/s"]) == (60, 1.0)
    assert found["bytes"] == full["bytes"] > 60
    assert 0 < found["retention_left_ms"] <= 86_400_000
    assert found["overrides"] == ["retention.ms"]
    assert found["groups"] == [
        {"group": f"{name}-slow", "lag": 50, "worst_partition": 1, "its_lag": 50},
        {"group": f"{name}-fast", "lag": 10, "worst_partition": 1, "its_lag": 10},
    ]
    table = shell.ok("topic", "describe", name).decode()
    assert "1.0 records/s in the last minute" in table
    assert "(retention.ms)" in table
    assert "segment.bytes" not in table
    assert "segment.bytes" in shell.ok("topic", "describe", name, "--all-configs").decode()


def test_records_of_long_ago_have_no_rate(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name, "-c", "retention.ms=-1")
    shell.ok("produce", name, "--jsonl", stdin=b'{"value": "old", "timestamp": 1000}\n')
    found = described(shell, name)
    assert (found["oldest_ms"], found["retention_left_ms"]) == (1000, None)
    assert found["partitions"][0]["records/s"] == 0.0


def test_groups_past_the_bound_are_reported(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    shell.ok("group", "reset", f"{name}-readers", "--topic", name, "--to", "start", "-y")
    done = shell("topic", "describe", name, "--groups-max", "0", "-o", "json")
    assert json.loads(done.stdout)["groups"] == []
    assert b"not looked at: raise --groups-max" in done.stderr


def test_alter_sets_and_unsets(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    alter = ("topic", "alter", name)
    rows = json.loads(shell.ok(*alter, "--retention", "1d", "-c", "segment.ms=7", "-o", "json"))
    assert rows == [
        {"config": "retention.ms", "before": "604800000", "after": "86400000"},
        {"config": "segment.ms", "before": "604800000", "after": "7"},
    ]
    dry = json.loads(shell.ok(*alter, "--unset", "segment.ms", "--dry-run", "-o", "json"))
    assert dry == [{"config": "segment.ms", "before": "7", "after": "(default)"}]
    assert described(shell, name)["overrides"] == ["retention.ms", "segment.ms"]
    shell.ok(*alter, "--unset", "segment.ms", "--unset", "retention.ms")
    assert described(shell, name)["overrides"] == []


def test_alter_refuses_what_it_cannot_do(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    alter = ("topic", "alter", name)
    assert "did you mean 'retention.ms'?" in shell.failing(1, *alter, "-c", "retention.msx=1")
    assert "give --config" in shell.failing(2, *alter)
    both = (*alter, "-c", "segment.ms=7", "--unset", "segment.ms")
    assert "leave one of them out" in shell.failing(2, *both)
    assert described(shell, name)["overrides"] == []


def test_partitions_are_added(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name, "-p", "2")
    add = ("topic", "add-partitions", name)
    shell.ok(*add, "4", "--dry-run")
    assert shell(*add, "4", stdin=b"n\n").returncode == 130
    assert len(described(shell, name)["partitions"]) == 2
    shell.ok(*add, "4", "-y")
    assert len(described(shell, name)["partitions"]) == 4
    assert "give a total above 4" in shell.failing(2, *add, "4", "-y")
    assert "1 to 100000 partitions" in shell.failing(2, *add, "100001", "-y")


def test_trim_deletes_the_records_before_an_offset_or_a_time(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    lines = b"".join(b'{"value": "%d", "timestamp": %d}\n' % (at, at * 1000) for at in range(1, 10))
    shell.ok("produce", name, "--jsonl", stdin=lines)
    trim = ("topic", "trim", name)
    plan = json.loads(shell.ok(*trim, "--before", "2", "--dry-run", "-o", "json"))
    assert plan == [{"partition": 0, "earliest": 0, "after": 2, "records": 2}]
    read = ("consume", name, "--from", "start", "--until-end")
    assert len(shell.ok(*read).split()) == 9
    assert shell(*trim, "--before", "2", stdin=b"n\n").returncode == 130
    shell.ok(*trim, "--before", "2", "-y")
    assert shell.ok(*read).split()[0] == b"3"
    shell.ok(*trim, "--before", "1970-01-01T00:00:05+00:00", "-y")
    assert shell.ok(*read).split()[0] == b"5"
    assert "it has partitions 0 to 0" in shell.failing(2, *trim, "--before", "end", "-p", "9", "-y")
    shell.ok(*trim, "--before", "end", "-y")
    assert shell.ok(*read) == b""


def test_a_watched_topic_is_described_again_and_again(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    watch = ("topic", "describe", name, "--watch", "--interval-s", "0.1", "-o", "json")
    with shell.start(*watch) as process:
        assert process.stdout is not None
        looks = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(2)
        assert process.wait() == 130
    assert [look["topic"] for look in looks] == [name] * 3
