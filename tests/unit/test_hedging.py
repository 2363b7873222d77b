"""Hedged PUTs: when a second one goes out, who decides, and that nothing is lost by it."""

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from bucketlog.log_format.errors import BucketRefusedError, BucketUnavailableError
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Body, Bucket, ObjectInfo, Span, Suffix
from bucketlog.tiered_storage.counting import CountingBucket
from bucketlog.tiered_storage.hedging import HedgePolicy, HedgeSettings, HedgingBucket
from bucketlog.tiered_storage.retry import RetryBucket
from bucketlog.tiered_storage.retry_steps import bucket_backoff

SETTINGS = HedgeSettings(quantile=0.9, share_max=0.1, samples_min=10, delay_ms_min=1)


class TestPolicy:
    def test_nothing_is_hedged_before_enough_is_known(self) -> None:
        policy = HedgePolicy(SETTINGS)
        for number in range(10):
            assert policy.delay_ms(1_000) is None, number
            policy.observe(1_000, 50)
        assert policy.delay_ms(1_000) == 50
        assert policy.delay_ms(1_000_000) is None, "nothing is known of such large ones"

    def test_the_delay_is_the_quantile_of_the_window(self) -> None:
        policy = HedgePolicy(HedgeSettings(quantile=0.9, samples_min=10, window_puts=100))
        for latency in range(1, 101):
            policy.observe(1_000, latency)
        assert policy.delay_ms(1_000) == 91
        for _ in range(100):
            policy.observe(1_000, 20)
        assert policy.delay_ms(1_000) == 20, "what is past the window is forgotten"
        for _ in range(100):
            policy.observe(1_000, 0.1)
        assert policy.delay_ms(1_000) == HedgeSettings().delay_ms_min

    @pytest.mark.parametrize("seed", range(20))
    def test_never_more_than_the_share(self, seed: int) -> None:
        chance = Random(seed)
        share = chance.choice([0.0, 0.01, 0.1, 0.5, 1.0])
        policy = HedgePolicy(HedgeSettings(share_max=share))
        puts = hedges = 0
        for _ in range(2_000):
            policy.delay_ms(1_000)
            puts += 1
            while chance.random() < 0.7 and policy.take():
                hedges += 1
            assert hedges <= puts * share + 1e-6
        assert hedges >= puts * share * 0.8, "the share may be used"

    def test_a_bad_setting_is_refused(self) -> None:
        for quantile, share_max in ((1.0, 0.1), (0.0, 0.1), (0.9, 1.5), (0.9, -0.1)):
            with pytest.raises(ValueError, match="no quantile"):
                HedgeSettings(quantile=quantile, share_max=share_max)


class Time:
    """A clock that goes from one waking to the next, when everything else has come to rest."""

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        self._sleepers.append((self.now + seconds, self._count, waking))
        await waking

    async def run(self, task: "asyncio.Task[bool]") -> bool:
        while True:
            for _ in range(20):
                await asyncio.sleep(0)
            if task.done():
                return await task
            self._sleepers = [entry for entry in self._sleepers if not entry[2].done()]
            self._sleepers.sort(key=lambda entry: entry[:2])
            at, _, waking = self._sleepers.pop(0)
            self.now = at
            waking.set_result(None)


class Step:
    """What happens to one request: it reaches the store after `arrives` s (None: never), and the
    answer comes `answers` s later, or an error in its place."""

    def __init__(
        self, arrives: float | None, answers: float, error: Exception | None = None
    ) -> None:
        self.arrives, self.answers, self.error = arrives, answers, error


QUICK = Step(0.005, 0.005)


def lost() -> BucketUnavailableError:
    return BucketUnavailableError("injected: the answer was lost", remedy="try again")


class SlowBucket(ThreadedBucket):
    """Requests go as the steps say; what has reached the store happens, whoever waits for it."""

    def __init__(self, time: Time, memory: MemoryBucket, steps: Sequence[Step]) -> None:
        super().__init__(memory)
        self._time, self._memory = time, memory
        self.steps = list(steps)
        self.requests = self.under_way = 0

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        step = self.steps.pop(0) if self.steps else QUICK
        self.requests += 1
        self.under_way += 1
        try:
            await self._time.sleep(step.arrives or 0)
            created = step.arrives is not None and self._memory.create(key, parts, crc32c=crc32c)
            await self._time.sleep(step.answers)
        finally:
            self.under_way -= 1
        if step.error is not None:
            raise step.error
        return created

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        return self._memory.get(key, span)

    async def head(self, key: str) -> ObjectInfo | None:
        return self._memory.head(key)


class Rig:
    """Enough quick PUTs are known for a slow one to be hedged after 10 ms, one at once."""

    def __init__(self, *steps: Step, settings: HedgeSettings = SETTINGS) -> None:
        self.time, self.memory = Time(), MemoryBucket()
        self.slow = SlowBucket(self.time, self.memory, steps)
        self.counting = CountingBucket(self.slow)
        self.policy = HedgePolicy(settings)
        for _ in range(20):
            self.policy.delay_ms(3)
            self.policy.observe(3, 10)
        self.bucket: Bucket = HedgingBucket(
            self.counting,
            self.policy,
            on_hedge=self.counting.count_hedge,
            monotonic=self.time.monotonic,
            sleep=self.time.sleep,
        )

    async def create(self, key: str = "k", body: bytes = b"one") -> bool:
        return await self.time.run(asyncio.create_task(self.bucket.create(key, [body])))

    @property
    def hedges(self) -> tuple[int, int]:
        counts = self.counting.snapshot()
        assert counts.creates == self.slow.requests
        assert self.slow.under_way == 0, "nothing is under way once a create is over"
        return counts.hedges, counts.hedges_won


async def test_a_quick_put_is_sent_once() -> None:
    rig = Rig(Step(0.004, 0.005))
    assert await rig.create()
    assert rig.hedges == (0, 0)
    assert rig.slow.requests == 1


async def test_a_stuck_put_is_overtaken() -> None:
    rig = Rig(Step(30, 0), QUICK)
    assert await rig.create()
    assert rig.time.now == pytest.approx(0.020)
    assert rig.hedges == (1, 1)
    assert rig.memory.get("k").data == b"one"


async def test_a_lost_answer_is_our_own_object() -> None:
    """The first is stored, its answer is late; the second is refused: by ourselves."""
    rig = Rig(Step(0.005, 1), QUICK)
    assert await rig.create()
    assert rig.time.now == pytest.approx(1.005)
    assert rig.hedges == (1, 0)


async def test_another_writers_object_refuses_both() -> None:
    rig = Rig(Step(0.005, 1), QUICK)
    rig.memory.create("k", [b"seal"])
    assert not await rig.create()
    assert rig.hedges == (1, 0)
    assert rig.memory.get("k").data == b"seal"


@pytest.mark.parametrize("arrives", [None, 0.001])
async def test_a_refusal_and_a_failure_are_ambiguous(arrives: float | None) -> None:
    rig = Rig(Step(arrives, 1, lost()), QUICK)
    rig.memory.create("k", [b"seal"])
    with pytest.raises(BucketUnavailableError):
        await rig.create()
    assert rig.hedges == (1, 0)


async def test_a_failure_after_the_hedge_is_made_up_for() -> None:
    for steps in (
        (Step(None, 0.015, lost()), Step(0.5, 0.5)),
        (Step(0.5, 0.5), Step(None, 0.001, BucketRefusedError("throttled"))),
    ):
        rig = Rig(*steps)
        assert await rig.create()
        assert rig.memory.get("k").data == b"one"
        assert rig.hedges[0] == 1


async def test_two_failures_and_an_early_one_are_told() -> None:
    for steps, hedged in (
        ((Step(None, 0.05, lost()), Step(None, 0.05, lost())), 1),
        ((Step(None, 0.001, lost()),), 0),
    ):
        rig = Rig(*steps)
        with pytest.raises(BucketUnavailableError):
            await rig.create()
        assert rig.hedges == (hedged, 0)


async def test_past_the_share_nothing_is_hedged() -> None:
    rig = Rig(*[Step(0.050, 0)] * 30)
    for number in range(10):
        await rig.create(f"k{number}")
    assert rig.hedges[0] <= 3, "20 and 10 PUTs at a tenth"
    assert rig.hedges[0] >= 1


@pytest.mark.parametrize("after_s", [0.001, 0.012])
async def test_a_cancelled_create_leaves_nothing_under_way(after_s: float) -> None:
    rig = Rig(Step(30, 0), Step(30, 0))
    create = asyncio.create_task(rig.bucket.create("k", [b"one"]))

    async def cancel() -> bool:
        await rig.time.sleep(after_s)
        create.cancel()
        await asyncio.wait([create])
        return create.cancelled()

    assert await rig.time.run(asyncio.create_task(cancel()))
    assert rig.hedges == (int(after_s > 0.010), 0)


def some_step(chance: Random) -> Step:
    arrives = chance.choice([None, 0.001, 0.008, 0.012, 0.02, chance.random() / 10])
    error = lost() if arrives is None or chance.random() < 0.2 else None
    return Step(arrives, chance.choice([0, 0.001, 0.01, chance.random() / 10]), error)


@pytest.mark.parametrize("seed", range(50))
async def test_two_writers_race_under_faults(seed: int) -> None:
    """The writer and somebody who seals: never are both told that they won, and who was told
    finds its bytes there; who was told no finds the other's. Retries above settle the rest."""
    chance = Random(seed)
    settings = HedgeSettings(quantile=0.5, share_max=0.5, samples_min=10, delay_ms_min=1)
    rig = Rig(settings=settings)
    above = RetryBucket(
        rig.bucket,
        bucket_backoff(100_000),
        random=chance,
        monotonic=rig.time.monotonic,
        sleep=rig.time.sleep,
    )

    async def seal(key: str) -> bool:
        await rig.time.sleep(chance.random() / 10)
        return rig.memory.create(key, [b"two"])

    async def race(key: str) -> bool:
        ours, theirs = await asyncio.gather(above.create(key, [b"one"]), seal(key))
        assert ours is not theirs
        assert rig.memory.get(key).data == (b"one" if ours else b"two")
        return ours

    won = []
    for number in range(40):
        rig.slow.steps = [some_step(chance) for _ in range(4)]
        won.append(await rig.time.run(asyncio.create_task(race(f"k{number}"))))
    hedges = rig.hedges[0]
    assert 0 < hedges <= (rig.slow.requests - hedges + 20) * settings.share_max
    assert len(set(won)) == 2
