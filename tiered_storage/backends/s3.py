"""S3 and what speaks like it, asynchronously, over aiobotocore.

Invariant: create-only is the store's (`If-None-Match: *`), never a check of ours before a write.
Bodies are sent in the parts they are given in; how that was chosen: `s3_requests.BodyParts`.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from aiohttp import ClientError as TransportError
from botocore.exceptions import BotoCoreError, ClientError
from botocore.handlers import add_expect_header

from bucketlog.log_format.errors import ConfigurationError, ObjectNotFoundError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends import s3_requests
from bucketlog.tiered_storage.backends.in_flight import InFlightBytes
from bucketlog.tiered_storage.backends.s3_options import S3Options
from bucketlog.tiered_storage.backends.s3_requests import BodyParts, S3Requests
from bucketlog.tiered_storage.bucket import Body, ObjectInfo, Span, Suffix

if TYPE_CHECKING:
    from types_aiobotocore_s3 import S3Client

_FAILURES = (*s3_requests.SDK_ERRORS, TransportError)


class S3Bucket:
    """`Bucket` below `prefix` (empty, or ending in '/') of an S3 bucket. Made by `connect`.

    `request_timeout_ms` bounds a silent store; a whole upload counts as silence. One pool of
    `max_connections`, one bound of `in_flight_bytes_max`: an answer's body is read when its turn
    comes, and until then stays with the store.
    """

    def __init__(
        self,
        client: "S3Client",
        closing: AsyncExitStack,
        requests: S3Requests,
        options: S3Options,
    ) -> None:
        self._client = client
        self._closing = closing
        self._requests = requests
        self._in_flight = InFlightBytes(options.in_flight_bytes_max)

    @classmethod
    async def connect(cls, bucket: str, prefix: str, options: S3Options) -> Self:
        """Make the client; no request is sent."""
        requests = S3Requests(bucket, prefix, options)
        closing = AsyncExitStack()
        try:
            client = await closing.enter_async_context(
                get_session().create_client(
                    "s3",
                    config=AioConfig(**s3_requests.config_arguments(options)),
                    **s3_requests.client_arguments(options),
                )
            )
        except (BotoCoreError, ValueError) as error:
            raise ConfigurationError(
                f"cannot open the bucket {bucket!r}: {error}", remedy="check endpoint and region"
            ) from error
        # A body that is no plain bytes would wait a round trip for "100 Continue".
        client.meta.events.unregister("before-call.s3", add_expect_header)
        return cls(client, closing, requests, options)

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        content = BodyParts(parts)
        request = self._requests.put(key, content if len(content) else b"", crc32c)
        try:
            async with self._in_flight.taken(len(content)):
                await self._client.put_object(**request)
        except _FAILURES as error:
            if isinstance(error, ClientError) and s3_requests.is_taken(error):
                return False
            raise self._requests.error("create", key, error) from error
        return True

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        try:
            answer = await self._client.get_object(**self._requests.get(key, span))
            length = answer.get("ContentLength", 0)  # a chunked answer does not say it
            async with answer["Body"] as stream, self._in_flight.taken(length):
                return s3_requests.body(answer, await stream.read(), span)
        except _FAILURES as error:
            if isinstance(error, ClientError) and s3_requests.is_past_end(error):
                return await self._past_end(key, error)
            raise self._requests.error("get", key, error) from error

    async def _past_end(self, key: str, error: ClientError) -> Body:
        size = s3_requests.size_past_end(error)
        if size is None:
            info = await self.head(key)
            if info is None:
                raise ObjectNotFoundError(key)
            size = info.size_bytes
        return Body(b"", size, size)

    async def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        token: str | None = None
        while True:
            request = self._requests.list_page(prefix, start_after, token)
            try:
                answer = await self._client.list_objects_v2(**request)
            except _FAILURES as error:
                raise self._requests.error("list", prefix, error) from error
            infos, token = self._requests.page(answer, start_after)
            for info in infos:
                yield info
            if token is None:
                return

    async def delete(self, keys: Sequence[str]) -> None:
        for request in self._requests.delete(keys):
            try:
                answer = await self._client.delete_objects(**request)
            except _FAILURES as error:
                raise self._requests.error("delete", keys[0], error) from error
            self._requests.check_deleted(answer)

    async def head(self, key: str) -> ObjectInfo | None:
        try:
            answer = await self._client.head_object(**self._requests.head(key))
        except _FAILURES as error:
            if isinstance(error, ClientError) and s3_requests.is_missing(error):
                return None
            raise self._requests.error("head", key, error) from error
        return s3_requests.object_info(key, answer)

    async def close(self) -> None:
        await self._closing.aclose()
