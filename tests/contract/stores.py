"""The stores that the bucket's contract is held against, and what may be asked of each."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bucketlog.tiered_storage.bucket import Bucket

TEST_BUCKET = "bucketlog-contract"
VERSIONED_BUCKET = "bucketlog-versioned"
ENCRYPTED_BUCKET = "bucketlog-encrypted"
KMS_BUCKET = "bucketlog-kms"


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
    bucket: str = TEST_BUCKET

    def __str__(self) -> str:
        return self.name


def _s3_kinds(server: str, *, real: bool) -> list[Kind]:
    page_keys = 1_000 if real else 100
    return [
        Kind(f"{server}-aiobotocore", server, False, real, real, page_keys),
        Kind(f"{server}-boto3", server, True, real, real, page_keys),
    ]


def _minio_with(bucket: str, what: str) -> Kind:
    return Kind(f"minio-{what}", "minio", False, True, True, 1_000, bucket)


FILE = Kind("file", "", True, True, False, 1_000)
MEMORY = Kind("memory", "", True, True, True, 1_000)
S3_KINDS = [
    *_s3_kinds("moto", real=False),
    *_s3_kinds("minio", real=True),
    *_s3_kinds("localstack", real=True),
]
CONFIGURED_KINDS = [
    _minio_with(VERSIONED_BUCKET, "versioned"),
    _minio_with(ENCRYPTED_BUCKET, "sse-s3"),
    _minio_with(KMS_BUCKET, "sse-kms"),
]
"""Buckets with settings that a company may insist on."""
KINDS = [FILE, MEMORY, *S3_KINDS, *CONFIGURED_KINDS]
ATOMIC_KINDS = [kind for kind in KINDS if kind.atomic]
"""For races. Not moto: it looks for the key, then writes (4 of 400 races had two winners)."""


@dataclass(frozen=True)
class Store:
    """`open` gives a new bucket object at a location of the test's own, the same one each time."""

    kind: Kind
    open: Callable[[], Awaitable[Bucket]]
