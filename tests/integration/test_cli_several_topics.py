"""`consume` of several topics and of patterns."""

import json
from itertools import count

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.own_shell import OwnShell
from tests.rigs.shell import Shell

_numbers = count()
ALL = ("--from", "start", "--until-end")


@pytest.fixture
def shell(broker: EmbeddedCluster) -> Shell:
    return OwnShell(broker.bootstrap)


@pytest.fixture
def name() -> str:
    return f"cli-several-{next(_numbers)}"


def test_topics_and_patterns(shell: Shell, name: str) -> None:
    for topic in ("a", "b", "other"):
        shell.ok("topic", "create", f"{name}-{topic}")
        shell.ok("produce", f"{name}-{topic}", stdin=topic.encode())
    both = shell.ok("consume", f"{name}-a", f"{name}-b", *ALL, "--format", "%t=%v")
    assert sorted(both.split()) == [f"{name}-{topic}={topic}".encode() for topic in ("a", "b")]
    rows = shell.ok("consume", f"^{name}-[ab]", *ALL, "-o", "json").splitlines()
    assert sorted(json.loads(row)["value"] for row in rows) == ["a", "b"]
    group = ("--group", name, *ALL)
    assert sorted(shell.ok("consume", f"{name}-a", f"^{name}-o.*", *group).split()) == [
        b"a",
        b"other",
    ]


def test_what_does_not_go_with_several_topics(shell: Shell) -> None:
    refused = shell.failing(2, "consume", "a", "b", "-p", "0", *ALL)
    assert "name one topic" in refused
    assert "regular expression" in shell.failing(2, "consume", "^(", *ALL)
