"""Plans of `topic trim` and `group reset`: positions are looked up once, and applied as shown."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

import pytest

from bucketlog.client.admin import Admin
from bucketlog.client.topics import Topics
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.own_shell import OwnShell
from tests.rigs.shell import Shell

pytestmark = pytest.mark.long

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"cli-plan-{next(_numbers)}"


@pytest.fixture
def own(broker: EmbeddedCluster) -> Shell:
    return OwnShell(broker.bootstrap)


@contextmanager
def lookups() -> Iterator[list[str]]:
    """Yield the topics whose offsets are looked up."""
    asked: list[str] = []
    look_up = Admin.offsets_and_times

    def counted(self: Admin, topic: str, *arguments: Any) -> Any:
        asked.append(topic)
        return look_up(self, topic, *arguments)

    with patch.object(Admin, "offsets_and_times", counted):
        yield asked


@contextmanager
def meanwhile(module: str, act: Callable[[], object]) -> Iterator[None]:
    """Call `act` while the command waits for the answer, which is yes."""
    with patch(f"{module}.confirm", lambda question: act()):
        yield


def filled(own: Shell, name: str) -> None:
    own.ok("topic", "create", name)
    own.ok("produce", name, stdin=b"one\ntwo\n")


@pytest.mark.parametrize(("before", "times"), [("1", 2), ("end", 2), ("2000-01-01", 3)])
def test_trim_looks_up_positions_once(own: Shell, name: str, before: str, times: int) -> None:
    filled(own, name)
    configs = patch.object(Topics, "_configs", side_effect=AssertionError("configs are not needed"))
    with lookups() as asked, configs:
        own.ok("topic", "trim", name, "--before", before, "--yes")
    assert asked == [name] * times


@pytest.mark.parametrize(("to", "times"), [("1", 2), ("end", 2), ("2000-01-01", 3)])
def test_reset_looks_up_positions_once(own: Shell, name: str, to: str, times: int) -> None:
    filled(own, name)
    with lookups() as asked:
        own.ok("group", "reset", name, "--topic", name, "--to", to, "--yes")
    assert asked == [name] * times


def test_a_plan_is_applied_as_shown(own: Shell, name: str) -> None:
    """Records that arrive between the plan and the answer do not change it."""
    filled(own, name)

    def more() -> None:
        own.ok("produce", name, stdin=b"three\n")

    with meanwhile("bucketlog.cli.group", more):
        own.ok("group", "reset", name, "--topic", name, "--to", "end")
    described = json.loads(own.ok("group", "describe", name, "-o", "jsonl"))
    assert [row["committed"] for row in described["partitions"]] == [2]
    with meanwhile("bucketlog.cli.topic", more):
        own.ok("topic", "trim", name, "--before", "end")
    assert own.ok("consume", name, "--from", "start", "--until-end") == b"three\n"


def test_a_member_that_joins_meanwhile_keeps_the_offsets(
    own: Shell, shell: Shell, name: str
) -> None:
    filled(own, name)
    with shell.start("consume", name, "-g", name, "--from", "start") as process:

        def join() -> None:
            assert process.stdout is not None
            assert process.stdout.readline() == b"one\n"

        with (
            patch("bucketlog.client.groups.Groups.members", lambda self, group: ()),
            meanwhile("bucketlog.cli.group", join),
        ):
            refused = own("group", "reset", name, "--topic", name, "--to", "0")
    assert refused.returncode == 1
    assert b"NON_EMPTY_GROUP" in refused.stderr


def test_a_group_with_offsets_of_another_topic_exists(own: Shell, name: str) -> None:
    for topic in (name, f"{name}-other"):
        filled(own, topic)
    own.ok("group", "reset", name, "--topic", name, "--to", "start", "--yes")
    planned = own("group", "reset", name, "-t", f"{name}-other", "--to", "start", "--dry-run")
    assert b"would be reset" in planned.stderr
    own.ok("group", "reset", name, "-t", f"{name}-other", "--to", "start", "--yes")
    with lookups() as asked:
        own.ok("group", "reset", name, "--to", "end", "--yes")
    assert sorted(asked) == sorted([name, f"{name}-other"] * 2)
