"""The stores that the bucket's contract is held against, and what may be asked of each.

Another S3 store slots in by an environment variable with its endpoint (`S3_STORES`), credentials
by the AWS_* variables; it then runs every case with both S3 backends.
"""

import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tiered_storage.bucket import Bucket

S3_STORES = {
    "minio": "BUCKETLOG_TEST_MINIO_ENDPOINT",
    "localstack": "BUCKETLOG_TEST_LOCALSTACK_ENDPOINT",
}
"""Real stores, atomic by promise; started outside of the tests."""

TEST_BUCKET = "bucketlog-contract"


@dataclass(frozen=True)
class Kind:
    """`sync`: through the synchronous backend, in `ThreadedBucket`. `page_keys` is asked for at
    once: moto takes so long for a thousand creates that it is spared."""

    name: str
    server: str
    sync: bool
    atomic: bool
    verifies_crc: bool
    page_keys: int

    def __str__(self) -> str:
        return self.name


def _s3_kinds(server: str, *, real: bool) -> list[Kind]:
    page_keys = 1_000 if real else 100
    return [
        Kind(f"{server}-aiobotocore", server, False, real, real, page_keys),
        Kind(f"{server}-boto3", server, True, real, real, page_keys),
    ]


FILE = Kind("file", "", True, True, False, 1_000)
MEMORY = Kind("memory", "", True, True, True, 1_000)
S3_KINDS = [
    *_s3_kinds("moto", real=False),
    *(
        kind
        for server, variable in S3_STORES.items()
        if os.environ.get(variable)
        for kind in _s3_kinds(server, real=True)
    ),
]
KINDS = [FILE, MEMORY, *S3_KINDS]
ATOMIC_KINDS = [kind for kind in KINDS if kind.atomic]
"""For races. Not moto: it looks for the key, then writes (4 of 400 races had two winners)."""


@dataclass(frozen=True)
class Store:
    """`open` gives a new bucket object at a location of the test's own, the same one each time."""

    kind: Kind
    open: Callable[[], Awaitable[Bucket]]


@contextmanager
def moto_server(*, checks_credentials: bool = False) -> Iterator[str]:
    """moto's S3 as a process of its own; gives its endpoint."""
    environment = dict(os.environ)
    if checks_credentials:
        environment["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        try:
            assert server.stderr is not None
            for line in server.stderr:
                if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                    break
            else:
                raise RuntimeError("moto's server ended before it listened")
            # its request log is not read: let it go nowhere rather than fill the pipe
            drain = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
            try:
                yield address.group()
            finally:
                server.terminate()
                drain.wait()
        finally:
            server.kill()
