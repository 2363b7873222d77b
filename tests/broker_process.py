"""`python -m stateless_broker` as tests start it, ask it and end it."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_S = 30


class BrokerProcess:
    """`python -m stateless_broker` with only the settings that are given."""

    def __init__(self, log: Path, **settings: str) -> None:
        environment = {
            name: text for name, text in os.environ.items() if not name.startswith("BUCKETLOG_")
        }
        ours = {"port": "0", "flush_interval_ms": "0"} | settings
        environment |= {f"BUCKETLOG_{name.upper()}": text for name, text in ours.items()}
        self.log = log
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "stateless_broker"],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self.ready: dict[str, Any] = {}

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.ready['port']}"

    def wait_until_ready(self) -> "BrokerProcess":
        assert self.process.stdout is not None
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
        self.process.kill()
        self.wait()

    def frame_bytes(self) -> float:
        url = f"http://127.0.0.1:{self.ready['http_port']}/metrics"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            lines = answer.read().decode().splitlines()
        (line,) = [line for line in lines if line.startswith("bucketlog_frame_bytes ")]
        return float(line.split()[1])

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
