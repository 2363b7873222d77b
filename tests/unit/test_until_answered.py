"""Repeating a call until it is answered: what is repeated, what is not, and what is told."""

import asyncio
from collections.abc import Sequence

import pytest

from bucketlog.log_format.errors import (
    BucketRefusedError,
    BucketUnavailableError,
    SequencerLostError,
    SequencerUnavailableError,
    WriterFencedError,
)
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.produce.commit_steps import UntilAnswered
from tests.rigs.patience import eventually_async


class Call:
    """Raises what it is given, in turn, then answers 7."""

    def __init__(self, health: Health, raises: Sequence[Exception]) -> None:
        self._health = health
        self._raises = list(raises)
        self.reports: list[dict[str, str]] = []

    async def __call__(self) -> int:
        self.reports.append(self._health.report())
        if self._raises:
            raise self._raises.pop(0)
        return 7


@pytest.fixture
def health() -> Health:
    health = Health()
    health.started = True
    return health


async def test_an_answer_is_returned(health: Health) -> None:
    call = Call(health, [])
    assert await UntilAnswered(health, EpochEnd(1), longest_pause_ms=1)(call, BrokerPart.REDIS) == 7
    assert call.reports == [{}]
    assert health.ready


@pytest.mark.parametrize(
    "error",
    [
        SequencerUnavailableError("away"),
        BucketUnavailableError("away"),
        BucketRefusedError("denied"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_may_be_repeated_is_and_is_told_meanwhile(
    health: Health, error: Exception
) -> None:
    call = Call(health, [error, error])
    assert await UntilAnswered(health, EpochEnd(1), longest_pause_ms=1)(call, BrokerPart.REDIS) == 7
    assert call.reports == [{}, {"redis": str(error)}, {"redis": str(error)}]
    assert health.ready


@pytest.mark.parametrize(
    "error",
    [SequencerLostError("lost"), WriterFencedError("fenced"), ValueError("a bug")],
    ids=lambda error: type(error).__name__,
)
async def test_what_no_repetition_helps_against_is_raised(health: Health, error: Exception) -> None:
    call = Call(health, [error])
    with pytest.raises(type(error)):
        await UntilAnswered(health, EpochEnd(1), longest_pause_ms=1)(call, BrokerPart.REDIS)
    assert len(call.reports) == 1


async def test_it_ends_with_the_epoch(health: Health) -> None:
    call = Call(health, [BucketUnavailableError("away")] * 2)
    end = EpochEnd(1)
    end.end("the test says so")
    with pytest.raises(SequencerLostError, match="the test says so"):
        await UntilAnswered(health, end, longest_pause_ms=1)(call, BrokerPart.BUCKET)
    assert len(call.reports) == 1


async def test_what_another_call_found_out_is_recovered_by_whichever_is_answered(
    health: Health,
) -> None:
    until_answered = UntilAnswered(health, EpochEnd(1), longest_pause_ms=1)
    given_up = asyncio.create_task(
        until_answered(Call(health, [BucketUnavailableError("away")] * 1000), BrokerPart.BUCKET)
    )
    await eventually_async(lambda: not health.ready)
    given_up.cancel()
    await asyncio.wait([given_up])
    assert health.degraded == {BrokerPart.BUCKET}
    assert await until_answered(Call(health, []), BrokerPart.BUCKET) == 7
    assert health.ready


async def test_the_pauses_double_up_to_the_longest(
    health: Health, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(delay_s: float) -> None:
        pauses.append(round(delay_s, 6))

    monkeypatch.setattr(asyncio, "sleep", sleep)
    call = Call(health, [BucketUnavailableError("away")] * 5)
    await UntilAnswered(health, EpochEnd(1), longest_pause_ms=100)(call, BrokerPart.BUCKET)
    assert pauses == [0.02, 0.04, 0.08, 0.1, 0.1]


async def test_a_refusal_is_an_answer_after_which_the_part_works_again(health: Health) -> None:
    until_answered = UntilAnswered(health, EpochEnd(1), longest_pause_ms=1)
    call = Call(health, [SequencerUnavailableError("away"), WriterFencedError("fenced")])
    with pytest.raises(WriterFencedError):
        await until_answered(call, BrokerPart.REDIS)
    assert len(call.reports) == 2
    assert health.ready
