"""A process of `schema_program`: requests to it end in time, whatever it does.

Invariants: a request that is not answered in its time, or whose answer is too large, ends the
process, and the next request starts another one. One request is under way at a time.
"""

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bucketlog.console.schema_program import READY
from bucketlog.log_format.errors import BucketlogError

PIECE_BYTES = 65_536


class SchemaProcessError(BucketlogError):
    """A request to the process has no answer."""

    code = "SCHEMA_PROCESS"
    retriable = True


class SchemaProcessBusyError(SchemaProcessError):
    """The process is starting, or has another request."""

    code = "SCHEMA_PROCESS_BUSY"


class SchemaProcessSlowError(SchemaProcessError):
    """The process did not answer in time."""

    code = "SCHEMA_PROCESS_SLOW"


class SchemaProcess:
    """`command` is started by the first request or `start`, with `environment`. `name` says what it
    does, for messages. Several threads may use it."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        answer_bytes_max: int,
        now_s: Callable[[], float],
    ) -> None:
        self._name = name
        self._command = command
        self._environment = environment
        self._answer_bytes_max = answer_bytes_max
        self._now_s = now_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._is_ready = False

    def start(self) -> None:
        """Start the process, without waiting for it."""
        with self._lock:
            self._running()

    def ask(self, request: Mapping[str, Any], *, seconds: float) -> Mapping[str, Any]:
        """The answer. Raises `SchemaProcessError`."""
        until_s = self._now_s() + seconds
        if not self._lock.acquire(timeout=seconds):
            raise SchemaProcessBusyError(
                f"the process for {self._name} is busy", remedy="load the page again"
            )
        try:
            return self._asked(request, seconds, until_s)
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._end()

    def _asked(
        self, request: Mapping[str, Any], seconds: float, until_s: float
    ) -> Mapping[str, Any]:
        connection = self._running()
        if not self._is_ready:
            try:
                self._line(connection, until_s, len(READY))
            except TimeoutError:
                raise SchemaProcessBusyError(
                    f"the process for {self._name} is still starting", remedy="load the page again"
                ) from None
            self._is_ready = True
        is_answered = False
        try:
            connection.settimeout(self._left(until_s))
            connection.sendall(json.dumps(request).encode() + b"\n")
            found = json.loads(self._line(connection, until_s, self._answer_bytes_max))
            is_answered = True
        except TimeoutError:
            raise SchemaProcessSlowError(
                f"{self._name} took longer than {seconds:g} s",
                remedy="raise BUCKETLOG_CONSOLE_REGISTRY_REQUEST_MS_MAX",
            ) from None
        except (OSError, ValueError) as error:
            raise SchemaProcessError(f"the process for {self._name} has ended") from error
        finally:
            if not is_answered:
                self._end()
        if not isinstance(found, dict):
            raise SchemaProcessError(f"the process for {self._name} gave no answer")
        return found

    def _line(self, connection: socket.socket, until_s: float, bytes_max: int) -> bytes:
        """Raises `TimeoutError` and `SchemaProcessError`."""
        line = bytearray()
        while not line.endswith(b"\n"):
            connection.settimeout(self._left(until_s))
            try:
                piece = connection.recv(PIECE_BYTES)
            except ConnectionError:
                piece = b""
            if not piece:
                self._end()
                raise SchemaProcessError(
                    f"the process for {self._name} has ended",
                    remedy="see BUCKETLOG_CONSOLE_REGISTRY_MEMORY_BYTES_MAX",
                )
            line += piece
            if len(line) > bytes_max:
                self._end()
                raise SchemaProcessError(
                    f"the answer has more than {bytes_max:,} bytes",
                    remedy="raise BUCKETLOG_CONSOLE_REGISTRY_ANSWER_BYTES_MAX",
                )
        return bytes(line)

    def _left(self, until_s: float) -> float:
        """Raises `TimeoutError`."""
        left_s = until_s - self._now_s()
        if left_s <= 0:
            raise TimeoutError
        return left_s

    def _running(self) -> socket.socket:
        if self._socket is not None and self._process is not None and self._process.poll() is None:
            return self._socket
        self._end()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                self._command,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                env=dict(self._environment),
                start_new_session=True,
            )
        self._socket = ours
        return ours

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
        self._process, self._socket, self._is_ready = None, None, False
