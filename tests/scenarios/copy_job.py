"""Copy jobs of librdkafka and Java, whose instances are processes that can be killed.

Invariant: at the end of the `with` block, all processes are ended by their pids.
"""

import os
import subprocess
import sys
from abc import abstractmethod
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from tests.scenarios.copy_process import STARTED
from tests.servers.kafka_tools import KafkaTools

INSTANCES = 3
GROUP = "copy"
SOURCE = "copy-in"
TAIL_BYTES = 2_000
KILLED = -9


class CopyJob:
    """`targets` are the topics to which each record is copied. `look` restarts processes that end
    by themselves. If the exit code of one is not 0, it is added to `problems`."""

    targets: tuple[str, ...]

    def __init__(self, bootstrap: str, folder: Path, *, batch: int) -> None:
        self.problems: list[str] = []
        self._started = 0
        self._bootstrap = bootstrap
        self._folder = folder
        self._batch = batch
        self._running: list[subprocess.Popen[bytes]] = []

    @property
    def stuck(self) -> int:
        """The number of producers that were replaced because a call did not return."""
        begun = sum(
            self._log(number).read_text(errors="replace").count(STARTED)
            for number in range(INSTANCES)
        )
        return max(0, begun - self._started)

    @abstractmethod
    def _command(self, number: int) -> list[str]:
        """The command of the instance with this number."""

    def __enter__(self) -> Self:
        self._running = [self._start(number) for number in range(INSTANCES)]
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._running:
            process.kill()
            process.wait()

    def kill(self, source: Random) -> None:
        """Kill an instance (kill -9), and start another with the same transactional id."""
        number = source.randrange(INSTANCES)
        self._running[number].kill()
        self._running[number].wait()
        self._running[number] = self._start(number)

    def look(self) -> None:
        """Restart instances that ended by themselves."""
        for number, process in enumerate(self._running):
            code = process.poll()
            if code is None:
                continue
            if code:
                said = self._log(number).read_bytes()[-TAIL_BYTES:].decode(errors="replace")
                self.problems.append(f"instance {number} ended with {code}: {said}")
            self._running[number] = self._start(number)

    def _log(self, number: int) -> Path:
        return self._folder / f"copy-{number}.log"

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        self._started += 1
        with self._log(number).open("ab") as log:
            return subprocess.Popen(
                self._command(number),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
            )


class LibrdkafkaJob(CopyJob):
    """Copies to two topics, with transactions of version 1."""

    targets = ("copy-out", "copy-also-out")

    def _command(self, number: int) -> list[str]:
        return [
            *(sys.executable, "-m", "tests.scenarios.copy_process"),
            *("--bootstrap", self._bootstrap, "--id", f"copy-{number}", "--group", GROUP),
            *("--source", SOURCE, "--batch", str(self._batch)),
            *(word for target in self.targets for word in ("--target", target)),
        ]


class JavaJob(CopyJob):
    """Copies to one topic with Apache Kafka's copier, with transactions of version 2. An instance
    ends when its assigned partitions have no more records. Raises `ConfigurationError` if Apache
    Kafka's tools are not installed."""

    targets = ("copy-out",)

    def _command(self, number: int) -> list[str]:
        return KafkaTools(self._bootstrap).command(
            "transactional-message-copier",
            *("--input-topic", SOURCE, "--output-topic", *self.targets, "--input-partition", "0"),
            *("--transactional-id", f"copy-{number}", "--consumer-group", GROUP),
            *("--transaction-size", str(self._batch), "--group-mode", "--use-group-metadata"),
        )
