"""Metrics pages that `bucketlog cost` and `bucketlog top` read: answers of wrong endpoints."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bucketlog.cost.of_brokers import METRICS_BYTES_MAX, metrics_of
from bucketlog.log_format.errors import BucketlogError
from tests.rigs.shell import Shell


@contextmanager
def server(answer: bytes) -> Iterator[str]:
    """Answer one request, and send until the client closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            peer, _ = listening.accept()
            with peer:
                peer.recv(4096)
                try:
                    peer.sendall(answer)
                except OSError:
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/metrics"
        thread.join()


HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (HEAD + b"# " + b"x" * METRICS_BYTES_MAX, "more than 16,777,216 bytes"),
        (HEAD + b"bucketlog_ready one\n", "could not convert"),
        (HEAD + b"\xff\xfe\n", "utf-8"),
        (b"SSH-2.0-OpenSSH\r\n", "SSH-2.0"),
        (b"", "closed"),
    ],
)
def test_an_answer_that_is_not_a_page_of_metrics(answer: bytes, reason: str) -> None:
    with server(answer) as url, pytest.raises(BucketlogError, match=reason):
        metrics_of(url)


@pytest.mark.parametrize(
    "url", ["b:8080", "file:///etc/passwd", "http://", "http://b:port", "http://b/\n", "http://[b"]
)
def test_an_address_that_is_not_one(url: str) -> None:
    with pytest.raises(BucketlogError, match="--metrics"):
        metrics_of(url)


def test_an_endpoint_of_another_protocol_is_one_line() -> None:
    with server(b"SSH-2.0-OpenSSH\r\n") as url:
        complaint = Shell("127.0.0.1:1").failing(1, "cost", "file:///nowhere", "--metrics", url)
    assert "SSH-2.0" in complaint
    assert "give the address of a running broker's metrics" in complaint
