"""Retries: what is tried again, for how long, and how an ambiguous create is settled."""

from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random

import pytest

from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import (
    BucketRefusedError,
    BucketUnavailableError,
    ObjectNotFoundError,
)
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Bucket, ObjectInfo
from bucketlog.tiered_storage.counting import BucketCounts, CountingBucket
from bucketlog.tiered_storage.faulty import (
    BucketVerb,
    Effect,
    Fault,
    FaultyBucket,
    RandomFaults,
    ScriptedFaults,
)
from bucketlog.tiered_storage.retry import RetryBucket

BACKOFF = Backoff(10, 80, jitter=0.5, give_up_after_ms=1_000)
LOST = Fault(Effect.DONE)
"""It happened, and the answer was lost."""


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


class Rig:
    """A retrying bucket over a faulty, counted one in memory."""

    def __init__(self, plan: ScriptedFaults | RandomFaults) -> None:
        self.time = Time()
        self.memory = MemoryBucket()
        self.counting = CountingBucket(ThreadedBucket(self.memory, threads=1))
        self.faulty = FaultyBucket(self.counting, plan, sleep=self.time.sleep)
        self.bucket: Bucket = RetryBucket(
            self.faulty,
            BACKOFF,
            random=Random(1),
            monotonic=self.time.monotonic,
            sleep=self.time.sleep,
        )

    @property
    def waits(self) -> list[float]:
        """The waits between tries, without the faults' own."""
        return [seconds for seconds in self.time.slept if seconds]


async def test_nothing_goes_wrong() -> None:
    rig = Rig(ScriptedFaults({}))
    assert await rig.bucket.create("k", [b"one"])
    assert not await rig.bucket.create("k", [b"one"]), "not ours: no try of this call failed"
    counts = rig.counting.snapshot()
    assert counts == BucketCounts(creates=2, bytes_in=6), "a refusal costs no further request"
    assert rig.waits == []
    await rig.bucket.close()


@pytest.mark.parametrize("effect", [Effect.NONE, Effect.DONE])
async def test_a_failed_create_is_tried_again(effect: Effect) -> None:
    rig = Rig(ScriptedFaults({BucketVerb.CREATE: [Fault(effect), Fault(effect), Fault(effect)]}))
    assert await rig.bucket.create("k", [b"o", b"", memoryview(b"ne")])
    assert rig.memory.get("k").data == b"one"
    assert len(rig.waits) == 3
    await rig.bucket.close()


@pytest.mark.parametrize("others", [b"two", b"on", b"onely", b"", b"oNe"])
async def test_an_ambiguous_create_that_another_won(others: bytes) -> None:
    """A seal or another writer's object under the key: False, though a try may have been lost."""
    rig = Rig(ScriptedFaults({BucketVerb.CREATE: [Fault(Effect.NONE), LOST]}))
    rig.memory.create("k", [others])
    assert not await rig.bucket.create("k", [b"o", b"ne"])
    assert rig.memory.get("k").data == others
    gets = rig.counting.snapshot().gets
    assert gets == (1 if len(others) == 3 else 0), "a size that differs says it all"
    await rig.bucket.close()


async def test_settling_is_retried_too() -> None:
    rig = Rig(
        ScriptedFaults(
            {
                BucketVerb.CREATE: [LOST],
                BucketVerb.HEAD: [Fault()],
                BucketVerb.GET: [Fault(), Fault()],
            }
        )
    )
    assert await rig.bucket.create("k", [b"one"])
    await rig.bucket.close()


async def test_the_refusing_object_is_gone() -> None:
    rig = Rig(ScriptedFaults({BucketVerb.CREATE: [LOST]}))

    class Vanishing(ThreadedBucket):
        async def head(self, key: str) -> None:
            return None

    bucket = RetryBucket(
        FaultyBucket(
            Vanishing(rig.memory), ScriptedFaults({BucketVerb.CREATE: [LOST]}), sleep=rig.time.sleep
        ),
        BACKOFF,
        random=Random(1),
        monotonic=rig.time.monotonic,
        sleep=rig.time.sleep,
    )
    with pytest.raises(BucketUnavailableError, match="is gone"):
        await bucket.create("k", [b"one"])
    await bucket.close()
    await rig.bucket.close()


async def test_a_create_that_comes_late_meets_its_own_retry() -> None:
    """The first request is still under way when the second wins: nothing is replaced."""
    rig = Rig(ScriptedFaults({BucketVerb.CREATE: [Fault(Effect.LATER, later_ms=5_000)]}))
    assert await rig.bucket.create("k", [b"one"])
    await rig.faulty.settle()
    assert rig.memory.get("k").data == b"one"
    assert rig.counting.snapshot().creates == 2
    await rig.bucket.close()


async def test_delays_double_to_a_limit_and_end() -> None:
    rig = Rig(ScriptedFaults({BucketVerb.GET: [Fault()] * 1_000}))
    rig.memory.create("k", [b"one"])
    with pytest.raises(BucketUnavailableError, match="injected"):
        await rig.bucket.get("k")
    longest = [0.010, 0.020, 0.040] + [0.080] * 1_000
    assert all(
        limit / 2 < waited <= limit for waited, limit in zip(rig.waits, longest, strict=False)
    )
    assert len(set(rig.waits)) == len(rig.waits), "random, lest brokers come in step"
    assert 1.0 - 0.080 < rig.time.now <= 1.0
    await rig.bucket.close()


async def test_every_verb_is_tried_again() -> None:
    rig = Rig(ScriptedFaults({verb: [Fault(), LOST] for verb in BucketVerb}))
    assert await rig.bucket.create("k", [b"one"])
    assert (await rig.bucket.get("k")).data == b"one"
    info = await rig.bucket.head("k")
    assert info is not None
    assert info.size_bytes == 3
    assert [info.key async for info in rig.bucket.list("")] == ["k"]
    await rig.bucket.delete(["k"])
    assert rig.memory.head("k") is None
    assert isinstance(rig.faulty.plan, ScriptedFaults)
    assert rig.faulty.plan.exhausted
    await rig.bucket.close()


async def test_a_listing_that_breaks_off_gives_nothing_twice() -> None:
    rig = Rig(ScriptedFaults({BucketVerb.LIST: [LOST, LOST, Fault(), LOST]}))
    keys = [f"k{number}" for number in range(10)]
    for key in keys:
        rig.memory.create(key, [b"x"])
    found = [info.key async for info in rig.bucket.list("", start_after="k2")]
    assert sorted(found) == keys[3:]
    await rig.bucket.close()


async def test_a_long_listing_may_fail_now_and_then() -> None:
    """Its time is counted from the last object that was new, not from its beginning."""
    rig = Rig(ScriptedFaults({}))

    class Failing(ThreadedBucket):
        """Fails after each object that it has not given before, 700 ms later."""

        def __init__(self) -> None:
            super().__init__(rig.memory, threads=1)
            self.given = 0

        async def list(self, prefix: str, *, start_after: str = "") -> AsyncIterator[ObjectInfo]:
            infos = [info async for info in super().list(prefix, start_after=start_after)]
            self.given += 1
            for info in infos[: self.given]:
                yield info
            if self.given < len(infos):
                rig.time.now += 0.7
                raise BucketUnavailableError("503 Slow Down")

    bucket = RetryBucket(
        Failing(),
        BACKOFF,
        random=Random(1),
        monotonic=rig.time.monotonic,
        sleep=rig.time.sleep,
    )
    for number in range(6):
        rig.memory.create(f"k{number}", [b"x"])
    assert len([info async for info in bucket.list("")]) == 6
    assert rig.time.now > 3.5
    await bucket.close()
    await rig.bucket.close()


async def test_what_will_not_pass_is_not_tried_again() -> None:
    refused = Fault(error=BucketRefusedError("denied"))
    rig = Rig(ScriptedFaults({verb: [refused] for verb in BucketVerb}))

    async def first_listed() -> None:
        async for _ in rig.bucket.list(""):
            return

    verbs: list[Callable[[], Awaitable[object]]] = [
        lambda: rig.bucket.create("k", [b"x"]),
        lambda: rig.bucket.get("k"),
        lambda: rig.bucket.head("k"),
        lambda: rig.bucket.delete(["k"]),
        first_listed,
    ]
    for verb in verbs:
        with pytest.raises(BucketRefusedError):
            await verb()
    with pytest.raises(ObjectNotFoundError):
        await rig.bucket.get("k")
    assert rig.waits == []
    await rig.bucket.close()


@pytest.mark.parametrize("seed", range(20))
async def test_writers_under_random_faults(seed: int) -> None:
    """Two writers of different bytes, half of all requests failing in any way, late ones too:
    whoever is told True finds its bytes there for ever, and both are never told so."""
    chance = Random(seed)
    rig = Rig(RandomFaults(chance, failures=0.5, longest_delay_ms=30))
    told: dict[str, set[bytes]] = {}
    for number in range(20):
        key = f"k{number}"
        told[key] = set()
        for body in (b"mine", b"them"):
            try:
                if await rig.bucket.create(key, [body]):
                    told[key].add(body)
            except BucketUnavailableError:
                continue  # unknown: it may have been created, or may yet be
    await rig.faulty.settle()
    for key, winners in told.items():
        assert len(winners) <= 1
        for body in winners:
            assert rig.memory.get(key).data == body
    assert sum(map(len, told.values())) > 10, "most are decided"
    await rig.bucket.close()
