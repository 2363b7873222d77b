"""The buckets with settings are what they claim to be, or the contract on them shows nothing."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from bucketlog.tiered_storage.backends.location import S3Options, open_sync_bucket
from localstack.servers import KMS_KEY, RunningStore
from tests.contract.stores import ENCRYPTED_BUCKET, KMS_BUCKET, VERSIONED_BUCKET

CREATE_ONLY = "a create-only PUT makes no second version"


@pytest.fixture
def stored(minio: RunningStore, s3_endpoint: Callable[[str], str]) -> Callable[[str], str]:
    """Creates an object twice in a bucket of MinIO's; gives its whole key."""
    endpoint = s3_endpoint("minio")

    def store(name: str) -> str:
        prefix = str(uuid4())
        bucket = open_sync_bucket(f"s3://{name}/{prefix}", s3=S3Options(endpoint_url=endpoint))
        assert bucket.create("k", [b"first"])
        assert not bucket.create("k", [b"second"])
        bucket.close()
        return f"{prefix}/0/k"

    return store


def test_versions(minio: RunningStore, stored: Callable[[str], str]) -> None:
    key = stored(VERSIONED_BUCKET)
    with minio.client() as client:
        versions = client.list_object_versions(Bucket=VERSIONED_BUCKET, Prefix=key)["Versions"]
        assert len(versions) == 1, CREATE_ONLY
        assert versions[0].get("VersionId") not in (None, "null")


@pytest.mark.parametrize(
    ("bucket", "algorithm"), [(ENCRYPTED_BUCKET, "AES256"), (KMS_BUCKET, "aws:kms")]
)
def test_encryption(
    minio: RunningStore, stored: Callable[[str], str], bucket: str, algorithm: str
) -> None:
    key = stored(bucket)
    with minio.client() as client:
        answer = client.head_object(Bucket=bucket, Key=key)
    assert answer["ServerSideEncryption"] == algorithm
    if algorithm == "aws:kms":
        assert answer["SSEKMSKeyId"].endswith(KMS_KEY)
