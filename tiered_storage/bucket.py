"""The bucket: five verbs over immutable objects, asynchronous and synchronous.

Invariant kept by every backend: `create` is create-only and atomic. Of any number of creates of
one key, at most one answers True, the object it wrote is whole and durable when it answers, and
nothing ever replaces it. The whole commit protocol rests on this; `tiered_storage.probe` checks it.
What else is required of a store, and what is not: docs/bucket.md.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bucketlog.log_format.errors import BucketRefusedError
from bucketlog.log_format.model import Buffer

MAX_KEY_LENGTH_BYTES = 512
"""S3 allows 1,024 bytes; the rest is the prefix's."""
MAX_KEY_NAME_LENGTH_BYTES = 255
"""Longest part of a key between two slashes, as file systems allow."""


class ObjectInfo(NamedTuple):
    """An object in a listing. `modified_ms` is a time of the store's own clock."""

    key: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `start` to `start + length` of an object; clipped at its end. `length` > 0."""

    start: int
    length: int

    def __post_init__(self) -> None:
        if self.start < 0 or self.length <= 0:
            raise ValueError(f"no bytes at {self.start} of length {self.length}")


@dataclass(frozen=True, slots=True)
class Suffix:
    """The last `length` bytes of an object, or all of a shorter object. `length` > 0."""

    length: int

    def __post_init__(self) -> None:
        if self.length <= 0:
            raise ValueError(f"no suffix of length {self.length}")


class Body(NamedTuple):
    """An answer of `get`: the bytes, where they start in the object, and the object's full size.

    For a span past the end, `start` is the object's size. Nothing changes `data` afterwards.
    """

    data: Buffer
    start: int
    object_size_bytes: int


def clip(span: Span | Suffix | None, object_size_bytes: int) -> tuple[int, int]:
    """Return start and length of `span` in an object of that size. None means all of the object."""
    match span:
        case Span():
            start = min(span.start, object_size_bytes)
            return start, min(span.length, object_size_bytes - start)
        case Suffix():
            length = min(span.length, object_size_bytes)
            return object_size_bytes - length, length
        case None:
            return 0, object_size_bytes


def check_prefix(prefix: str) -> None:
    """Check the beginning of a key by the rules that every store can keep.

    A key is printable ASCII. Names between slashes are neither empty nor '.' nor '..', and not
    longer than `MAX_KEY_NAME_LENGTH_BYTES`; the key is not longer than `MAX_KEY_LENGTH_BYTES`. So
    no key leaves its bucket, and all stores agree on what a key is. Raises `BucketRefusedError`.
    """
    names = prefix.split("/")
    last = names.pop()
    if (
        not prefix.isascii()
        or not prefix.isprintable()
        or len(prefix) > MAX_KEY_LENGTH_BYTES
        or any(len(name) > MAX_KEY_NAME_LENGTH_BYTES or name in ("", ".", "..") for name in names)
        or len(last) > MAX_KEY_NAME_LENGTH_BYTES
        or last in (".", "..")
    ):
        raise BucketRefusedError(
            f"{prefix!r} is not a key of a bucket",
            remedy=f"use up to {MAX_KEY_LENGTH_BYTES} printable ASCII characters, names "
            f"of up to {MAX_KEY_NAME_LENGTH_BYTES} between single slashes, no '.' and no '..'",
        )


def check_key(key: str) -> None:
    """Check a whole key as `check_prefix` checks a prefix. Raises `BucketRefusedError`."""
    check_prefix(f"{key}/")


class Bucket(Protocol):
    """Asynchronous. Keys are relative to the bucket's prefix, '/'-separated, ASCII (`check_key`).

    Raises `BucketUnavailableError` if trying again may help. This includes an ambiguous create: it
    may yet have happened, even later. Raises `BucketRefusedError` if trying again will not help.
    The opener of a bucket closes it; nothing is called after `close`.
    """

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        """Write the concatenation of `parts` under `key` if there is no object; True if written.

        False: an object is there already (maybe from an earlier try of the same call: compare).
        `crc32c` is the checksum of the whole body, which the store verifies if it can. The parts
        are borrowed until the call returns; if it raises or is cancelled, a request may still be
        under way with them: drop such buffers, never change them.
        """
        ...

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        """Read an object or a part of it. A span that begins at or past the end gives an empty
        body. Raises `ObjectNotFoundError`."""
        ...

    def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        """Return all objects whose key begins with `prefix` and is greater than `start_after`, in
        no promised order."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete. A missing object is not an error. A crash may bring a deleted object back."""
        ...

    async def head(self, key: str) -> ObjectInfo | None:
        """Return the object as a listing would show it; None if there is none."""
        ...

    async def close(self) -> None: ...


async def listed(bucket: Bucket, prefix: str, *, start_after: str = "") -> list[ObjectInfo]:
    """Return all objects under the prefix at once. Raises the bucket's errors."""
    return [info async for info in bucket.list(prefix, start_after=start_after)]


class SyncBucket(Protocol):
    """The same verbs for synchronous users (Spark executors, `bucketlog segment`, `replay`).

    May be used by several threads at once."""

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool: ...

    def get(self, key: str, span: Span | Suffix | None = None) -> Body: ...

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]: ...

    def delete(self, keys: Sequence[str]) -> None: ...

    def head(self, key: str) -> ObjectInfo | None: ...

    def close(self) -> None: ...
