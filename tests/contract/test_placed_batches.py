"""Batches of a mirror, which get the offsets that they have, or none."""

import pytest

from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    PublishStatus,
    WantedBatch,
)
from tests.servers.sequencing import Sequencing, plain

WAIT = BatchAnswer(BatchStatus.WAIT, -1)


def placed(at: int, offsets: int = 1) -> WantedBatch:
    return WantedBatch(offsets, "", -1, -1, placed_at=at)


def ok(base_offset: int) -> BatchAnswer:
    return BatchAnswer(BatchStatus.OK, base_offset)


def misplaced(end: int) -> BatchAnswer:
    return BatchAnswer(BatchStatus.MISPLACED, end)


async def test_only_the_next_offset_is_accepted(sequencing: Sequencing) -> None:
    answer = await sequencing.ask(
        sequencing.a, {("t", 0): [placed(1), placed(0, 5), placed(4), placed(5, 2), placed(8)]}
    )
    assert list(answer.batches[0]) == [misplaced(0), ok(0), misplaced(5), ok(5), misplaced(7)]
    await sequencing.publish(sequencing.a)
    assert await sequencing.batch(sequencing.b, placed(0, 5)) == misplaced(7)
    assert await sequencing.batch(sequencing.b, placed(7)) == ok(7)


async def test_void_reservations_at_the_end_are_reserved_again(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [placed(0, 3)]})
    await sequencing.publish(sequencing.a)
    lost = await sequencing.ask(sequencing.a, {("t", 0): [placed(3, 4)]})
    assert list(lost.batches[0]) == [ok(3)]
    await sequencing.fence(sequencing.a, 2)
    assert await sequencing.batch(sequencing.b, placed(7)) == misplaced(3)
    again = await sequencing.ask(sequencing.b, {("t", 0): [placed(3, 2), placed(5, 2)]})
    assert list(again.batches[0]) == [ok(3), ok(5)]
    assert list(again.hw_stamps) == [3]
    await sequencing.publish(sequencing.b)
    assert await sequencing.batch(sequencing.b, plain()) == ok(7)


@pytest.mark.parametrize("is_decided", [False, True])
async def test_nothing_is_placed_behind_what_another_writer_may_lose(
    sequencing: Sequencing, is_decided: bool
) -> None:
    """A mirror that was killed may have batches under way. If its successor continued behind them
    and they became void, their records would be missing for ever."""
    third = await sequencing.writer()
    if is_decided:
        await sequencing.ask(sequencing.a, {("t", 0): [placed(0)], ("t", 1): [plain()]})
        await sequencing.ask(third, {("t", 0): [plain()]})
        assert await sequencing.publish(third) is PublishStatus.DECIDED
        assert await sequencing.batch(sequencing.b, placed(2)) == WAIT
        await sequencing.fence(sequencing.a, 1)
        assert await sequencing.batch(sequencing.b, placed(2)) == ok(2)
        return
    await sequencing.ask(sequencing.a, {("t", 0): [placed(0, 3)]})
    for at in (0, 3):
        assert await sequencing.batch(sequencing.b, placed(at)) == WAIT
    await sequencing.publish(sequencing.a)
    assert await sequencing.batch(sequencing.b, placed(0)) == misplaced(3)
    assert await sequencing.batch(sequencing.b, placed(3)) == ok(3)


async def test_open_batches_of_the_same_writer_are_followed(sequencing: Sequencing) -> None:
    for at in range(3):
        assert await sequencing.batch(sequencing.a, placed(at)) == ok(at)
    assert await sequencing.batch(sequencing.a, placed(1)) == WAIT
    assert await sequencing.batch(sequencing.a, placed(9)) == WAIT
    await sequencing.fence(sequencing.a, 1)
    assert await sequencing.batch(sequencing.b, placed(3)) == misplaced(0)
    assert await sequencing.batch(sequencing.b, placed(0)) == ok(0)
