"""A stand-in for a schema registry, which gives set answers, also hostile ones."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, NamedTuple


class RegistryAnswer(NamedTuple):
    """`is_endless`: the body is repeated until the client ends; `is_silent`: no answer comes until
    the stand-in ends."""

    status: int = 200
    body: bytes = b""
    is_endless: bool = False
    is_silent: bool = False


NOT_FOUND = RegistryAnswer(
    404, json.dumps({"error_code": 40403, "message": "Schema not found"}).encode()
)


def schema_answer(text: str, kind: str = "AVRO", **more: Any) -> RegistryAnswer:
    return RegistryAnswer(200, json.dumps({"schema": text, "schemaType": kind, **more}).encode())


@contextmanager
def served_registry(
    answers: Mapping[str, RegistryAnswer],
    *,
    otherwise: RegistryAnswer = NOT_FOUND,
    asked: list[str] | None = None,
) -> Iterator[str]:
    """Its address, without a slash at the end. `answers` are by path, without the query; `asked`
    gets the paths of requests."""
    ended = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if asked is not None:
                asked.append(path)
            answer = answers.get(path, otherwise)
            if answer.is_silent:
                ended.wait()
                return
            self.send_response(answer.status)
            self.send_header("content-type", "application/json")
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
