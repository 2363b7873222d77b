"""Bodies that break off: an error that says so and may pass, tried again by who is patient."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bucketlog.log_format.errors import BucketUnavailableError
from bucketlog.tiered_storage.backends.location import (
    S3Options,
    open_bucket,
    open_patient_bucket,
    open_sync_bucket,
)

BODY = bytes(range(256)) * 64


class Cutting(ThreadingHTTPServer):
    """Sends half of the body of its first `cuts` answers; `chunked`: without saying its length."""

    cuts = 0
    chunked = False


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Cutting)
        cut = server.cuts > 0
        server.cuts -= 1
        self.send_response(200)
        if server.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            half = len(BODY) // 2
            self.wfile.write(b"%x\r\n%s\r\n" % (half, BODY[:half]))
            if not cut:
                self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY) - half, BODY[half:]))
        else:
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY[: len(BODY) // 2] if cut else BODY)
        self.close_connection = cut

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(params=["length", "chunked"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cutting]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with Cutting(("127.0.0.1", 0), Answer) as found:
        found.daemon_threads = True
        found.chunked = request.param == "chunked"
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def options(server: Cutting) -> S3Options:
    return S3Options(endpoint_url=f"http://127.0.0.1:{server.server_port}", region="us-east-1")


def test_it_is_said(server: Cutting) -> None:
    server.cuts = 1
    bucket = open_sync_bucket("s3://logs", s3=options(server))
    with pytest.raises(BucketUnavailableError, match="get"):
        bucket.get("key")
    assert bytes(bucket.get("key").data) == BODY
    bucket.close()


def test_the_patient_try_again(server: Cutting) -> None:
    server.cuts = 3
    bucket = open_patient_bucket("s3://logs", s3=options(server))
    assert bytes(bucket.get("key").data) == BODY
    bucket.close()


async def test_it_is_said_to_who_awaits(server: Cutting) -> None:
    server.cuts = 1
    bucket = await open_bucket("s3://logs", s3=options(server))
    with pytest.raises(BucketUnavailableError, match="get"):
        await bucket.get("key")
    assert bytes((await bucket.get("key")).data) == BODY
    await bucket.close()
