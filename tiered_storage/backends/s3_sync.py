"""S3 and compatible stores, synchronously, by botocore: for Spark executors and the command line.

The same requests, answers and errors as `tiered_storage.backends.s3`; only the waiting differs.
Bodies are joined before they are sent: nobody produces through here.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.loaders import Loader, create_loader
from botocore.session import Session

from bucketlog.log_format.errors import ConfigurationError, ObjectNotFoundError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends import s3_requests
from bucketlog.tiered_storage.backends.s3_options import S3Options
from bucketlog.tiered_storage.backends.s3_requests import S3Requests
from bucketlog.tiered_storage.bucket import Body, ObjectInfo, Span, Suffix

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_FAILURES = s3_requests.SDK_ERRORS


class SyncS3Bucket:
    """`SyncBucket` below `prefix` (empty, or ending in '/') of an S3 bucket. Thread-safe.

    Nothing is sent before the first call.
    """

    def __init__(self, bucket: str, prefix: str, options: S3Options) -> None:
        self._requests = S3Requests(bucket, prefix, options)
        try:
            # a session is not thread-safe; a client is
            session = Session()
            session.register_component("data_loader", _loader())
            made: Any = session.create_client(
                "s3",
                config=Config(**s3_requests.config_arguments(options)),
                **s3_requests.client_arguments(options),
            )
            self._client: S3Client = made
        except (BotoCoreError, ValueError) as error:
            raise ConfigurationError(
                f"cannot open the bucket {bucket!r}: {error}", remedy="check endpoint and region"
            ) from error

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        request = self._requests.put(key, b"".join(parts), crc32c)
        try:
            self._client.put_object(**request)
        except _FAILURES as error:
            if isinstance(error, ClientError) and s3_requests.is_taken(error):
                return False
            raise self._requests.error("create", key, error) from error
        return True

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        try:
            answer = self._client.get_object(**self._requests.get(key, span))
            with closing(answer["Body"]) as stream:  # its own `with` gives the bare stream
                return s3_requests.body(answer, stream.read(), span)
        except _FAILURES as error:
            if isinstance(error, ClientError) and s3_requests.is_past_end(error):
                return self._past_end(key, error)
            raise self._requests.error("get", key, error) from error

    def _past_end(self, key: str, error: ClientError) -> Body:
        size = s3_requests.size_past_end(error)
        if size is None:
            info = self.head(key)
            if info is None:
                raise ObjectNotFoundError(key)
            size = info.size_bytes
        return Body(b"", size, size)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        token: str | None = None
        while True:
            request = self._requests.list_page(prefix, start_after, token)
            try:
                answer = self._client.list_objects_v2(**request)
            except _FAILURES as error:
                raise self._requests.error("list", prefix, error) from error
            infos, token = self._requests.page(answer, start_after)
            yield from infos
            if token is None:
                return

    def delete(self, keys: Sequence[str]) -> None:
        for request in self._requests.delete(keys):
            try:
                answer = self._client.delete_objects(**request)
            except _FAILURES as error:
                raise self._requests.error("delete", keys[0], error) from error
            self._requests.check_deleted(answer)

    def head(self, key: str) -> ObjectInfo | None:
        try:
            answer = self._client.head_object(**self._requests.head(key))
        except _FAILURES as error:
            if isinstance(error, ClientError) and s3_requests.is_missing(error):
                return None
            raise self._requests.error("head", key, error) from error
        return s3_requests.object_info(key, answer)

    def close(self) -> None:
        self._client.close()


@cache
def _loader() -> Loader:
    """Return the loader of the models of AWS's APIs. Clients share the loader, because reading the
    models takes most of the time to make a client."""
    return create_loader()
