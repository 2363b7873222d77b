"""The bucket: five verbs over immutable objects, asynchronous and synchronous.

Invariant kept by every backend: `create` is create-only and atomic. Of any number of creates of
one key, at most one answers True, the object it wrote is whole and durable when it answers, and
nothing ever replaces it. The whole commit protocol rests on this; `tiered_storage.probe` checks it.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bucketlog.model import Buffer


class ObjectInfo(NamedTuple):
    """`modified_ms` is the store's own clock."""

    key: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes `start` to `start + length` of an object; clipped at its end. `length` > 0."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Suffix:
    """The last `length` bytes of an object, or all of it where it is shorter. `length` > 0."""

    length: int


class Body(NamedTuple):
    """An answer of `get`: the bytes, where they start in the object, and the object's full size."""

    data: bytes
    start: int
    object_size_bytes: int


class Bucket(Protocol):
    """Asynchronous. Keys are relative to the bucket's prefix, '/'-separated, ASCII.

    Raises `BucketUnavailableError` where trying again may help (an ambiguous create included:
    it may yet have happened), `BucketRefusedError` where it will not.
    """

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        """Write the concatenation of `parts` under `key` if there is no object; True if written.

        False: an object is there already (maybe from an earlier try of the same call: compare).
        `crc32c` is the checksum of the whole body, which the store verifies if it can. The parts
        are borrowed until the call returns.
        """
        ...

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        """Read an object or a part of it. Raises `ObjectNotFoundError`. A span that begins at or
        past the end gives an empty body."""
        ...

    def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        """All objects whose key begins with `prefix` and is greater than `start_after`, in no
        promised order."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete; a key without an object is no error."""
        ...

    async def head(self, key: str) -> ObjectInfo | None: ...

    async def close(self) -> None: ...


class SyncBucket(Protocol):
    """The same verbs for synchronous users (Spark executors, `bucketlog segment`, `replay`)."""

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool: ...

    def get(self, key: str, span: Span | Suffix | None = None) -> Body: ...

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]: ...

    def delete(self, keys: Sequence[str]) -> None: ...

    def head(self, key: str) -> ObjectInfo | None: ...

    def close(self) -> None: ...
