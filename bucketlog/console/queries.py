"""Runs queries over a range of a topic, each in two processes: one reads records, one runs the SQL.

Invariants: the process that runs the SQL has an environment without credentials. A limited number
of queries run at a time. Both processes have ended when a query returns.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from bucketlog.console.bounded_process import OutputTooLargeError, ProcessOutput, output_of
from bucketlog.console.page_deadline import Deadline
from bucketlog.console.query_answer import QueryAnswer
from bucketlog.console.settings import ConsoleSettings
from bucketlog.log_format.errors import BucketlogError, ConfigurationError

HARMLESS_VARIABLES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
"""Variables that Python itself may need."""
PLAIN_VARIABLES = {
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Fewer arenas and threads need less address space."""
SPARE_S = 5
"""A process ends by itself this long after a query should have ended."""
SPARE_BYTES = 16 * 1024 * 1024
"""Room for the schema and the padding of Arrow, or for the names of columns in an answer."""
PROGRAMS = "bucketlog.console.query_reader", "bucketlog.console.query_program"


class QueryRefusedError(BucketlogError):
    """A query cannot start, because others run."""

    code = "QUERY_REFUSED"
    retriable = True


class QueryFailedError(ConfigurationError):
    """A query has no answer: the SQL is wrong, or a limit ended it."""


class FoundRows(NamedTuple):
    """The answer to a query over the first `records` of a range. If a limit left records of the
    range out, `is_range_cut` is True."""

    answer: QueryAnswer
    records: int
    is_range_cut: bool


class _ReadRecords(NamedTuple):
    """Records as a stream of Arrow."""

    stream: bytes
    records: int
    is_cut: bool


class Queries:
    """Runs queries within the limits of `settings`. `now_s` is a monotonic clock in seconds.
    Several threads may use one instance."""

    def __init__(
        self,
        settings: ConsoleSettings,
        now_s: Callable[[], float],
        *,
        programs: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> None:
        self._settings = settings
        self._now_s = now_s
        self._slots = threading.BoundedSemaphore(settings.sql_in_flight_max)
        start = (sys.executable, "-P", "-m")
        memory = settings.sql_read_memory_bytes_max, settings.sql_memory_bytes_max
        self._reader, self._program = programs or (
            (*start, PROGRAMS[0], str(memory[0])),
            (*start, PROGRAMS[1], str(memory[1])),
        )

    def run(self, topic: str, options: Mapping[str, str], sql: str, page: Deadline) -> FoundRows:
        """The answer to `sql` over the records that `options` of the reader choose. Raises
        `QueryRefusedError`, `QueryFailedError`, and `PageTimeoutError` at the page's deadline."""
        if len(sql) > self._settings.sql_chars_max:
            raise QueryFailedError(
                f"the query has more than {self._settings.sql_chars_max:,} characters",
                remedy="shorten it, or raise BUCKETLOG_CONSOLE_SQL_CHARS_MAX",
            )
        if not self._slots.acquire(blocking=False):
            raise QueryRefusedError("another query is running", remedy="try again after its end")
        until_s = self._now_s() + self._settings.sql_ms_max / 1000

        def check() -> None:
            page.check()
            if self._now_s() >= until_s:
                raise QueryFailedError(
                    f"the query took more than {self._settings.sql_ms_max} ms",
                    remedy="choose a smaller range, make the query simpler, or raise "
                    "BUCKETLOG_CONSOLE_SQL_MS_MAX",
                )

        try:
            found = self._read(topic, options, check)
            return FoundRows(self._answered(sql, found.stream, check), found.records, found.is_cut)
        finally:
            self._slots.release()

    @property
    def _seconds(self) -> int:
        return ceil(self._settings.sql_ms_max / 1000) + SPARE_S

    def _read(
        self, topic: str, options: Mapping[str, str], check: Callable[[], None]
    ) -> _ReadRecords:
        settings = self._settings
        request = {
            "topic": topic,
            "options": dict(options),
            "threads": settings.sql_threads,
            "seconds": self._seconds,
            "stored_bytes_max": settings.sql_stored_bytes_max,
            "records_max": settings.sql_records_max,
            "record_bytes_max": settings.sql_record_bytes_max,
        }
        output = self._output(
            self._reader,
            json.dumps(request).encode(),
            os.environ,
            2 * settings.sql_record_bytes_max + SPARE_BYTES,
            check,
        )
        head, _, stream = output.data.partition(b"\n")
        try:
            found = json.loads(head)
            if "error" in found:
                raise QueryFailedError(
                    f"the records cannot be read: {found['error']}", remedy="choose another range"
                )
            return _ReadRecords(stream, int(found["records"]), bool(found["is_cut"]))
        except (ValueError, KeyError, TypeError) as error:
            raise _ended("reads", output, "SQL_READ_MEMORY_BYTES_MAX") from error

    def _answered(self, sql: str, stream: bytes, check: Callable[[], None]) -> QueryAnswer:
        settings = self._settings
        request = {
            "sql": sql,
            "seconds": self._seconds,
            "threads": settings.sql_threads,
            "engine_bytes_max": settings.sql_engine_bytes_max,
            "rows_max": settings.sql_rows_max,
            "columns_max": settings.sql_columns_max,
            "cell_chars_max": settings.sql_cell_chars_max,
            "answer_bytes_max": settings.sql_answer_bytes_max,
        }
        output = self._output(
            self._program,
            json.dumps(request).encode() + b"\n" + stream,
            query_environment(os.environ),
            settings.sql_answer_bytes_max + SPARE_BYTES,
            check,
        )
        try:
            return QueryAnswer.model_validate_json(output.data)
        except ValueError:
            pass
        try:
            text = str(json.loads(output.data)["error"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _ended("runs the SQL", output, "SQL_MEMORY_BYTES_MAX") from error
        raise QueryFailedError(text, remedy="change the query")

    def _output(
        self,
        command: Sequence[str],
        given: bytes,
        environment: Mapping[str, str],
        bytes_max: int,
        check: Callable[[], None],
    ) -> ProcessOutput:
        try:
            return output_of(
                command, given, environment=environment, bytes_max=bytes_max, check=check
            )
        except OutputTooLargeError as error:
            raise QueryFailedError(str(error), remedy="choose a smaller range") from error


def query_environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of the process that runs SQL. It has no credentials and no home."""
    kept = {name: given[name] for name in HARMLESS_VARIABLES if name in given}
    return {**kept, **PLAIN_VARIABLES}


def _ended(what: str, output: ProcessOutput, setting: str) -> QueryFailedError:
    return QueryFailedError(
        f"the process that {what} ended with exit status {output.status}",
        remedy=f"choose a smaller range, make the query simpler, or raise "
        f"BUCKETLOG_CONSOLE_{setting}",
    )
