"""`tiered_storage.retry` for synchronous users: readers of the bucket alone, Spark, commands."""

import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar, cast

from bucketlog.log_format.backoff import Backoff, Retries
from bucketlog.log_format.errors import BucketUnavailableError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage import retry_steps
from bucketlog.tiered_storage.bucket import Body, ObjectInfo, Span, Suffix, SyncBucket

Result = TypeVar("Result")


class RetrySyncBucket:
    """`SyncBucket` around `inner`, which it owns; otherwise as `RetryBucket`. Thread-safe."""

    def __init__(
        self,
        inner: SyncBucket,
        backoff: Backoff,
        *,
        random: Random,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inner = inner
        self._backoff = backoff
        self._random = random
        self._monotonic = monotonic
        self._sleep = sleep

    def _retries(self) -> Retries:
        return Retries(self._backoff, random=self._random, monotonic=self._monotonic)

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        return self._run(retry_steps.create(self._retries, key, parts, crc32c))

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        return self._request(lambda bucket: bucket.get(key, span))

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        listing = retry_steps.Listing(self._retries)
        while True:
            try:
                for info in self._inner.list(prefix, start_after=start_after):
                    if listing.is_new(info):
                        yield info
                return
            except BucketUnavailableError as error:
                pause_s = listing.pause_s(error)
            self._sleep(pause_s)

    def delete(self, keys: Sequence[str]) -> None:
        self._request(lambda bucket: bucket.delete(keys))

    def head(self, key: str) -> ObjectInfo | None:
        return self._request(lambda bucket: bucket.head(key))

    def close(self) -> None:
        self._inner.close()

    def _request(self, call: Callable[[SyncBucket], Result]) -> Result:
        answer: Result = self._run(retry_steps.request(self._retries(), call))
        return answer

    def _run(self, steps: retry_steps.Steps[Result]) -> Result:
        try:
            step = next(steps)
            while True:
                if isinstance(step, float):
                    self._sleep(step)
                    step = next(steps)
                    continue
                try:
                    answer = step(self._inner)
                except BucketUnavailableError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return cast(Result, end.value)
