"""`bucketlog apply` against a real broker of its own, for --prune deletes what it does not know."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.shell import Shell

pytestmark = pytest.mark.long

FILE = """\
topics:
  - name: orders
    partitions: 3
    retention: 7d
  - name: users
    configs:
      cleanup.policy: compact
"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with EmbeddedCluster(tmp_path / "data") as cluster:
        yield Shell(cluster.bootstrap)


def topic(shell: Shell, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.ok("topic", "describe", name, "-o", "json"))
    return found


def test_a_file_becomes_topics(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(FILE)
    path = str(file)
    planned = shell("apply", path, "--dry-run")
    assert planned.returncode == 3
    assert planned.stdout.decode().splitlines() == [
        "+ orders  partitions 3, retention.ms 604800000 (7d)",
        "+ users   cleanup.policy compact",
    ]
    assert planned.stderr.decode() == "2 to create\n"
    assert shell.ok("topic", "list", "-o", "jsonl") == b"", "a dry run"

    declined = shell("apply", path, stdin=b"n\n")
    assert declined.returncode == 130
    assert b"Do this to 2 topics" in declined.stderr
    assert shell("apply", path).returncode == 2, "nobody answers"
    assert shell.ok("topic", "list", "-o", "jsonl") == b""

    shell.ok("apply", path, stdin=b"y\n")
    assert len(topic(shell, "orders")["partitions"]) == 3
    assert topic(shell, "orders")["configs"]["retention.ms"] == "604800000"
    assert topic(shell, "users")["configs"]["cleanup.policy"] == "compact"

    again = shell("apply", path, "--dry-run")
    assert again.returncode == 0, again.stderr
    assert again.stdout == b"= orders\n= users\n"

    file.write_text(FILE.replace("7d", "1d").replace("partitions: 3", "partitions: 5"))
    shell.ok("topic", "create", "other")
    rows = [json.loads(line) for line in shell.ok("apply", path, "-y", "-o", "jsonl").splitlines()]
    assert [(row["action"], row["topic"]) for row in rows] == [
        ("change", "orders"),
        ("same", "users"),
    ]
    assert rows[0]["changes"][0] == {"what": "partitions", "before": "3", "after": "5"}
    assert len(topic(shell, "orders")["partitions"]) == 5
    assert topic(shell, "orders")["configs"]["retention.ms"] == "86400000"
    assert topic(shell, "other")["partitions"], "not named, and left"

    pruned = shell("apply", path, "--prune", "--dry-run")
    assert pruned.returncode == 3
    assert b"- other   with all its records" in pruned.stdout
    shell.ok("apply", "-", "--prune", "--yes", stdin=file.read_bytes())
    names = [row["topic"] for row in json.loads(shell.ok("topic", "list", "-o", "json"))]
    assert names == ["orders", "users"]


def test_nothing_is_done_where_one_is_impossible(shell: Shell) -> None:
    shell.ok("topic", "create", "narrow", "-p", "4")
    text = b"""\
topics:
  - {name: fresh}
  - {name: narrow, partitions: 2}
  - {name: wrong, configs: {cleanup.policy: keep}}
  - {name: "no name"}
"""
    for flag in ("--yes", "--dry-run"):
        done = shell("apply", "-", flag, stdin=text)
        assert done.returncode == 1
        lines = done.stdout.decode().splitlines()
        assert [line[0] for line in lines] == list("+!!!")
        assert "partitions 4 → 2 (partitions cannot become fewer" in lines[1]
        assert "cleanup.policy" in lines[2]
        assert done.stderr.endswith(b"what is marked ! must be corrected first\n")
    names = [row["topic"] for row in json.loads(shell.ok("topic", "list", "-o", "json"))]
    assert names == ["narrow"]


def test_a_bad_file_is_one_line(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("topics:\n  - name: a\n    retain: 7d\n")
    complaint = shell.failing(2, "apply", str(file))
    assert f"{file}, line 3: unknown key 'retain'" in complaint
    assert "nobody can answer" in shell.failing(2, "apply", "-", stdin=b"topics: []")
    assert "missing.yaml: No such file" in shell.failing(1, "apply", "missing.yaml")
