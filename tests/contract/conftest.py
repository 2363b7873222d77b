"""Fixtures of the bucket's contract: a store of each kind, and buckets in it."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import uuid4

import boto3
import pytest
from mypy_boto3_s3 import S3Client

from bucketlog.tiered_storage.backends.location import S3Options, open_bucket, open_sync_bucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Bucket
from localstack.servers import KMS_KEY, REGION, RunningStore, StoreName
from tests.contract.stores import (
    ENCRYPTED_BUCKET,
    KINDS,
    KMS_BUCKET,
    TEST_BUCKET,
    VERSIONED_BUCKET,
    Kind,
    Store,
)
from tests.rigs.patience import PATIENCE_S

PATIENCE_MS = int(PATIENCE_S * 1000)
"""Servers share a busy machine with other tests, and these buckets repeat no request."""


@pytest.fixture(scope="session")
def s3_endpoint(
    credentials: None, s3_store: Callable[[StoreName], RunningStore], request: pytest.FixtureRequest
) -> Callable[[str], str]:
    """The endpoint of a server by its name, with the test buckets in it."""
    known: dict[str, str] = {}

    def endpoint(server: str) -> str:
        if server not in known:
            url: str = (
                request.getfixturevalue("moto")
                if server == "moto"
                else s3_store(StoreName(server)).endpoint_url
            )
            client = boto3.session.Session().client("s3", endpoint_url=url, region_name=REGION)
            try:
                client.create_bucket(Bucket=TEST_BUCKET)
                if server == StoreName.MINIO:
                    _make_configured_buckets(client)
            finally:
                client.close()
            known[server] = url
        return known[server]

    return endpoint


def _make_configured_buckets(client: S3Client) -> None:
    for bucket in (VERSIONED_BUCKET, ENCRYPTED_BUCKET, KMS_BUCKET):
        client.create_bucket(Bucket=bucket)
    client.put_bucket_versioning(
        Bucket=VERSIONED_BUCKET, VersioningConfiguration={"Status": "Enabled"}
    )
    client.put_bucket_encryption(
        Bucket=ENCRYPTED_BUCKET,
        ServerSideEncryptionConfiguration={
            "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]
        },
    )
    client.put_bucket_encryption(
        Bucket=KMS_BUCKET,
        ServerSideEncryptionConfiguration={
            "Rules": [
                {
                    "ApplyServerSideEncryptionByDefault": {
                        "SSEAlgorithm": "aws:kms",
                        "KMSMasterKeyID": KMS_KEY,
                    }
                }
            ]
        },
    )


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Every kind; a test that is for some only parametrises `kind` itself."""
    kind: Kind = request.param
    return kind


@pytest.fixture
def s3_options(request: pytest.FixtureRequest, kind: Kind, credentials: None) -> S3Options:
    if not kind.server:
        return S3Options()
    endpoint: Callable[[str], str] = request.getfixturevalue("s3_endpoint")
    return S3Options(
        endpoint_url=endpoint(kind.server),
        region=REGION,
        list_page_keys=kind.page_keys,
        connect_timeout_ms=PATIENCE_MS,
        request_timeout_ms=PATIENCE_MS,
    )


@pytest.fixture
def store(kind: Kind, s3_options: S3Options, tmp_path: Path) -> Store:
    match kind.name:
        case "file":
            url = f"file://{tmp_path}/bucket"
        case "memory":
            url = f"memory://{uuid4()}"
        case _:
            url = f"s3://{kind.bucket}/{uuid4()}"

    async def open_async() -> Bucket:
        return await open_bucket(url, s3=s3_options)

    async def open_threaded() -> Bucket:
        return ThreadedBucket(open_sync_bucket(url, s3=s3_options))

    return Store(kind, open_threaded if kind.sync else open_async)


@pytest.fixture
async def bucket(store: Store) -> AsyncIterator[Bucket]:
    bucket = await store.open()
    yield bucket
    await bucket.close()
