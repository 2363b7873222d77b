"""Requests of both S3 backends, and the reading of S3's answers. Pure.

Requests are keyword arguments of botocore's operations; answers and errors are botocore's. Both
SDKs are tuned alike: bodies are neither signed nor checksummed by the SDK (5.8 CPU s/GB against
about 0.5 without). The caller's CRC32C goes with the request, and the store verifies it. The SDK
retries nothing: `tiered_storage.retry_steps` does, and knows what an ambiguous create means.
"""

import base64
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ResponseStreamingError,
)
from botocore.exceptions import ConnectionError as SdkConnectionError
from botocore.parsers import ResponseParserError

from bucketlog.log_format.errors import (
    BucketError,
    BucketRefusedError,
    BucketUnavailableError,
    ObjectNotFoundError,
)
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends.s3_options import S3Options
from bucketlog.tiered_storage.bucket import (
    Body,
    ObjectInfo,
    Span,
    Suffix,
    check_key,
    check_prefix,
    clip,
)

MAX_KEYS_PER_DELETE = 1_000
DEFAULT_REGION = "us-east-1"
"""The region of stores with their own endpoint, which seldom care."""

_PASSING = (
    SdkConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ResponseParserError,
    ResponseStreamingError,
)
"""Errors of the SDKs that trying again may cure."""

SDK_ERRORS = (ClientError, BotoCoreError, ResponseParserError, OSError)
"""All errors that a call of an SDK raises, timeouts included."""

_PASSING_CODES = {
    "BadDigest",
    "ConditionalRequestConflict",
    "IncompleteBody",
    "InternalError",
    "OperationAborted",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "TooManyRequests",
    "XAmzContentChecksumMismatch",
}
_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)
_GIVE_CREDENTIALS = (
    "give credentials that may read, write, list and delete there (AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, a profile, or a role)"
)
_REMEDIES = {
    "AccessDenied": _GIVE_CREDENTIALS,
    "AllAccessDisabled": _GIVE_CREDENTIALS,
    "AuthorizationHeaderMalformed": "set the bucket's region (AWS_REGION)",
    "ExpiredToken": "renew the credentials",
    "Forbidden": _GIVE_CREDENTIALS,
    "IllegalLocationConstraintException": "set the bucket's region (AWS_REGION)",
    "InvalidAccessKeyId": _GIVE_CREDENTIALS,
    "InvalidBucketName": "correct the bucket's name",
    "NoSuchBucket": "create the bucket, or correct its name",
    "NotImplemented": "use a store that knows create-only PUT (If-None-Match: *)",
    "PermanentRedirect": "set the bucket's region (AWS_REGION)",
    "RequestTimeTooSkewed": "set this machine's clock",
    "SignatureDoesNotMatch": _GIVE_CREDENTIALS,
}
_BY_STATUS = {
    301: _REMEDIES["PermanentRedirect"],
    403: _GIVE_CREDENTIALS,
    404: _REMEDIES["NoSuchBucket"],
    501: _REMEDIES["NotImplemented"],
}
_RANGE_SIZE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")


def client_arguments(options: S3Options) -> dict[str, Any]:
    """Arguments of either SDK's `create_client`, without its `config`."""
    arguments: dict[str, Any] = {}
    if options.endpoint_url is not None:
        arguments["endpoint_url"] = options.endpoint_url
    if options.region is not None:
        arguments["region_name"] = options.region
    elif options.endpoint_url is not None:
        arguments["region_name"] = DEFAULT_REGION
    return arguments


def config_arguments(options: S3Options) -> dict[str, Any]:
    """Arguments of either SDK's `Config`."""
    return {
        "s3": {
            "payload_signing_enabled": False,
            "addressing_style": "path" if options.uses_path_style else "auto",
        },
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "max_pool_connections": options.max_connections,
        "connect_timeout": options.connect_timeout_ms / 1_000,
        "read_timeout": options.request_timeout_ms / 1_000,
        "retries": {"total_max_attempts": 1},
        "tcp_keepalive": True,
    }


class BodyParts:
    """A body in parts, as aiobotocore takes one: an asynchronous iterable that has a length.

    Sending the parts as they are costs 0.4 CPU s/GB (1 MB each), `b"".join` first 1.2; parts
    below `_JOIN_BELOW` are joined to about `_JOINED`, since each write to a socket has its price.
    """

    _JOIN_BELOW = 64 * 1024
    _JOINED = 256 * 1024

    def __init__(self, parts: Sequence[Buffer]) -> None:
        self._parts = parts
        self._length = sum(map(len, parts))

    def __len__(self) -> int:
        return self._length

    def tell(self) -> int:
        return 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """A redirected request is sent again: iteration starts at the beginning anyway."""
        return 0

    def read(self, size: int = -1) -> bytes:
        """Return the whole body. SDKs look for this method, as botocore's validation does."""
        return b"".join(self._parts)

    def __aiter__(self) -> AsyncIterator[Buffer]:
        return _Chunks(self.chunks())

    def chunks(self) -> Iterator[Buffer]:
        small: list[Buffer] = []
        size = 0
        for part in self._parts:
            if len(part) < self._JOIN_BELOW:
                small.append(part)
                size += len(part)
                if size < self._JOINED:
                    continue
            if small:
                yield b"".join(small)
                small, size = [], 0
            if len(part) >= self._JOIN_BELOW:
                yield part
        if small:
            yield b"".join(small)


class _Chunks(AsyncIterator[Buffer]):
    def __init__(self, chunks: Iterator[Buffer]) -> None:
        self._chunks = chunks

    async def __anext__(self) -> Buffer:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration


class S3Requests:
    """Makes requests for the objects below `prefix` (empty, or ending in '/') of `bucket`."""

    def __init__(self, bucket: str, prefix: str, options: S3Options) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self._options = options

    def put(self, key: str, body: object, crc32c: int | None) -> dict[str, Any]:
        request = {**self.head(key), "Body": body, "IfNoneMatch": "*"}
        if crc32c is not None:
            request["ChecksumCRC32C"] = base64.b64encode(crc32c.to_bytes(4, "big")).decode()
        return request

    def get(self, key: str, span: Span | Suffix | None) -> dict[str, Any]:
        request = self.head(key)
        match span:
            case Span():
                request["Range"] = f"bytes={span.start}-{span.start + span.length - 1}"
            case Suffix():
                request["Range"] = f"bytes=-{span.length}"
            case None:
                pass
        return request

    def head(self, key: str) -> dict[str, Any]:
        check_key(key)
        return {"Bucket": self.bucket, "Key": self.prefix + key}

    def list_page(self, prefix: str, start_after: str, token: str | None) -> dict[str, Any]:
        check_prefix(prefix)
        request = {
            "Bucket": self.bucket,
            "Prefix": self.prefix + prefix,
            "MaxKeys": self._options.list_page_keys,
        }
        if start_after:
            request["StartAfter"] = self.prefix + start_after
        if token is not None:
            request["ContinuationToken"] = token
        return request

    def delete(self, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
        for key in keys:
            check_key(key)
        for at in range(0, len(keys), MAX_KEYS_PER_DELETE):
            objects = [{"Key": self.prefix + key} for key in keys[at : at + MAX_KEYS_PER_DELETE]]
            yield {"Bucket": self.bucket, "Delete": {"Objects": objects, "Quiet": True}}

    def page(
        self, answer: Mapping[str, Any], start_after: str
    ) -> tuple[list[ObjectInfo], str | None]:
        """A page's objects and the next page's token. Stores that ignore StartAfter are served."""
        infos = [
            ObjectInfo(
                listed["Key"][len(self.prefix) :],
                listed["Size"],
                _modified_ms(listed),
            )
            for listed in answer.get("Contents", ())
        ]
        if start_after:
            infos = [info for info in infos if info.key > start_after]
        return infos, answer.get("NextContinuationToken") if answer.get("IsTruncated") else None

    def error(self, verb: str, key: str, cause: Exception) -> BucketError:
        """Return the bucket's error for an SDK's error, for the caller of `verb`."""
        what = f"cannot {verb} {key!r} in the bucket {self.bucket!r}"
        if isinstance(cause, ClientError):
            code, status = _code(cause), _status(cause)
            if verb == "get" and status == 404 and code != "NoSuchBucket":
                return ObjectNotFoundError(key)
            return _answered(code, status, f"{what}: {_text(cause)}")
        if isinstance(cause, _PASSING) or not isinstance(cause, BotoCoreError):
            remedy = "it is tried again; check that the store is up and reachable"
            return BucketUnavailableError(f"{what}: {cause!r}", remedy=remedy)
        remedy = (
            _GIVE_CREDENTIALS if isinstance(cause, _NO_CREDENTIALS) else "check the S3 settings"
        )
        return BucketRefusedError(f"{what}: {cause}", remedy=remedy)

    def check_deleted(self, answer: Mapping[str, Any]) -> None:
        """Check the answer of DeleteObjects, which is 200 and lists the objects that could not be
        deleted."""
        for failed in answer.get("Errors", ()):
            code = failed.get("Code", "")
            raise _answered(
                code, 403, f"cannot delete {failed.get('Key', '')!r} in {self.bucket!r}: {code}"
            )


def _answered(code: str, status: int, message: str) -> BucketError:
    """Return the bucket's error for a refusal by the store. `message` is for people."""
    passing = status == 429 or (status >= 500 and status != 501)
    if code in _PASSING_CODES or (passing and code not in _REMEDIES):
        return BucketUnavailableError(message, remedy="it is tried again; the store is busy")
    return BucketRefusedError(message, remedy=_REMEDIES.get(code) or _BY_STATUS.get(status, ""))


def _text(error: ClientError) -> str:
    message = error.response.get("Error", {}).get("Message", "")
    return f"{_status(error)} {_code(error)} {message}".strip()


def _code(error: ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "")


def _status(error: ClientError) -> int:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def is_taken(error: ClientError) -> bool:
    """Return whether a create-only PUT was refused because an object is there."""
    return _status(error) == 412 or _code(error) == "PreconditionFailed"


def is_missing(error: ClientError) -> bool:
    """Return whether HEAD found no object. The answer has no body, so a missing bucket looks the
    same."""
    return _status(error) == 404


def is_past_end(error: ClientError) -> bool:
    return _status(error) == 416 or _code(error) == "InvalidRange"


def size_past_end(error: ClientError) -> int | None:
    """The object's size, as a 416 tells it; None if it does not."""
    headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    told = _RANGE_SIZE.fullmatch(headers.get("content-range", ""))
    return int(told[2]) if told else None


def object_info(key: str, answer: Mapping[str, Any]) -> ObjectInfo:
    return ObjectInfo(key, answer["ContentLength"], _modified_ms(answer))


def _modified_ms(answer: Mapping[str, Any]) -> int:
    """Return the time of the last change, rounded down to whole seconds. HEAD and some stores'
    listings are no more precise."""
    return int(answer["LastModified"].timestamp()) * 1_000


def body(answer: Mapping[str, Any], data: bytes, span: Span | Suffix | None) -> Body:
    """Return the requested bytes, also if the store ignored the range and sent the whole object."""
    told = _RANGE_SIZE.fullmatch(answer.get("ContentRange", ""))
    if told and told[1] is not None:
        return Body(data, int(told[1]), int(told[2]))
    start, length = clip(span, len(data))
    return Body(data if length == len(data) else data[start : start + length], start, len(data))
