"""`python -m bucketlog.stateless_broker` as tests start it, ask it and end it."""

import json
import os
import select
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.rigs.patience import PATIENCE_S
from tests.servers.prepared_process import PreparedProcess

MODULE = "bucketlog.stateless_broker"
USUAL = {
    "port": "0",
    "flush_interval_ms": "0",
    "handover_ms": "0",
    "log_retention_check_interval_ms": "0",
}
"""Tests write records of 2023: retention would delete them."""


class BrokerProcess:
    """`python -m bucketlog.stateless_broker` with only the settings that are given. With a
    `redis_url`, it waits for that Redis, unless `sequencer_timeout_ms` says when not.

    `store` are the variables by which it finds an S3 store, if its bucket is in one; `module` is
    run in its place.
    """

    def __init__(
        self,
        log: Path,
        store: Mapping[str, str] | None = None,
        module: str = MODULE,
        /,
        **settings: str,
    ) -> None:
        environment = {
            name: text for name, text in os.environ.items() if not name.startswith("BUCKETLOG_")
        }
        environment |= {"PYTHONFAULTHANDLER": "1"} | dict(store or {})
        waits = {"sequencer_timeout_ms": "0"} if "redis_url" in settings else {}
        ours = USUAL | waits | settings
        environment |= {f"BUCKETLOG_{name.upper()}": text for name, text in ours.items()}
        self.log = log
        with log.open("ab") as stderr:
            self.process = PreparedProcess(
                [sys.executable, *(["-P"] if module == MODULE else []), "-m", module],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self.ready: dict[str, Any] = {}

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ready['port']}"

    def wait_until_ready(self) -> "BrokerProcess":
        """Raises `AssertionError` with the broker's log if the broker ends instead, or takes too
        long: then the log says what each of its threads did."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
            self.process.send_signal(signal.SIGABRT)
            self.wait()
            raise AssertionError(f"not ready after {PATIENCE_S:.0f} s: {self.log.read_text()}")
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.ready = json.loads(line)
        return self

    def wait(self) -> int:
        code = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Kill the broker if it is still running, and close its output in any case."""
        self.process.kill()
        self.wait()

    def frame_bytes(self) -> float:
        return self.metrics()["bucketlog_frame_bytes"]

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by its name and labels as they stand there."""
        url = f"http://127.0.0.1:{self.ready['http_port']}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            lines = answer.read().decode().splitlines()
        pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
        return {name: float(value) for name, value in pairs}

    def readiness(self) -> tuple[int, dict[str, str]]:
        """Status and reasons of /readyz."""
        url = f"http://127.0.0.1:{self.ready['http_port']}/readyz"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                return answer.status, json.loads(answer.read())["reasons"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())["reasons"]


Start = Callable[..., BrokerProcess]
