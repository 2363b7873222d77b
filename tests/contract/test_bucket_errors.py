"""What the two S3 backends make of errors: a server's own where it gives them, else a table."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from bucketlog.log_format.errors import (
    BucketRefusedError,
    BucketUnavailableError,
    ConfigurationError,
    ObjectNotFoundError,
)
from bucketlog.tiered_storage.backends.location import S3Options, open_bucket, open_sync_bucket
from bucketlog.tiered_storage.backends.s3_requests import S3Requests, body, size_past_end
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Body, Bucket, Span, Suffix
from tests.contract.stores import S3_KINDS, TEST_BUCKET, Kind
from tests.servers.s3_stores import moto_server

SILENCE_MS = 100


async def open_kind(kind: Kind, url: str, options: S3Options) -> Bucket:
    if kind.sync:
        return ThreadedBucket(open_sync_bucket(url, s3=options))
    return await open_bucket(url, s3=options)


async def calls(bucket: Bucket) -> AsyncIterator[tuple[str, BaseException | None]]:
    """Every verb's name and what it raised."""

    async def first_listed() -> None:
        async for _ in bucket.list(""):
            return

    for name, call in (
        ("create", bucket.create("k", [b"x"])),
        ("get", bucket.get("k")),
        ("list", first_listed()),
        ("delete", bucket.delete(["k"])),
        ("head", bucket.head("k")),
    ):
        (result,) = await asyncio.gather(call, return_exceptions=True)
        yield name, result if isinstance(result, BaseException) else None


@pytest.mark.parametrize("kind", S3_KINDS, ids=str)
async def test_no_such_bucket(kind: Kind, s3_options: S3Options) -> None:
    bucket = await open_kind(kind, "s3://no-such-bucket-here/log", s3_options)
    async for verb, error in calls(bucket):
        if verb == "head":
            assert error is None, "a HEAD cannot tell a missing bucket from a missing object"
            continue
        assert isinstance(error, BucketRefusedError), verb
        assert "no-such-bucket-here" in error.message
        assert "create the bucket" in error.remedy
    await bucket.close()


@pytest.fixture(scope="module")
def strict_moto(credentials: None) -> Iterator[str]:
    with moto_server(checks_credentials=True) as endpoint:
        yield endpoint


CHECKING_KINDS = [kind for kind in S3_KINDS if kind.server != "localstack"]
"""LocalStack takes everybody."""


@pytest.mark.parametrize("kind", CHECKING_KINDS, ids=str)
async def test_wrong_credentials(
    kind: Kind, s3_options: S3Options, strict_moto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    if kind.server == "moto":
        s3_options = S3Options(endpoint_url=strict_moto)
    bucket = await open_kind(kind, f"s3://{TEST_BUCKET}/log", s3_options)
    async for verb, error in calls(bucket):
        assert isinstance(error, BucketRefusedError), verb
        assert "AWS_ACCESS_KEY_ID" in error.remedy
    await bucket.close()


@pytest.fixture
def silent_endpoint() -> Iterator[str]:
    """Takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed_endpoint() -> Iterator[str]:
    """Taken, so that nobody else listens there, and refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("kind", S3_KINDS[:2], ids=str)
async def test_nobody_listens(kind: Kind, credentials: None, closed_endpoint: str) -> None:
    options = S3Options(endpoint_url=closed_endpoint)
    bucket = await open_kind(kind, "s3://bucket/log", options)
    async for verb, error in calls(bucket):
        assert isinstance(error, BucketUnavailableError), verb
        assert error.remedy
    await bucket.close()


@pytest.mark.parametrize("kind", S3_KINDS[:2], ids=str)
async def test_a_silent_store(kind: Kind, credentials: None, silent_endpoint: str) -> None:
    options = S3Options(endpoint_url=silent_endpoint, request_timeout_ms=SILENCE_MS)
    bucket = await open_kind(kind, "s3://bucket/log", options)
    async for verb, error in calls(bucket):
        assert isinstance(error, BucketUnavailableError), verb
    await bucket.close()


@pytest.mark.parametrize("kind", S3_KINDS[:2], ids=str)
async def test_no_endpoint(kind: Kind, credentials: None) -> None:
    with pytest.raises(ConfigurationError, match="check endpoint"):
        await open_kind(kind, "s3://bucket/log", S3Options(endpoint_url="no url"))


def answer(status: int, code: str, headers: dict[str, str] | None = None) -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": "told"},
            "ResponseMetadata": {
                "RequestId": "1",
                "HostId": "1",
                "HTTPStatusCode": status,
                "HTTPHeaders": headers or {},
                "RetryAttempts": 0,
            },
        },
        "PutObject",
    )


UNAVAILABLE = [
    answer(500, "InternalError"),
    answer(503, "SlowDown"),
    answer(503, "ServiceUnavailable"),
    answer(502, "502"),
    answer(429, "TooManyRequests"),
    answer(400, "RequestTimeout"),
    answer(400, "BadDigest"),
    answer(409, "ConditionalRequestConflict"),
    answer(409, "OperationAborted"),
    EndpointConnectionError(endpoint_url="http://s3"),
    TimeoutError(),
    ConnectionResetError(),
]
REFUSED = [
    (answer(403, "AccessDenied"), "AWS_ACCESS_KEY_ID"),
    (answer(403, "403"), "AWS_ACCESS_KEY_ID"),
    (answer(403, "InvalidAccessKeyId"), "AWS_ACCESS_KEY_ID"),
    (answer(403, "RequestTimeTooSkewed"), "clock"),
    (answer(400, "ExpiredToken"), "renew"),
    (answer(404, "NoSuchBucket"), "create the bucket"),
    (answer(301, "PermanentRedirect"), "AWS_REGION"),
    (answer(501, "NotImplemented"), "If-None-Match"),
    (answer(400, "AuthorizationHeaderMalformed"), "AWS_REGION"),
    (NoCredentialsError(), "AWS_ACCESS_KEY_ID"),
]
REQUESTS = S3Requests("flights", "log/0/", S3Options())


@pytest.mark.parametrize("cause", UNAVAILABLE, ids=str)
def test_what_may_pass(cause: Exception) -> None:
    error = REQUESTS.error("create", "k", cause)
    assert isinstance(error, BucketUnavailableError)
    assert "cannot create 'k' in the bucket 'flights'" in error.message


@pytest.mark.parametrize(("cause", "remedy"), REFUSED, ids=str)
def test_what_will_not_pass(cause: Exception, remedy: str) -> None:
    error = REQUESTS.error("create", "k", cause)
    assert isinstance(error, BucketRefusedError)
    assert "cannot create 'k' in the bucket 'flights'" in error.message
    assert remedy in error.remedy


def test_a_missing_object_is_not_a_missing_bucket() -> None:
    assert isinstance(REQUESTS.error("get", "k", answer(404, "NoSuchKey")), ObjectNotFoundError)
    assert isinstance(REQUESTS.error("get", "k", answer(404, "NoSuchBucket")), BucketRefusedError)


def test_what_could_not_be_deleted_is_told() -> None:
    REQUESTS.check_deleted({"Deleted": [{"Key": "log/0/k"}]})
    for code, kind in (
        ("AccessDenied", BucketRefusedError),
        ("InternalError", BucketUnavailableError),
    ):
        with pytest.raises(kind, match="log/0/k"):
            REQUESTS.check_deleted({"Errors": [{"Key": "log/0/k", "Code": code}]})


def test_a_store_that_ignores_ranges() -> None:
    whole = {"ContentLength": 10}
    assert body(whole, b"0123456789", Suffix(3)) == Body(b"789", 7, 10)
    assert body(whole, b"0123456789", Span(2, 3)) == Body(b"234", 2, 10)
    ranged = {"ContentRange": "bytes 2-4/10"}
    assert body(ranged, b"234", Span(2, 3)) == Body(b"234", 2, 10)


def test_size_of_an_object_that_a_range_is_past() -> None:
    assert size_past_end(answer(416, "InvalidRange", {"content-range": "bytes */10"})) == 10
    assert size_past_end(answer(416, "InvalidRange")) is None


def test_a_page_of_a_store_that_ignores_start_after() -> None:
    class Stamp:
        def timestamp(self) -> float:
            return 17.5

    page = {
        "Contents": [
            {"Key": f"log/0/{name}", "Size": 1, "LastModified": Stamp()} for name in "abc"
        ],
        "IsTruncated": True,
        "NextContinuationToken": "next",
    }
    infos, token = REQUESTS.page(page, "a")
    assert [(info.key, info.modified_ms) for info in infos] == [("b", 17_000), ("c", 17_000)]
    assert token == "next"
    assert REQUESTS.page(page | {"IsTruncated": False}, "")[1] is None
