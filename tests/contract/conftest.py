"""Fixtures of the bucket's contract: a store of each kind, and buckets in it."""

import importlib.metadata
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import boto3
import pytest

from tests.components import Components
from tests.contract.stores import KINDS, S3_STORES, TEST_BUCKET, Kind, Store, moto_server
from tiered_storage.backends.threaded import ThreadedBucket
from tiered_storage.bucket import Bucket
from tiered_storage.location import S3Options, open_bucket, open_sync_bucket


@pytest.fixture(scope="session")
def credentials() -> Iterator[None]:
    """So that no test looks for an instance role."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, os.environ.get(name, "testing"))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="session")
def s3_endpoint(credentials: None, components: Components) -> Iterator[Callable[[str], str]]:
    """The endpoint of a server by its name, with the test bucket in it."""
    known: dict[str, str] = {}

    def endpoint(server: str) -> str:
        if server not in known:
            known[server] = os.environ[S3_STORES[server]]
            make_bucket(known[server])
            components.took_part(server, known[server])
        return known[server]

    with moto_server() as moto:
        known["moto"] = moto
        make_bucket(moto)
        components.took_part("moto server", importlib.metadata.version("moto"))
        yield endpoint


def make_bucket(endpoint_url: str) -> None:
    client = boto3.session.Session().client(
        "s3", endpoint_url=endpoint_url, region_name="us-east-1"
    )
    try:
        names = [bucket.get("Name") for bucket in client.list_buckets()["Buckets"]]
        if TEST_BUCKET not in names:
            client.create_bucket(Bucket=TEST_BUCKET)
    finally:
        client.close()


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
        endpoint_url=endpoint(kind.server), region="us-east-1", list_page_keys=kind.page_keys
    )


@pytest.fixture
def store(kind: Kind, s3_options: S3Options, tmp_path: Path) -> Store:
    match kind.name:
        case "file":
            url = f"file://{tmp_path}/bucket"
        case "memory":
            url = f"memory://{uuid4()}"
        case _:
            url = f"s3://{TEST_BUCKET}/{uuid4()}"

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
