"""The bucket: one store, and each broker's way to it.

Invariants: whoever creates a key first decides it; a listing shows all that was there when it
began, and of what came or went meanwhile some; `history` has every object that ever was.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from random import Random
from typing import Any

from bucketlog.log_format.errors import BucketUnavailableError, ObjectNotFoundError
from bucketlog.log_format.model import Buffer, WallClock
from bucketlog.tiered_storage.bucket import Body, ObjectInfo, Span, Suffix, clip
from bucketlog.tiered_storage.segment import is_seal
from tests.simulation.network import Errors, Network, Way

TIMEOUT_S = 5.0
AFTER_ALL = "\x7f"
"""Keys are printable ASCII."""


class Store:
    """What all see. It is a `SyncBucket`, too: for whoever looks when nothing moves."""

    def __init__(self, now_ms: WallClock) -> None:
        self._now_ms = now_ms
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.history: dict[str, bytes] = {}
        self.changes = 0
        self._keys: list[str] = []

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        if key in self.objects:
            return False
        data = b"".join(parts)
        self._put(key, data, self._now_ms())
        self.history.setdefault(key, data)
        return True

    def _put(self, key: str, data: bytes, modified_ms: int) -> None:
        self.changes += 1
        if key not in self.objects:
            insort(self._keys, key)
        self.objects[key] = (data, modified_ms)

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        found = self.objects.get(key)
        if found is None:
            raise ObjectNotFoundError(key)
        data = found[0]
        start, length = clip(span, len(data))
        return Body(data[start : start + length], start, len(data))

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        start = max(bisect_left(self._keys, prefix), bisect_right(self._keys, start_after))
        end = bisect_left(self._keys, prefix + AFTER_ALL)
        for key in self._keys[start:end]:
            data, modified_ms = self.objects[key]
            yield ObjectInfo(key, len(data), modified_ms)

    def head(self, key: str) -> ObjectInfo | None:
        found = self.objects.get(key)
        return None if found is None else ObjectInfo(key, len(found[0]), found[1])

    def delete(self, keys: Sequence[str]) -> None:
        self.changes += 1
        for key in keys:
            if self.objects.pop(key, None) is not None:
                del self._keys[bisect_left(self._keys, key)]

    def close(self) -> None:
        pass


class PastStore(Store):
    """All objects that ever were, as they were created first."""

    def __init__(self, store: Store) -> None:
        super().__init__(lambda: 0)
        for key, data in store.history.items():
            self._put(key, data, 0)
        self.history = store.history


def merged(
    before: Sequence[ObjectInfo], after: Sequence[ObjectInfo], random: Random
) -> list[ObjectInfo]:
    """What a listing shows that lasted from `before` to `after`, in no order."""
    late, early = {info.key for info in after}, {info.key for info in before}
    shown = [info for info in after if info.key in early or random.random() < 0.5]
    shown += [info for info in before if info.key not in late and random.random() < 0.5]
    random.shuffle(shown)
    return shown


class BucketClient:
    """One broker's way to the store: a `Bucket`."""

    def __init__(self, name: str, store: Store, network: Network, way: Way) -> None:
        self._name = name
        self._store = store
        self._network = network
        self._way = way
        self._errors = Errors(
            TIMEOUT_S,
            no_answer=lambda: _unavailable("no answer"),
            refused=lambda: _unavailable("503 or 409"),
        )

    async def _request(
        self,
        label: str,
        do: Callable[[], Any],
        finish: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        trace = self._network.trace

        def arrive() -> Any:
            answer = do()
            trace.add(self._name, f"bucket {label}: {answer if answer in (True, False) else ''}")
            return answer

        return await self._network.request(
            self._way, label, arrive, self._errors, "bucket", finish=finish
        )

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        data = b"".join(parts)
        verb = "seal" if is_seal(len(data)) else "create"
        created = await self._request(
            f"{verb} {key} ({len(data)})", lambda: self._store.create(key, [data])
        )
        return bool(created)

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        body: Body = await self._request(f"get {key}", lambda: self._store.get(key, span))
        if self._way.short_share and self._network.random.random() < self._way.short_share:
            self._network.trace.count("bucket: the body ended early")
            raise _unavailable("the body ended early")  # as the S3 clients do: they count bytes
        return body

    async def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
        def look() -> tuple[int, Sequence[ObjectInfo]]:
            return self._store.changes, list(self._store.list(prefix, start_after=start_after))

        def look_again(began: tuple[int, Sequence[ObjectInfo]]) -> Sequence[ObjectInfo]:
            changes, before = began
            after = before if changes == self._store.changes else look()[1]
            return merged(before, after, self._network.random)

        for info in await self._request(f"list {prefix}", look, finish=look_again):
            yield info

    async def delete(self, keys: Sequence[str]) -> None:
        gone = list(keys)
        await self._request(f"delete {len(gone)}", lambda: self._store.delete(gone))

    async def head(self, key: str) -> ObjectInfo | None:
        info: ObjectInfo | None = await self._request(f"head {key}", lambda: self._store.head(key))
        return info

    async def close(self) -> None:
        pass


def _unavailable(why: str) -> BucketUnavailableError:
    return BucketUnavailableError(f"injected: {why}", remedy="try again")
