"""Consumer groups on the command line, against a real broker."""

import json
import re
import signal
from itertools import count

import pytest

from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import Shell

pytestmark = pytest.mark.long

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"cli-group-{next(_numbers)}"


def test_groups(shell: Shell, name: str) -> None:
    group = f"{name}-readers"
    shell.ok("topic", "create", name, "-p", "2")
    shell.ok("produce", name, stdin=b"".join(b"%d\n" % at for at in range(10)))
    arguments = ("consume", name, "--group", group, "--from", "start")
    first = shell.ok(*arguments, "-n", "4").split()
    rest = shell.ok(*arguments, "--until-end").split()
    assert len(first) == 4
    assert sorted(map(int, first + rest)) == list(range(10))
    assert shell.ok(*arguments, "--until-end") == b""
    assert {"group": group, "state": "Empty"} in json.loads(shell.ok("group", "list", "-o", "json"))
    described = json.loads(shell.ok("group", "describe", group, "-o", "jsonl"))
    assert (described["lag"], described["members"]) == (0, [])
    assert sum(row["committed"] or 0 for row in described["partitions"]) == 10
    shell.ok("group", "delete", group, "--yes")
    assert "bucketlog group list" in shell.failing(1, "group", "describe", group)
    assert "GROUP_ID_NOT_FOUND" in shell.failing(1, "group", "delete", group, "-y")


def test_resetting_a_group(shell: Shell, name: str) -> None:
    group = f"{name}-readers"
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"a\nb\nc\n")
    reset = ("group", "reset", group, "--topic", name)
    plan = json.loads(shell.ok(*reset, "--to", "1", "--dry-run", "-o", "jsonl"))
    assert plan == {"topic": name, "partition": 0, "before": None, "after": 1}
    assert b"would be created, there was none" in shell(*reset, "--to", "1", "--dry-run").stderr
    assert "GROUP_ID_NOT_FOUND" in shell.failing(1, "group", "reset", group, "--to", "1")
    assert shell(*reset, "--to", "1", stdin=b"n\n").returncode == 130
    assert "nobody answered (add --yes)" in shell.failing(2, *reset, "--to", "1")
    assert "bucketlog group list" in shell.failing(1, "group", "describe", group)
    made = shell(*reset, "--to", "1", stdin=b"y\n").stderr
    assert b"which does not exist yet? [y/N]" in made
    assert b"is created, there was none" in made
    assert shell.ok("consume", name, "-g", group, "--until-end") == b"b\nc\n"
    shell.ok("group", "reset", group, "--shift", "-1", "-y")
    assert shell.ok("consume", name, "-g", group, "--until-end") == b"c\n"
    shell.ok(*reset, "--to", "2000-01-01", "-y")
    assert shell.ok("consume", name, "-g", group, "-n", "1") == b"a\n"


def test_a_topic_that_is_misspelt(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", f"{name}-orders")
    complaint = shell.failing(1, "group", "reset", "g", "-t", f"{name}-odrers", "--to", "end", "-y")
    assert f"did you mean '{name}-orders'? `bucketlog topic list` shows" in complaint


def test_a_lag_that_is_not_known(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name, "-p", "2")
    shell.ok("produce", name, "--partition", "0", stdin=b"one\n")
    shell.ok("produce", name, "--partition", "1", stdin=b"two\n")
    with shell.start("consume", name, "-g", name, "--from", "start") as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGSTOP)  # before it commits
        described = shell("group", "describe", name)
        process.kill()
    assert b", lag -, " in described.stdout
    assert b"nothing is committed yet: the lag is not known" in described.stderr
    other = f"{name}-other"
    shell.ok("group", "reset", other, "-t", name, "-p", "0", "--to", "start", "-y")
    described = shell("group", "describe", other)
    assert re.search(rb", lag 1 \(\d+ m?s\), ", described.stdout)
    assert b"yet in 1 partition: their lag" in described.stderr


def test_a_group_with_members(shell: Shell, name: str) -> None:
    group = f"{name}-readers"
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"one\n")
    with shell.start("consume", name, "-g", group, "--from", "start") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        table = shell.ok("group", "describe", group).decode()
        assert "Stable, cooperative-sticky, 1 member" in table
        assert f"{name}[0]" in table
        (member,) = json.loads(shell.ok("group", "describe", group, "-o", "json"))["members"]
        short = member["member"].removeprefix("bucketlog-")[:8]
        assert table.count(short) == 2, "of the partition and of the member"
        assert (member["host"], "/" in table) == ("127.0.0.1", False)
        planned = shell("group", "reset", group, "--to", "start", "--dry-run", "-t", name)
        assert planned.returncode == 0
        assert b"would be reset, when its 1 member stopped" in planned.stderr
        for verb in (("reset", group, "--to", "end", "-y"), ("delete", group, "-y")):
            complaint = shell.failing(1, "group", *verb, *(("-t", name) if "reset" in verb else ()))
            assert "NON_EMPTY_GROUP" in complaint
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    assert json.loads(shell.ok("group", "describe", group, "-o", "json"))["lag"] == 0


def test_sigterm_commits_and_leaves_the_group(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"one\n")
    with shell.start("consume", name, "-g", name, "--from", "start") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 143
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    details = json.loads(shell.ok("group", "describe", name, "-o", "json"))
    assert (details["state"], details["members"], details["lag"]) == ("Empty", [], 0)
