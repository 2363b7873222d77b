"""When a broker looks whether a later epoch is claimed before it publishes."""

import asyncio

import pytest

from bucketlog.log_format.errors import BucketUnavailableError, SequencerLostError
from bucketlog.stateless_broker.epochs.claim_watch import ClaimWatch


class Claims:
    def __init__(self) -> None:
        self.highest = 3
        self.looks = 0
        self.down = False
        self.wall_ms = 1_000_000

    async def look(self) -> int:
        self.looks += 1
        await asyncio.sleep(0)
        if self.down:
            raise BucketUnavailableError("down")
        return self.highest

    def watch(self, fresh_ms: int = 3_600_000) -> ClaimWatch:
        return ClaimWatch(
            epoch=3, highest_claim=self.look, fresh_ms=fresh_ms, now_ms=lambda: self.wall_ms
        )


@pytest.fixture
def claims() -> Claims:
    return Claims()


async def test_one_look_serves_until_it_is_old(claims: Claims) -> None:
    watch = claims.watch()
    await asyncio.gather(*(watch.check() for _ in range(5)))
    claims.wall_ms += 3_600_000
    await watch.check()
    assert claims.looks == 1
    claims.wall_ms += 1
    await watch.check()
    assert claims.looks == 2


async def test_a_clock_that_was_set_back_makes_it_look(claims: Claims) -> None:
    watch = claims.watch()
    await watch.check()
    claims.wall_ms -= 3_600_001
    await watch.check()
    assert claims.looks == 2


async def test_time_that_only_the_loop_has_seen_counts(claims: Claims) -> None:
    watch = claims.watch(fresh_ms=0)
    await watch.check()
    await watch.check()
    assert claims.looks == 2


async def test_a_later_claim_ends_the_epoch_every_time(claims: Claims) -> None:
    watch = claims.watch()
    claims.highest = 4
    for _ in range(2):
        with pytest.raises(SequencerLostError, match="epoch 4 is claimed"):
            await watch.check()


async def test_what_could_not_be_seen_is_not_taken_for_seen(claims: Claims) -> None:
    watch = claims.watch()
    claims.down = True
    with pytest.raises(BucketUnavailableError):
        await watch.check()
    claims.down = False
    claims.highest = 4
    with pytest.raises(SequencerLostError):
        await watch.check()
