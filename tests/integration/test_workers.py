"""`bucketlog broker --workers`: two real brokers under one supervisor."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S
from tests.rigs.wire_client import WireClient

pytestmark = pytest.mark.long


class Row:
    """The command and what its workers say."""

    def __init__(self, folder: Path, redis_url: str, **settings: str) -> None:
        ours = {"bucket_url": f"file://{folder}/bucket", "redis_url": redis_url, "port": "0"}
        ours |= {"session_timeout_ms": "1000", "heartbeat_interval_ms": "200"} | settings
        rest = {name: text for name, text in os.environ.items() if "BUCKETLOG_" not in name}
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bucketlog.cli", "broker", "--workers", "2"],
                env=rest | {f"BUCKETLOG_{name.upper()}": text for name, text in ours.items()},
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def next_ready(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        found: dict[str, Any] = json.loads(line)
        return found

    def brokers(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def row(tmp_path: Path, redis_url: str) -> Iterator[Row]:
    with_two = Row(tmp_path, redis_url)
    try:
        yield with_two
    finally:
        if with_two.process.poll() is None:
            with_two.end(signal.SIGTERM)
        assert with_two.process.stdout is not None
        with_two.process.stdout.close()


def node_ids(ready: dict[str, Any]) -> set[int]:
    with WireClient(f"127.0.0.1:{ready['port']}") as client:
        answer = client.call(ApiKey.METADATA, 1, topics=[])
    return {broker.node_id for broker in answer.brokers}


def test_each_is_a_broker_of_its_own_and_comes_back_when_it_is_killed(row: Row) -> None:
    first, second = row.next_ready(), row.next_ready()
    assert {first["node_id"], second["node_id"]} == {0, 1}
    assert first["port"] != second["port"]
    before = row.brokers()
    assert len(before) == 2
    before[0].kill()
    third = row.next_ready()
    assert node_ids(third) >= {third["node_id"]}
    brokers = row.brokers()
    assert before[1] in brokers
    assert row.end(signal.SIGTERM) == 0
    assert not psutil.wait_procs(brokers, PATIENCE_S)[1]


def test_they_end_with_their_supervisor(row: Row) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip(reason="only Linux tells children that their parent has died")
    row.next_ready()
    row.next_ready()
    brokers = row.brokers()
    row.end(signal.SIGKILL)
    assert not psutil.wait_procs(brokers, PATIENCE_S)[1]


def test_settings_that_do_not_work_are_said_once(tmp_path: Path, redis_url: str) -> None:
    refused = Row(tmp_path, redis_url, port="65535")
    assert refused.process.wait(PATIENCE_S) == 2
    assert refused.process.stdout is not None
    refused.process.stdout.close()
    lines = refused.log.read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("bucketlog broker: BUCKETLOG_PORT: 2 workers from port 65535")
