"""A bucket that signs and checks checkpoints, floors and manifests: see `state_signature`.

Invariant: with keys, every returned byte of such an object was checked, unless unsigned objects are
accepted. A reader gets the whole object, or gives a span from byte 0 as the limit of its length
without the trailer. Other spans are refused. Sizes in listings include the trailer; the size from
`head` does not.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence

from crc32c import crc32c as crc32c_of

from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.bucket import (
    Body,
    Bucket,
    ObjectInfo,
    Span,
    Suffix,
    SyncBucket,
    clip,
)
from bucketlog.tiered_storage.state_signature import (
    NO_KEYS,
    TRAILER_BYTES,
    StateKeys,
    has_trailer,
    is_signed_kind,
)

logger = logging.getLogger(__name__)

INLINE_BYTES_MAX = 256 * 1024
"""Larger objects are hashed in a thread, so that the event loop does not wait."""


class SignedBucket:
    """A `Bucket` around `inner`, which it owns."""

    def __init__(self, inner: Bucket, state_keys: StateKeys = NO_KEYS) -> None:
        self._inner = inner
        self._keys = state_keys

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        is_long = sum(map(len, parts)) > INLINE_BYTES_MAX
        if is_long and self._keys.secrets and is_signed_kind(key):
            signed, crc32c = await asyncio.to_thread(_signed, self._keys, key, parts, crc32c)
        else:
            signed, crc32c = _signed(self._keys, key, parts, crc32c)
        return await self._inner.create(key, signed, crc32c=crc32c)

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        if not is_signed_kind(key):
            return await self._inner.get(key, span)
        body = await self._inner.get(key, _with_trailer(key, span))
        if self._keys.secrets and len(body.data) > INLINE_BYTES_MAX:
            return await asyncio.to_thread(_opened, self._keys, key, body, span)
        return _opened(self._keys, key, body, span)

    def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        return self._inner.list(prefix, start_after=start_after)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._inner.delete(keys)

    async def head(self, key: str) -> ObjectInfo | None:
        info = await self._inner.head(key)
        if info is None or not is_signed_kind(key):
            return info
        return _own(info, await self._inner.get(key, Suffix(TRAILER_BYTES)))

    async def close(self) -> None:
        await self._inner.close()


class SignedSyncBucket:
    """A `SyncBucket` around `inner`, which it owns. Thread-safe."""

    def __init__(self, inner: SyncBucket, state_keys: StateKeys = NO_KEYS) -> None:
        self._inner = inner
        self._keys = state_keys

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        signed, crc32c = _signed(self._keys, key, parts, crc32c)
        return self._inner.create(key, signed, crc32c=crc32c)

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        if not is_signed_kind(key):
            return self._inner.get(key, span)
        return _opened(self._keys, key, self._inner.get(key, _with_trailer(key, span)), span)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        return self._inner.list(prefix, start_after=start_after)

    def delete(self, keys: Sequence[str]) -> None:
        self._inner.delete(keys)

    def head(self, key: str) -> ObjectInfo | None:
        info = self._inner.head(key)
        if info is None or not is_signed_kind(key):
            return info
        return _own(info, self._inner.get(key, Suffix(TRAILER_BYTES)))

    def close(self) -> None:
        self._inner.close()


def _signed(
    state_keys: StateKeys, key: str, parts: Sequence[Buffer], crc32c: int | None
) -> tuple[Sequence[Buffer], int | None]:
    if not (state_keys.secrets and is_signed_kind(key)):
        return parts, crc32c
    trailer = state_keys.trailer(key, parts)
    return [*parts, trailer], None if crc32c is None else crc32c_of(trailer, crc32c)


def _with_trailer(key: str, span: Span | Suffix | None) -> Span | None:
    if span is None:
        return None
    if isinstance(span, Suffix) or span.start:
        raise ValueError(f"read {key!r} from byte 0: a part of the object cannot be checked")
    return Span(0, span.length + TRAILER_BYTES)


def _opened(state_keys: StateKeys, key: str, body: Body, span: Span | Suffix | None) -> Body:
    """The object without its trailer, cut to `span`. Raises `CorruptObjectError`."""
    data, is_whole = body.data, len(body.data) == body.object_size_bytes
    if is_whole:
        data, is_signed = state_keys.open(key, data)
    else:
        is_signed = False
        if state_keys.secrets and not state_keys.unsigned_accepted:
            raise CorruptObjectError(
                key,
                len(data),
                f"its {body.object_size_bytes} bytes exceed the limit of this kind of object",
                remedy="find out who writes to the bucket; restore the object from a version or a "
                "copy",
            )
    if state_keys.secrets and not is_signed:
        logger.info("%s has no signature that can be checked, and is accepted", key)
    size_bytes = len(data) if is_whole else body.object_size_bytes
    _, length = clip(span, len(data))
    return Body(data if length == len(data) else memoryview(data)[:length], 0, size_bytes)


def _own(info: ObjectInfo, end: Body) -> ObjectInfo:
    if not has_trailer(end.data):
        return info
    return info._replace(size_bytes=info.size_bytes - TRAILER_BYTES)
