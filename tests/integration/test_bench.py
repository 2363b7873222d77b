"""`bucketlog bench` on a real broker: what it counts is what is there."""

import json
import os
import re
import signal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import Shell

pytestmark = pytest.mark.long

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"load-{next(_numbers)}"


def measured(shell: Shell, *arguments: str) -> Any:
    return json.loads(shell.ok("bench", *arguments, "-o", "jsonl"))


def records_of(shell: Shell, name: str) -> int:
    described = json.loads(shell.ok("topic", "describe", name, "-o", "json"))
    return sum(part["records"] for part in described["partitions"])


def test_what_is_produced_is_there_and_consumed(
    shell: Shell, log: bucketlog.Log, name: str
) -> None:
    flags = ("--create", "-p", "3", "--producers", "2", "--key-cardinality", "50")
    told = measured(shell, "produce", name, "-n", "5000", "--record-bytes", "64", *flags)
    assert (told["records"], told["failed"], told["bytes"]) == (5000, 0, 320_000)
    assert told["latency_ms"]["acknowledged"]["max"] > 0
    assert told["records_per_s"] == pytest.approx(5000 / told["seconds"], rel=0.01)
    with log.consumer(bucketlog.Topic(name), start="earliest", until="end") as consumer:
        there = list(consumer)
    assert len(there) == 5000
    assert {len(record.value) for record in there} == {64}
    assert len({record.key for record in there}) == 50
    assert {record.partition for record in there} == {0, 1, 2}
    told = measured(shell, "consume", name)
    assert (told["records"], told["bytes"], told["interrupted"]) == (5000, 320_000, False)
    assert measured(shell, "consume", name, "-n", "700")["records"] == 700
    assert measured(shell, "consume", name, "--from", "end", "-s", "0.2")["records"] == 0


def test_a_pace_is_kept(shell: Shell, name: str) -> None:
    pace = ("-s", "1", "--rate", "64KB/s", "--record-bytes", "64", "--warm-up-seconds", "0.5")
    told = measured(shell, "produce", name, *pace, "--create", "--acks", "1")
    assert told["records"] == told["wanted_per_s"] == 1000
    assert told["late_ms"]["max"] >= told["late_ms"]["p50"]
    assert records_of(shell, name) == 1500, "the warm-up's, too"


def test_end_to_end(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name, "-p", "2")
    shell.ok("produce", name, stdin=b"of others\n")
    told = measured(shell, "end-to-end", name, "-n", "200", "--rate", "400")
    assert (told["records"], told["lost"]) == (200, 0)
    came = told["latency_ms"]["end to end"]
    assert 0 < came["p50"] <= came["p99"] <= came["p99_9"] <= came["max"]
    complaint = shell.failing(2, "bench", "end-to-end", name, "--record-bytes", "8")
    assert "at least 16" in complaint


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_it_tells_what_was_done(shell: Shell, name: str, number: signal.Signals) -> None:
    shell.ok("topic", "create", name)
    with shell.start(
        "bench", "produce", name, "--rate", "500", "-s", "60", "-o", "json"
    ) as process:
        while not records_of(shell, name):
            pass
        process.send_signal(number)
        out, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    summary = json.loads(out)
    assert summary["interrupted"]
    assert summary["records"] == records_of(shell, name) > 0
    assert summary["given_up"] == summary["failed"] == 0
    assert told == b""


def test_a_topic_is_deleted_where_bench_has_made_it(shell: Shell, name: str) -> None:
    own = ("-n", "10", "--create", "--delete")
    table = shell.ok("bench", "produce", name, *own).decode()
    assert re.search(r"^ +10 +0 ", table, re.MULTILINE)
    assert "P99.9" in table
    assert name not in shell.ok("topic", "list").decode().split()
    shell.ok("topic", "create", name)
    shell.ok("bench", "produce", name, *own)
    assert records_of(shell, name) == 10, "it was there before"


def test_what_is_wrong_is_a_line(shell: Shell, name: str) -> None:
    for verb in ("produce", "consume", "end-to-end"):
        assert "bucketlog topic create" in shell.failing(1, "bench", verb, name)
    shell.ok("topic", "create", name, "-c", "max.message.bytes=100")
    done = shell("bench", "produce", name, "-n", "10", "--record-bytes", "500", "-o", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["records"] == 0
    assert json.loads(done.stdout)["failed"] == 10
    assert b"MSG_SIZE_TOO_LARGE" in done.stderr or b"MESSAGE_TOO_LARGE" in done.stderr
    assert done.stderr.count(b"\n") == 1
    shown = shell.failing(2, "bench", "consume", name, "-X", "no.such=1")
    assert "no.such" in shown
    done = shell("bench", "consume", name, "-X", "fetch.min.bytes=1", "-X", "linger.ms=1")
    assert (done.returncode, done.stderr) == (0, b"")
    larger = shell("bench", "produce", name, "-n", "1", "--record-bytes", "2000000")
    assert (larger.returncode, larger.stderr.count(b"\n")) == (1, 1)
    assert b"MESSAGE_TOO_LARGE" in larger.stderr
    assert larger.stdout.startswith(b"RECORDS")


def test_a_cluster_that_is_gone_ends_it_with_a_line(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path) as cluster:
        shell = Shell(cluster.bootstrap)
        shell.ok("topic", "create", "t")
        flags = ("t", "-s", "60", "--timeout-seconds", "1", "-o", "json")
        with (
            shell.start("bench", "consume", *flags) as reader,
            shell.start("bench", "produce", *flags, "--rate", "100") as writer,
        ):
            while not records_of(shell, "t"):
                pass
            os.kill(cluster.pids["broker"], signal.SIGKILL)
            for process in (reader, writer):
                out, told = process.communicate(timeout=PATIENCE_S)
                assert process.returncode == 1
                assert told.count(b"\n") == 1
                assert json.loads(out)["interrupted"] is False
    assert json.loads(out)["failed"] > 0
