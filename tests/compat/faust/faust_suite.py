"""Faust (faust-streaming): agents, tables with changelog topics, exactly-once.

The tests in Faust's source distribution replace the broker by mocks. These run workers against a
broker. They run in Faust's environment (`scripts/client_suites.sh`).
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

BOOTSTRAP = os.environ["GIVEN_BROKER"]
HERE = Path(__file__).parent
GUARANTEES = ("at_least_once", "exactly_once")


class Worker:
    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self._process = process
        self._log = log

    def counts(self, wanted: dict[str, int]) -> dict[str, list[int]]:
        """The counts of each word in the order of their records, until all are as wanted."""
        found: dict[str, list[int]] = {}
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if not line.startswith("["):
                continue
            word, number = json.loads(line)
            found.setdefault(word, []).append(number)
            if all(max(found.get(word, [0])) >= number for word, number in wanted.items()):
                return found
        tail = "\n".join(self._log.read_text().splitlines()[-20:])
        raise AssertionError(f"the worker ended after {found}: {tail}")


@contextmanager
def worker(name: str, guarantee: str, data: Path) -> Iterator[Worker]:
    log = data.with_suffix(".log")
    with log.open("w") as errors:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "faust",
                "-A",
                "word_count",
                "--datadir",
                str(data),
                "worker",
                "--without-web",
            ],
            env={**os.environ, "APP_NAME": name, "APP_GUARANTEE": guarantee},
            cwd=HERE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            yield Worker(process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def name() -> str:
    """The name of an application whose topic of words exists."""
    name = f"faust-{uuid.uuid4()}"

    async def create() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
        await admin.start()
        await admin.create_topics([NewTopic(f"{name}-words", 2, 1)])
        await admin.close()

    asyncio.run(create())
    return name


def say(name: str, *words: str) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP) as producer:
            for word in words:
                await producer.send_and_wait(
                    f"{name}-words", json.dumps(word).encode(), word.encode()
                )

    asyncio.run(send())


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_words_are_counted(name: str, guarantee: str, tmp_path: Path) -> None:
    say(name, "a", "b", "a")
    with worker(name, guarantee, tmp_path / "data") as running:
        assert running.counts({"a": 2, "b": 1}) == {"a": [1, 2], "b": [1]}


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_table_is_restored_from_its_changelog(name: str, guarantee: str, tmp_path: Path) -> None:
    say(name, "a", "b", "a")
    with worker(name, guarantee, tmp_path / "first") as running:
        running.counts({"a": 2, "b": 1})
    say(name, "a", "b")
    with worker(name, guarantee, tmp_path / "second") as running:  # on an empty disk
        found = running.counts({"a": 3, "b": 2})
    assert (max(found["a"]), max(found["b"])) == (3, 2)
