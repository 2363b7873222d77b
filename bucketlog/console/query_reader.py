"""The program of the process that reads records for a query of the console.

    python -m bucketlog.console.query_reader MEMORY_BYTES

Its input is a `ReadRequest` as JSON. Its output is a line of JSON, then the records as a stream of
Arrow. Invariants: the process uses at most MEMORY_BYTES of address space. The records are the first
ones of the replay, up to the limits of the request, and the line says whether a limit cut them.
"""

import json
import resource
import signal
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, BinaryIO

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from bucketlog.client.topic import Topic
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.replay_plan import ReplayPlan, stored_bytes
from bucketlog.replaying.replay import Replay

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class ReadRequest(BaseModel):
    """`options` are those of the reader. Sizes are in bytes: of the stored batches, which the last
    range GET may exceed, and of the decoded records. `seconds` is the time after which the process
    ends."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    options: Mapping[str, str]
    threads: int = Field(ge=1)
    seconds: int = Field(ge=1)
    stored_bytes_max: int = Field(ge=1)
    records_max: int = Field(ge=1)
    record_bytes_max: int = Field(ge=1)


class BoundedRecords:
    """The first records of a replay. `is_cut` tells whether a limit left records out."""

    def __init__(self, request: ReadRequest) -> None:
        self.is_cut = False
        self.records = 0
        self._request = request
        self._replay = Replay(Topic(request.topic), request.options, COLUMNS, request.threads)

    @property
    def schema(self) -> Any:
        """The schema of the batches, as a `pyarrow.Schema`."""
        return self._replay.schema

    def batches(self) -> Iterator[Any]:
        """Yield batches of Arrow. Raises the errors of `Replay.batches`."""
        plan = self._replay.plan
        self._replay.plan = cut_plan(plan, self._request.stored_bytes_max)
        self.is_cut = self._replay.plan.stored_bytes < plan.stored_bytes
        left_bytes = self._request.record_bytes_max
        with closing(self._replay.batches()) as batches:
            for batch in batches:
                rows = fitting_rows(batch, self._request.records_max - self.records, left_bytes)
                kept = batch.slice(0, rows)
                self.records += rows
                left_bytes -= kept.nbytes
                if rows:
                    yield kept
                if rows < batch.num_rows:
                    self.is_cut = True
                    return


def cut_plan(plan: ReplayPlan, stored_bytes_max: int) -> ReplayPlan:
    """The first pieces of the plan, until they have `stored_bytes_max` bytes."""
    total = 0
    tasks: list[tuple[TaskPiece, ...]] = []
    for task in plan.tasks:
        pieces: list[TaskPiece] = []
        for piece in task:
            if total >= stored_bytes_max:
                break
            pieces.append(piece)
            total += stored_bytes(piece)
        tasks.append(tuple(pieces))
    if total == plan.stored_bytes:
        return plan
    return replace(plan, tasks=tuple(tasks), records=None, stored_bytes=total)


def fitting_rows(batch: Any, rows_max: int, bytes_max: int) -> int:
    """The largest number of first rows of the batch within the limits."""
    most = min(int(batch.num_rows), rows_max)
    if batch.slice(0, most).nbytes <= bytes_max:
        return most
    return bisect_right(range(1, most + 1), bytes_max, key=lambda rows: batch.slice(0, rows).nbytes)


def main(memory_bytes: int, given: BinaryIO, out: BinaryIO) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the console ends this process
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    try:
        try:
            request = ReadRequest.model_validate_json(given.read())
        except ValueError as error:
            raise ConfigurationError("the request is not one of the console") from error
        signal.alarm(request.seconds)
        found = BoundedRecords(request)
        batches = list(found.batches())
    except BucketlogError as error:
        out.write(json.dumps({"error": str(error)}).encode() + b"\n")
        return
    head = {"records": found.records, "is_cut": found.is_cut}
    out.write(json.dumps(head).encode() + b"\n")
    with pa.ipc.new_stream(out, found.schema) as stream:
        for batch in batches:
            stream.write_batch(batch)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.stdin.buffer, sys.stdout.buffer)
