"""Dead letters on the command line: listed, shown and replayed, against a real broker."""

import json
import signal
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import bucketlog
from bucketlog import Acl, DeadLetter, Log, Topic
from bucketlog.cli.main import main
from bucketlog.client import dead_letter_replay
from bucketlog.client.dead_letter_replay import DeadLetterReplay
from bucketlog.client.dead_letters import DeadLetterFilter
from bucketlog.log_format.errors import BucketlogError
from tests.rigs.shell import Shell
from tests.rigs.users import PASSWORD, add_user, write_key_file
from tests.servers.broker_process import Start

pytestmark = pytest.mark.long

_numbers = count()
HEADERS: Sequence[tuple[str, str | bytes | None]] = (("h", b"\x00\xfe"), ("h", None), ("t", "x"))
FAILING = {1: ValueError("out of stock"), 2: KeyError("price"), 4: ValueError("\x1b]0;owned\x07")}


@pytest.fixture
def name() -> str:
    return f"dlq-{next(_numbers)}"


def read(log: Log, topic: str) -> list[tuple[Any, ...]]:
    with log.consumer(Topic(topic), start="earliest", until="end") as consumer:
        rows = [(r.partition, r.raw_key, r.raw_value, r.headers, r.timestamp_ms) for r in consumer]
    return sorted(rows, key=repr)


@pytest.fixture
def dead(log: Log, name: str) -> str:
    """Records 0 to 5 of two partitions, of which a handler set aside those of FAILING."""
    orders = Topic(name)
    log.topics.create(orders, partitions=2)
    log.topics.create(f"{name}-dead", partitions=1)
    with log.producer() as producer:
        for at in range(6):
            producer.send(
                orders,
                None if at == 2 else b"%d \xff" % at,
                key=b"k%d" % at,
                headers=HEADERS,
                partition=at % 2,
                timestamp_ms=1_700_000_000_000 + at,
            )

    def handle(record: bucketlog.Record[bytes, bytes]) -> None:
        if error := FAILING.get(int((record.key or b"")[1:])):
            raise error

    with log.consumer(
        orders, group=name, start="earliest", until="end", auto_commit="ack"
    ) as consumer:
        consumer.process(handle, ordered_by=None, on_failure=DeadLetter(f"{name}-dead"))
    return f"{name}-dead"


def test_listed_by_origin_and_reason(shell: Shell, name: str, dead: str) -> None:
    rows = json.loads(shell.ok("deadletter", "list", dead, "-o", "json"))
    assert rows == [
        {
            "topic": dead,
            "origin": name,
            "reason": "builtins.ValueError",
            "records": 2,
            "pending": 2,
            "oldest_ms": 1_700_000_000_001,
            "newest_ms": 1_700_000_000_004,
            "due_ms": None,
        },
        {
            "topic": dead,
            "origin": name,
            "reason": "builtins.KeyError",
            "records": 1,
            "pending": 1,
            "oldest_ms": 1_700_000_000_002,
            "newest_ms": 1_700_000_000_002,
            "due_ms": None,
        },
    ]
    assert b"2023-11-14T22:13:20.001+00:00" in shell.ok("deadletter", "list", dead)
    shell.ok("deadletter", "replay", dead, "--reason", "keyerror", "-y")
    rows = json.loads(shell.ok("deadletter", "list", dead, "-o", "json"))
    assert {row["reason"]: row["pending"] for row in rows} == {
        "builtins.ValueError": 2,
        "builtins.KeyError": 0,
    }


def test_listed_with_the_rights_to_read_alone(start: Start, tmp_path: Path) -> None:
    broker = start(
        listeners="IN:SASL_PLAINTEXT://127.0.0.1:0,ADMIN:PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(write_key_file(tmp_path / "keys")),
        authorization="true",
        super_users="User:ANONYMOUS",
    ).wait_until_ready()
    admin = str(broker.ready["listeners"]["ADMIN"])
    add_user(admin, "bob", "SCRAM-SHA-512")
    shell = Shell(str(broker.ready["listeners"]["IN"]))
    shell.environment |= {"BUCKETLOG_USERNAME": "bob", "BUCKETLOG_PASSWORD": PASSWORD}
    shell.environment |= {"BUCKETLOG_MECHANISM": "SCRAM-SHA-512", "BUCKETLOG_TLS": "false"}
    with bucketlog.connect(admin) as log:
        log.topics.create("dead", partitions=1)
        with log.producer() as producer:
            producer.send(Topic("dead"), b"set aside")
        wanted = [
            Acl(principal="User:bob", operation="READ", resource="TOPIC", name="dead"),
            Acl(principal="User:bob", operation="DESCRIBE", resource="TOPIC", name="dead"),
            Acl(
                principal="User:bob",
                operation="DESCRIBE",
                resource="GROUP",
                name="bucketlog-deadletter-dead",
            ),
        ]
        log.acls.create(wanted)
        log.acls.wait(created=wanted)
    rows = json.loads(shell.ok("deadletter", "list", "dead", "-o", "json"))
    assert [(row["records"], row["pending"]) for row in rows] == [(1, 1)]
    assert b"set aside" in shell.ok("deadletter", "show", "dead")
    assert "TOPIC_AUTHORIZATION_FAILED" in shell.failing(1, "topic", "describe", "dead")


def test_shown_with_escapes(shell: Shell, name: str, dead: str) -> None:
    shown = shell.ok("deadletter", "show", dead).decode()
    assert "\x1b" not in shown
    assert "\\x1b]0;owned\\x07" in shown
    assert "value   1 \\xff\n" in shown
    assert "header  h: \\x00\\xfe\n" in shown
    assert f"from {name}[1]@0\n" in shown
    assert "__connect" not in shown
    rows = [
        json.loads(line)
        for line in shell.ok(
            "deadletter", "show", dead, "-o", "jsonl", "--reason", "stock", "--origin", name
        ).splitlines()
    ]
    assert len(rows) == 1
    assert rows[0]["origin_offset"] == 0
    assert rows[0]["message"] == "out of stock"
    assert rows[0]["value_base64"] == "MSD/"
    assert rows[0]["headers"] == [["h", None, "AP4="], ["h", None], ["t", "x"]]
    first = shell("deadletter", "show", dead, "-n", "1", "-o", "json")
    assert len(json.loads(first.stdout)) == 1
    assert b"-n shows more" in first.stderr


def test_replayed_once_as_it_was(shell: Shell, log: Log, name: str, dead: str) -> None:
    before = read(log, name)
    plan = shell("deadletter", "replay", dead, "--dry-run", "-o", "json")
    assert json.loads(plan.stdout) == [{"origin": name, "target": name, "records": 3}]
    assert read(log, name) == before
    assert "nobody answered (add --yes)" in shell("deadletter", "replay", dead).stderr.decode()
    assert shell("deadletter", "replay", dead, stdin=b"n\n").returncode == 130
    assert read(log, name) == before
    shell.ok("deadletter", "replay", dead, stdin=b"y\n")
    expected = [row for row in before if int(row[1][1:]) in FAILING]
    copied = read(log, name)
    assert copied == sorted([*before, *expected], key=repr), (
        "partition, key, value, headers, timestamp"
    )
    again = shell("deadletter", "replay", dead, "-y", "-o", "jsonl")
    assert (again.returncode, again.stdout) == (0, b"")
    assert read(log, name) == copied


def test_filters_leave_gaps_that_a_later_replay_fills(
    shell: Shell, log: Log, name: str, dead: str
) -> None:
    shell.ok("topic", "create", f"{name}-to")
    to = ("--to", f"{name}-to", "-y")
    for _ in range(2):
        shell.ok("deadletter", "replay", dead, "--from", "1", "--until", "2", *to)
        assert len(read(log, f"{name}-to")) == 1
    shell.ok("deadletter", "replay", dead, "--reason", "KeyError", *to)
    shell.ok("deadletter", "replay", dead, "--until", "0", *to)
    shell.ok("deadletter", "replay", dead, "--from", "2", *to)
    shell.ok("deadletter", "replay", dead, "-p", "0", *to)
    assert [row[1] for row in read(log, f"{name}-to")] == [b"k1", b"k2", b"k4"]
    shell.ok("deadletter", "replay", dead, "--group", f"{name}-other", *to)
    assert len(read(log, f"{name}-to")) == 6, "another group has its own progress"
    group = f"bucketlog-deadletter-{dead}"
    shell.ok("group", "reset", group, "-t", dead, "--to", "start", "-y")
    shell.ok("deadletter", "replay", dead, *to)
    assert len(read(log, f"{name}-to")) == 9


def test_a_time_bounds_the_replay(shell: Shell, log: Log, name: str, dead: str) -> None:
    plan = ("deadletter", "replay", dead, "--dry-run", "-o", "jsonl")
    assert shell.ok(*plan, "--from", "2100-01-01") == b""
    assert json.loads(shell.ok(*plan, "--from", "2023-11-01"))["records"] == 3
    assert shell.ok(*plan, "--until", "2023-11-01") == b""
    assert json.loads(shell.ok(*plan, "--until", "2100-01-01"))["records"] == 3


def test_what_cannot_be_replayed(shell: Shell, log: Log, name: str, dead: str) -> None:
    replay = ("deadletter", "replay", dead, "-y")
    assert "did you mean" in shell.failing(1, "deadletter", "replay", f"{name}-daed", "-y")
    assert "the dead-letter topic itself" in shell.failing(2, *replay, "--to", dead)
    assert "creates it" in shell.failing(1, *replay, "--to", f"{name}-nowhere")
    assert "has no partition 3" in shell.failing(2, *replay, "-p", "3")
    assert "nothing to read" in shell.failing(2, *replay, "--from", "end")
    with log.producer() as producer:
        producer.send(Topic(dead), b"by hand")
    complaint = shell.failing(2, *replay)
    assert f"{dead}[0]@3 names no origin topic (name a target with --to" in complaint
    assert len(read(log, name)) == 6, "nothing was sent"
    shell.ok(*replay, "--origin", name)
    assert len(read(log, name)) == 9
    for origin, complaint in ((dead, "came from"), ("a/b", "is not a topic name")):
        with log.producer() as producer:
            headers = [("__connect.errors.topic", origin)]
            producer.send(Topic(dead), b"hostile", headers=headers)
        assert complaint in shell.failing(2, *replay, "--from", str(len(read(log, dead)) - 1))


def test_a_record_that_is_refused_stays(shell: Shell, log: Log, name: str, dead: str) -> None:
    log.topics.create(f"{name}-keys", configs={"cleanup.policy": "compact"})
    with log.producer() as producer:
        headers = [("__connect.errors.topic", f"{name}-keys")]
        producer.send(Topic(dead), b"without a key", headers=headers)
    done = shell("deadletter", "replay", dead, "-y")
    assert done.returncode == 1
    assert b"3 records replayed; group" in done.stderr
    assert len(read(log, name)) == 9
    shell("deadletter", "replay", dead, "-y")
    assert len(read(log, name)) == 9, "those that were acknowledged count"
    rows = json.loads(shell.ok("deadletter", "list", dead, "-o", "json"))
    assert sum(row["pending"] for row in rows) == 1


def test_stopped_after_a_chunk(
    log: Log, name: str, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_replay, "CHUNK_RECORDS", 1)
    for done in (1, 2, 3):
        replay = DeadLetterReplay(log, dead, name, DeadLetterFilter(), None)
        replay.run(replay.plan(), stopping=lambda: True)
        assert replay.replayed == 1
        assert len(read(log, name)) == 6 + done


def test_two_replays_of_a_group(
    log: Log, name: str, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_replay, "CHUNK_RECORDS", 1)
    first = DeadLetterReplay(log, dead, "two", DeadLetterFilter(), None)
    second = DeadLetterReplay(log, dead, "two", DeadLetterFilter(), None)
    plan = first.plan()
    second.run(second.plan())
    with pytest.raises(BucketlogError, match="another program changed the progress"):
        first.run(plan)
    assert len(read(log, name)) == 6 + 3 + 1, "it stopped after its first chunk"


def test_sigterm_keeps_the_progress(
    log: Log,
    name: str,
    dead: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    commit = DeadLetterReplay._commit

    def commit_and_stop(replay: DeadLetterReplay) -> None:
        commit(replay)
        signal.raise_signal(signal.SIGTERM)

    replay = ["deadletter", "replay", dead, "-y", "-b", log.bootstrap]
    monkeypatch.setattr(dead_letter_replay, "CHUNK_RECORDS", 2)
    with monkeypatch.context() as patch:
        patch.setattr(DeadLetterReplay, "_commit", commit_and_stop)
        assert main(replay) == 143
    assert "2 records replayed" in capsys.readouterr().err
    assert len(read(log, name)) == 6 + 2
    assert main(replay) == 0
    assert len(read(log, name)) == 6 + 3
