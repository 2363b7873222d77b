"""A well-behaved client beside an attack: a separate process that measures its latencies.

The client sends Produce with one record and ApiVersions, each on a separate connection to each
broker, and reconnects if a broker closes a connection. `Bystander` starts the process.
"""

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S, let_pass
from tests.rigs.wire_client import WireClient, build_batch

PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Latencies:
    """Latencies of one phase, in milliseconds. `failures` has the texts of failed requests and of
    error responses."""

    produce_ms: list[float]
    api_versions_ms: list[float]
    failures: list[str]

    @property
    def produce_p99_ms(self) -> float:
        return percentile(self.produce_ms, 0.99)

    @property
    def api_versions_p99_ms(self) -> float:
        return percentile(self.api_versions_ms, 0.99)


def percentile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * part))], 1) if ordered else 0.0


class Bystander:
    """The process; a context manager. `topic` must have a partition 0."""

    def __init__(self, bootstraps: list[str], topic: str) -> None:
        command = [sys.executable, "-m", "tests.scenarios.bystander", topic, *bootstraps]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        self.phase()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(PATIENCE_S)

    def phase(self) -> Latencies:
        """End a phase and return its latencies. An unanswered request counts with its age so far,
        and again in the next phase."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the bystander's process has ended"
        return Latencies(**json.loads(line))


class Measuring(threading.Thread):
    """Requests of one kind to one broker, in a loop."""

    def __init__(self, bootstrap: str, topic: str, *, produces: bool) -> None:
        super().__init__(daemon=True)
        self._address = bootstrap
        self._produces = produces
        records = build_batch([(b"good", b"bystander" * 10)])
        data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
        self._values = {"acks": -1, "timeout": 20_000, "topic_data": data}
        self._lock = threading.Lock()
        self._found: list[float] = []
        self._failures: list[str] = []
        self._began_s: float | None = None

    def taken(self) -> tuple[list[float], list[str]]:
        with self._lock:
            found, self._found = self._found, []
            failures, self._failures = self._failures, []
            if self._began_s is not None:
                found.append(1000 * (time.perf_counter() - self._began_s))
        return found, failures

    def run(self) -> None:
        while True:
            try:
                with WireClient(self._address, timeout_s=PATIENCE_S) as client:
                    while True:
                        self._measure(client)
                        let_pass(PAUSE_S)
            except (OSError, AssertionError) as error:
                with self._lock:
                    self._began_s = None
                    self._failures.append(f"{'produce' if self._produces else 'ask'}: {error!r}")
                let_pass(PAUSE_S)

    def _measure(self, client: WireClient) -> None:
        self._began_s = time.perf_counter()
        if self._produces:
            answer = client.call(ApiKey.PRODUCE, 9, **self._values)
            code = answer.responses[0].partition_responses[0].error_code
        else:
            code = client.call(ApiKey.API_VERSIONS, 0).error_code
        with self._lock:
            self._found.append(1000 * (time.perf_counter() - self._began_s))
            self._began_s = None
        assert not code, code


def main() -> None:
    topic, *bootstraps = sys.argv[1:]
    producing = [Measuring(bootstrap, topic, produces=True) for bootstrap in bootstraps]
    asking = [Measuring(bootstrap, topic, produces=False) for bootstrap in bootstraps]
    for thread in (*producing, *asking):
        thread.start()
    for _ in sys.stdin:
        taken = [[thread.taken() for thread in threads] for threads in (producing, asking)]
        produce_ms, api_versions_ms = ([ms for found, _ in each for ms in found] for each in taken)
        failures = [text for each in taken for _, texts in each for text in texts]
        row = {"produce_ms": produce_ms, "api_versions_ms": api_versions_ms, "failures": failures}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
