"""Retries of a bucket's verbs, as steps that neither wait nor call. `RetryBucket` and
`RetrySyncBucket` execute the steps.

Invariant: `create` returns True if and only if the object stored under the key equals the caller's,
byte for byte. A create that failed may have happened: the retry is then refused by its own object.
Only a refusal after a failure is compared with the stored object. A refusal at the first try costs
no further request.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias, TypeVar

from bucketlog.log_format.backoff import Backoff, Retries
from bucketlog.log_format.errors import BucketUnavailableError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.bucket import ObjectInfo

Result = TypeVar("Result")

Request: TypeAlias = Callable[[Any], Any]
"""A call of the bucket it is given, a `Bucket` or a `SyncBucket`."""
Steps: TypeAlias = Generator[Request | float, Any, Result]
"""Yields a request, and gets its answer or `BucketUnavailableError`; or a pause in seconds."""

GIVE_UP_AFTER_MS = 15_000


def bucket_backoff(give_up_after_ms: float = GIVE_UP_AFTER_MS) -> Backoff:
    return Backoff(25, 1_000, jitter=0.5, give_up_after_ms=give_up_after_ms)


def request(retries: Retries, call: Request) -> Steps[Any]:
    """Run any verb that is safe to repeat."""
    while True:
        try:
            return (yield call)
        except BucketUnavailableError as error:
            pause_s = retries.pause_s(error)
        yield pause_s


def create(
    new_retries: Callable[[], Retries], key: str, parts: Sequence[Buffer], crc32c: int | None
) -> Steps[bool]:
    retries = new_retries()
    is_ambiguous = False
    while True:
        try:
            is_created: bool = yield lambda bucket: bucket.create(key, parts, crc32c=crc32c)
        except BucketUnavailableError as error:
            is_ambiguous = True
            pause_s = retries.pause_s(error)
        else:
            if is_created or not is_ambiguous:
                return is_created
            return (yield from _is_stored(new_retries, key, parts))
        yield pause_s


def _is_stored(
    new_retries: Callable[[], Retries], key: str, parts: Sequence[Buffer]
) -> Steps[bool]:
    """Return whether the object that refused a create equals the one to be created."""
    info = yield from request(new_retries(), lambda bucket: bucket.head(key))
    if info is None:
        raise BucketUnavailableError(
            f"the object that refused the create of {key!r} is gone",
            remedy="find out who deletes objects of a live log",
        )
    if info.size_bytes != sum(map(len, parts)):
        return False
    body = yield from request(new_retries(), lambda bucket: bucket.get(key))
    return _is_made_of(body.data, parts)


def _is_made_of(stored: Buffer, parts: Sequence[Buffer]) -> bool:
    """Return whether `stored` is the concatenation of `parts`, which has the same length."""
    view = memoryview(stored)
    at = 0
    for part in parts:
        if view[at : at + len(part)] != part:
            return False
        at += len(part)
    return True


class Listing:
    """A listing that starts again after a failure, because a bucket promises no order.

    The time limit restarts at each new object, so a long listing may fail occasionally.
    """

    def __init__(self, new_retries: Callable[[], Retries]) -> None:
        self._new_retries = new_retries
        self._retries = new_retries()
        self._seen: set[str] = set()

    def is_new(self, info: ObjectInfo) -> bool:
        """Return whether to yield the object: none is yielded twice."""
        if info.key in self._seen:
            return False
        self._seen.add(info.key)
        self._retries = self._new_retries()
        return True

    def pause_s(self, error: BucketUnavailableError) -> float:
        """Return the pause before the listing starts again. Raises `error` if the time is up."""
        return self._retries.pause_s(error)
