"""Kafka Connect in distributed mode, and other long-running programs of Kafka, as processes."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.servers.kafka_tools import KafkaTools

KEPT = ("offset", "status")
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
ANSWER_S = 30.0


def properties(path: Path, values: Mapping[str, object]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


@contextmanager
def application(tools: KafkaTools, name: str, config: Path, said: Path) -> Iterator[None]:
    """A running program. The end of the `with` block kills it (kill -9)."""
    with said.open("ab") as out:
        process = tools.start_application(name, config, out)
        try:
            yield
        finally:
            process.kill()
            process.wait()


def worker_properties(
    path: Path, bootstrap: str, port: int, more: Mapping[str, object] | None = None
) -> Path:
    """The settings of a distributed worker of group `connect` with its REST server at `port`."""
    return properties(
        path,
        {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "listeners": f"http://127.0.0.1:{port}",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "offset.storage.partitions": 1,
            "status.storage.topic": "connect-status",
            "status.storage.partitions": 1,
            **{f"{what}.storage.replication.factor": 1 for what in ("config", "offset", "status")},
            "offset.flush.interval.ms": 200,
            "scheduled.rebalance.max.delay.ms": 0,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_000,
        }
        | dict(more or {}),
    )


class ConnectWorker:
    """The REST server of a worker, on 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}"

    def answers(self) -> bool:
        try:
            self.connectors()
        except (URLError, OSError):
            return False
        return True

    def connectors(self) -> list[str]:
        return sorted(self._ask("/connectors"))

    def configure(self, name: str, connector: str, config: Mapping[str, str]) -> None:
        """Create the connector, or change it."""
        self._ask(f"/connectors/{name}/config", {"connector.class": connector, **config})

    def is_running(self, name: str) -> bool:
        """Whether the connector and its first task run."""
        status = self._ask(f"/connectors/{name}/status")
        parts = [status["connector"], *status["tasks"]]
        return len(parts) > 1 and all(part["state"] == "RUNNING" for part in parts)

    def _ask(self, path: str, body: object = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        method = "PUT" if data is not None else "GET"
        headers = {"Content-Type": "application/json"}
        request = Request(self._address + path, data, headers, method=method)
        with urlopen(request, timeout=ANSWER_S) as answer:
            return json.loads(answer.read())
