"""A stand-in for a schema registry, which gives set answers, also hostile ones."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple


class RegistryAnswer(NamedTuple):
    """`is_endless`: the body is repeated until the client disconnects. `is_silent`: no answer comes
    until the stand-in ends. `encoding`: the value of the header content-encoding."""

    status: int = 200
    body: bytes = b""
    is_endless: bool = False
    is_silent: bool = False
    encoding: str | None = None


NOT_FOUND = RegistryAnswer(
    404, json.dumps({"error_code": 40403, "message": "Schema not found"}).encode()
)


def json_answer(value: object, status: int = 200) -> RegistryAnswer:
    return RegistryAnswer(status, json.dumps(value).encode())


def schema_answer(text: str, kind: str = "AVRO", **more: Any) -> RegistryAnswer:
    return RegistryAnswer(200, json.dumps({"schema": text, "schemaType": kind, **more}).encode())


_STRING = schema_answer('"string"', subject="s", version=1, id=7)
ONE_SUBJECT = {
    "/subjects": json_answer(["s"]),
    "/subjects/s/versions": json_answer([1]),
    "/subjects/s/versions/1": _STRING,
    "/subjects/s/versions/latest": _STRING,
}
"""Answers of a registry with the subject s."""


@contextmanager
def served_registry(
    answers: Mapping[str, RegistryAnswer],
    *,
    otherwise: RegistryAnswer = NOT_FOUND,
    asked: list[str] | None = None,
) -> Iterator[str]:
    """Yield the registry's address, without a slash at the end. The keys of `answers` are paths
    without a query. For methods other than GET, the method precedes the path, as in
    "DELETE /subjects/s". `asked` gets these keys of all requests."""
    ended = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(self.path.partition("?")[0])

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self._answer(f"{self.command} {self.path.partition('?')[0]}")

        def do_PUT(self) -> None:
            self.do_POST()

        def do_DELETE(self) -> None:
            self.do_POST()

        def _answer(self, name: str) -> None:
            if asked is not None:
                asked.append(name)
            answer = answers.get(name, otherwise)
            if answer.is_silent:
                ended.wait()
                return
            self.send_response(answer.status)
            self.send_header("content-type", "application/json")
            if answer.encoding is not None:
                self.send_header("content-encoding", answer.encoding)
            if not answer.is_endless:
                self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(answer.body)
                while answer.is_endless and not ended.is_set():
                    self.wfile.write(answer.body)

        def log_message(self, *args: Any) -> None:
            """Requests are not logged."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            ended.set()
            server.shutdown()
            thread.join()
