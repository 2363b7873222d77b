"""Retries of synchronous users: the same rules as those of `RetryBucket`."""

from collections.abc import Iterator, Sequence
from random import Random

import pytest

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import BucketRefusedError, BucketUnavailableError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import Body, ObjectInfo, Span, Suffix
from bucketlog.tiered_storage.retry_sync import RetrySyncBucket

BACKOFF = Backoff(10, 80, jitter=0.5, give_up_after_ms=1_000)
PASSES = BucketUnavailableError("503 Slow Down")


class Failing(MemoryBucket):
    """Fails as often as `before` says, and loses `lost` answers of creates."""

    def __init__(self, *, before: int = 0, lost: int = 0) -> None:
        super().__init__()
        self.before = before
        self.lost = lost
        self.calls = 0

    def _maybe_fail(self) -> None:
        self.calls += 1
        if self.before:
            self.before -= 1
            raise PASSES

    def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        self._maybe_fail()
        created = super().create(key, parts, crc32c=crc32c)
        if self.lost:
            self.lost -= 1
            raise PASSES
        return created

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self._maybe_fail()
        return super().get(key, span)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        for number, info in enumerate(super().list(prefix, start_after=start_after)):
            if number == 2:
                self._maybe_fail()
            yield info


class Rig:
    def __init__(self, inner: Failing) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.bucket = RetrySyncBucket(
            inner, BACKOFF, random=Random(1), monotonic=lambda: self.now, sleep=self._sleep
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_what_passes_is_tried_again_later_and_later() -> None:
    inner = Failing()
    inner.create("k", [b"one"])
    inner.before = 6
    rig = Rig(inner)
    assert rig.bucket.get("k").data == b"one"
    assert len(rig.slept) == 6
    assert all(0 < seconds <= 0.08 for seconds in rig.slept)
    assert rig.slept[-1] > rig.slept[0]


def test_it_ends_with_the_last_error() -> None:
    rig = Rig(Failing(before=10**9))
    with pytest.raises(BucketUnavailableError, match="503"):
        rig.bucket.get("k")
    assert 0.8 < rig.now <= 1.0


def test_what_will_not_pass_is_not_tried_again() -> None:
    inner = Failing()
    rig = Rig(inner)
    with pytest.raises(BucketRefusedError):
        rig.bucket.create("../k", [b"one"])
    assert (inner.calls, rig.slept) == (1, [])


def test_a_create_whose_answer_was_lost_is_settled() -> None:
    assert Rig(Failing(lost=1)).bucket.create("k", [b"one", b"two"])
    inner = Failing()
    inner.create("k", [b"another"])
    inner.before = 1
    assert not Rig(inner).bucket.create("k", [b"one", b"two"])
    inner = Failing()
    inner.create("k", [b"onetwX"])
    inner.before = 1
    assert not Rig(inner).bucket.create("k", [b"one", b"two"])


def test_a_listing_that_broke_off_gives_nothing_twice() -> None:
    inner = Failing()
    for number in range(5):
        inner.create(f"k{number}", [b"x"])
    inner.before = 3
    found = [info.key for info in Rig(inner).bucket.list("k")]
    assert sorted(found) == [f"k{number}" for number in range(5)]
    assert len(set(found)) == len(found)
