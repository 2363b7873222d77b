"""The program of the process that replays a range to Parquet files for the console.

    python -m bucketlog.console.replay_program MEMORY_BYTES

Its input is a `ReplayRequest` as JSON. It writes lines of JSON: the plan, its progress, then the
end or an error. Invariants: the process uses at most MEMORY_BYTES of address space. It writes only
to the folder of its request, and changes nothing in the bucket. If nobody reads its output any
more, the replay fails when it writes the next line, and removes its files.
"""

import json
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from pydantic import BaseModel, ConfigDict, Field

from bucketlog.client.topic import Topic
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_reader.parquet_writing import ParquetSettings
from bucketlog.replaying.record_bar import expected_records
from bucketlog.replaying.replay import Replay

PROGRESS_S = 0.2
"""Time between two lines of progress."""
FILE_BYTES_MAX = 64 * 1024 * 1024
BUFFER_BYTES_MAX = 64 * 1024 * 1024
"""Bytes that one thread keeps before it writes."""
ROW_GROUP_ROWS = 100_000
Send = Callable[[Mapping[str, Any]], None]


class ReplayTooLargeError(BucketlogError):
    """A replay of the console would read or write more than its limits."""

    code = "REPLAY_TOO_LARGE"


class ReplayRequest(BaseModel):
    """`options` are those of the reader. The files of `topic` go to the folder `target`, which is
    empty. Sizes are in bytes: of the stored batches, and of the records before encoding."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    options: Mapping[str, str]
    target: str
    threads: int = Field(ge=1)
    stored_bytes_max: int = Field(ge=1)
    record_bytes_max: int = Field(ge=1)


class ReplayProgress:
    """Counts records and their bytes, and sends the counts. Raises `ReplayTooLargeError` after
    `record_bytes_max` bytes. `now_s` is a monotonic clock in seconds. Several threads may use
    it."""

    def __init__(self, send: Send, record_bytes_max: int, now_s: Callable[[], float]) -> None:
        self._send = send
        self._record_bytes_max = record_bytes_max
        self._now_s = now_s
        self._lock = threading.Lock()
        self._records = self._bytes = 0
        self._next_s = 0.0

    def passed(self, records: int, size_bytes: int) -> None:
        with self._lock:
            self._records += records
            self._bytes += size_bytes
            if self._bytes > self._record_bytes_max:
                raise ReplayTooLargeError(
                    f"the records have more than {self._record_bytes_max:,} bytes",
                    remedy="choose a smaller range, use the command, or raise "
                    "BUCKETLOG_CONSOLE_REPLAY_RECORD_BYTES_MAX",
                )
            if self._now_s() >= self._next_s:
                self._send(self.counts())
                self._next_s = self._now_s() + PROGRESS_S

    def counts(self) -> Mapping[str, int]:
        return {"records": self._records, "bytes": self._bytes}


def run_replay(request: ReplayRequest, send: Send) -> None:
    """Plan and write. Raises `ReplayTooLargeError`, and the errors of `Replay.to_parquet`."""
    made = Replay(Topic(request.topic), request.options, None, request.threads)
    plan = made.plan
    if plan.stored_bytes > request.stored_bytes_max:
        raise too_much_stored(plan.stored_bytes, request.stored_bytes_max)
    send({"expected": expected_records(plan), "is_exact": plan.records is not None})
    progress = ReplayProgress(send, request.record_bytes_max, time.monotonic)
    made.to_parquet(
        request.target,
        partition_by=("partition",),
        settings=ParquetSettings(
            row_group_rows=ROW_GROUP_ROWS,
            file_bytes_max=FILE_BYTES_MAX,
            buffer_bytes_max=BUFFER_BYTES_MAX,
        ),
        on_rows=progress.passed,
    )
    send({**progress.counts(), "written": True})


def too_much_stored(stored_bytes: int, stored_bytes_max: int) -> ReplayTooLargeError:
    """The error of a plan whose batches have too many stored bytes."""
    return ReplayTooLargeError(
        f"the replay reads {stored_bytes:,} stored bytes, and {stored_bytes_max:,} are allowed",
        remedy="choose a smaller range, use the command, or raise "
        "BUCKETLOG_CONSOLE_REPLAY_STORED_BYTES_MAX",
    )


def main(memory_bytes: int, given: BinaryIO, out: BinaryIO) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the console ends this process
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))

    def send(message: Mapping[str, Any]) -> None:
        out.write(json.dumps(message).encode() + b"\n")
        out.flush()

    try:
        try:
            request = ReplayRequest.model_validate_json(given.read())
        except ValueError as error:
            raise ConfigurationError("the request is not one of the console") from error
        run_replay(request, send)
    except BucketlogError as error:
        send({"error": str(error)})


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
