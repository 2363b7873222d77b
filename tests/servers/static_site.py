"""A folder of files behind HTTP, on a free port of 127.0.0.1."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any, **options: Any) -> None:
        """Requests are not logged."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Its address, which ends with a slash."""
    handler = partial(_QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
