"""What both S3 backends say on the wire when they write: what it costs depends on it."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends.location import S3Options, open_bucket, open_sync_bucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.segment import body_crc32c
from tests.contract.stores import S3_KINDS, Kind

HEADERS: list[dict[str, str]] = []
BODY: list[Buffer] = [b"123456789", b"", memoryview(b"abc" * 100_000)]


class Recording(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        HEADERS.append({name.lower(): text for name, text in self.headers.items()})
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    HEADERS.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Recording) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", S3_KINDS[:2], ids=["aiobotocore", "boto3"])
async def test_a_put_on_the_wire(kind: Kind, credentials: None, endpoint: str) -> None:
    """Over plain HTTP, too, the body is neither hashed by the SDK nor cut into signed chunks, nor
    kept back for a "100 Continue"; the store is told the CRC32C that it is to verify."""
    options, url = S3Options(endpoint_url=endpoint), "s3://bucket/log"
    bucket = (
        ThreadedBucket(open_sync_bucket(url, s3=options))
        if kind.sync
        else await open_bucket(url, s3=options)
    )
    assert await bucket.create("k", BODY, crc32c=body_crc32c(BODY))
    await bucket.close()
    (headers,) = HEADERS
    assert headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"
    assert headers["if-none-match"] == "*"
    assert headers["content-length"] == "300009"
    assert headers["x-amz-checksum-crc32c"] == "GkGqkw=="
    assert not {"transfer-encoding", "content-md5", "x-amz-trailer"} & set(headers)
    assert kind.sync or "expect" not in headers
