"""`tiered_storage.retry` for synchronous users: readers of the bucket alone, Spark, commands."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import TypeVar

from bucketlog.errors import BucketUnavailableError
from bucketlog.model import Buffer
from tiered_storage.bucket import Body, ObjectInfo, Span, Suffix, SyncBucket
from tiered_storage.retry import Patience, RetryPolicy, gone, is_made_of

Result = TypeVar("Result")


class RetrySyncBucket:
    """`SyncBucket` around `inner`, which it owns; otherwise as `RetryBucket`. Thread-safe."""

    def __init__(
        self,
        inner: SyncBucket,
        policy: RetryPolicy,
        *,
        random: Random,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner = inner
        self._policy = policy
        self._random = random
        self._monotonic = monotonic
        self._sleep = sleep

    def _patience(self) -> Patience:
        return Patience(self._policy, self._random, self._monotonic)

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        patience = self._patience()
        ambiguous = False
        while True:
            try:
                created = self._inner.create(key, parts, crc32c=crc32c)
            except BucketUnavailableError as error:
                ambiguous = True
                self._sleep(patience.delay_s(error))
                continue
            if created or not ambiguous:
                return created
            return self._holds(key, parts)

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        return self._again(partial(self._inner.get, key, span))

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        """Begins again after a failure; what was given out is not given out again."""
        patience = self._patience()
        given: set[str] = set()
        while True:
            try:
                for info in self._inner.list(prefix, start_after=start_after):
                    if info.key not in given:
                        given.add(info.key)
                        patience = self._patience()  # it goes on
                        yield info
                return
            except BucketUnavailableError as error:
                self._sleep(patience.delay_s(error))

    def delete(self, keys: Sequence[str]) -> None:
        self._again(partial(self._inner.delete, keys))

    def head(self, key: str) -> ObjectInfo | None:
        return self._again(partial(self._inner.head, key))

    def close(self) -> None:
        self._inner.close()

    def _again(self, call: Callable[[], Result]) -> Result:
        patience = self._patience()
        while True:
            try:
                return call()
            except BucketUnavailableError as error:
                self._sleep(patience.delay_s(error))

    def _holds(self, key: str, parts: Sequence[Buffer]) -> bool:
        """Whether the object that refused a create is the one that was to be created."""
        info = self.head(key)
        if info is None:
            raise gone(key)
        if info.size_bytes != sum(map(len, parts)):
            return False
        return is_made_of(self.get(key).data, parts)
