"""Fencing a sealed writer, stamps alone, overdue writers, on a real server (commit protocol,
"Sealing a dead or slow writer")."""

import pytest

from bucketlog.log_format.errors import SequencerLostError, WriterFencedError
from bucketlog.log_format.model import SegmentId, Ticket, WriterId
from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    FactStatus,
    FenceResult,
    FenceStatus,
    OverdueReason,
    OverdueWriter,
    PublishResult,
    PublishStatus,
)
from tests.servers.sequencing import Sequencing, plain, produced

VISIBLE, DECIDED = PublishStatus.VISIBLE, PublishStatus.DECIDED
SILENT, STUCK = OverdueReason.SILENT, OverdueReason.STUCK


def refused(first: int) -> FenceResult:
    return FenceResult(FenceStatus.REFUSED, first)


# Fence -----------------------------------------------------------------------------------------


async def test_a_fence_voids_the_first_pending_and_all_later_ones(sequencing: Sequencing) -> None:
    for partition in (0, 1, 1):
        await sequencing.ask(sequencing.a, {("t", partition): [plain(10)]})
    await sequencing.publish(sequencing.a)
    for seq in (0, 1, 3, 4):
        assert await sequencing.fence(sequencing.a, seq) == refused(2)
    fenced = FenceResult(FenceStatus.FENCED, 2)
    assert await sequencing.fence(sequencing.a, 2) == fenced
    assert await sequencing.open_tickets() == []
    assert await sequencing.tickets_shown() == [0, 1]
    for name in ("reservations", "holders", "blocked", "indexes"):
        assert await sequencing.records(name) == {}


async def test_a_fence_may_be_repeated(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 1): [plain()], ("t", 0): [plain()]})
    answer = await sequencing.fence(sequencing.a, 1)
    assert answer == FenceResult(FenceStatus.FENCED, 1)
    before = await sequencing.records("partitions")
    assert await sequencing.fence(sequencing.a, 1) == answer
    assert await sequencing.records("partitions") == before
    for seq in (0, 2):
        assert await sequencing.fence(sequencing.a, seq) == refused(1)


async def test_a_writer_with_nothing_pending_is_fenced_at_its_next(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    assert await sequencing.publish(sequencing.a) is DECIDED
    assert await sequencing.fence(sequencing.a, 1) == refused(2)
    assert await sequencing.fence(sequencing.a, 2) == FenceResult(FenceStatus.FENCED, 2)
    assert await sequencing.publish(sequencing.b) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 2]


async def test_a_fenced_writer_reserves_and_publishes_no_more(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]}, request="r")
    await sequencing.fence(sequencing.a, 1)
    for seq, request in ((1, "r"), (1, "other"), (2, "other")):
        with pytest.raises(WriterFencedError, match="was sealed"):
            await sequencing.ask(sequencing.a, {("t", 0): [plain()]}, seq=seq, request=request)
    for seq in (1, 2, 9):
        published = await sequencing.sequencer.publish(
            1, SegmentId(sequencing.a, seq), footer=b"", object_size_bytes=1
        )
        assert published == PublishResult(PublishStatus.VOID, 1)
    assert await sequencing.publish(sequencing.a, 0) is PublishStatus.ALREADY
    answer = await sequencing.batch(sequencing.b, plain())
    assert answer == BatchAnswer(BatchStatus.OK, 1)


async def test_a_fence_of_an_unknown_writer_is_lost(sequencing: Sequencing) -> None:
    with pytest.raises(SequencerLostError, match="unknown: writer"):
        await sequencing.fence(WriterId("f" * 32), 0)


async def test_what_waited_for_a_void_segment_moves_on(sequencing: Sequencing) -> None:
    """Through several writers: c waited for b alone, b for a."""
    c = await sequencing.writer()
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.b, {("t", 0): [plain()], ("t", 1): [plain()]})
    await sequencing.ask(c, {("t", 1): [plain()]})
    assert await sequencing.publish(c) is DECIDED
    assert await sequencing.publish(sequencing.b) is DECIDED
    await sequencing.void(sequencing.a, 1)
    assert await sequencing.tickets_shown() == [0, 2, 3]


async def test_waiting_requests_are_accepted_after_a_fence(sequencing: Sequencing) -> None:
    """As if the void ones had never been: no sequence is out of order, no topic entry is there."""
    await sequencing.ask(
        sequencing.a, {("t", 0): [produced(7, 0, 5)]}, [sequencing.wanted("create", "u", 1)]
    )
    create = sequencing.wanted("create", "u", 3)
    blocked = await sequencing.ask(sequencing.b, {("t", 0): [produced(7, 5)]}, [create])
    assert blocked.batches[0][0].status is BatchStatus.WAIT
    assert list(blocked.fact_statuses) == [FactStatus.WAIT]
    await sequencing.void(sequencing.a, 1)
    again = await sequencing.ask(
        sequencing.b, {("t", 0): [produced(7, 5), produced(7, 0, 5)]}, [create]
    )
    assert list(again.fact_statuses) == [FactStatus.OK]
    assert [answer.status for answer in again.batches[0]] == [
        BatchStatus.UNKNOWN_PRODUCER,
        BatchStatus.OK,
    ]


async def test_any_broker_publishes_for_a_dead_writer(sequencing: Sequencing) -> None:
    """Its object is in the bucket: a seal was refused. That is no sign of life."""
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    sequencing.now_ms += 5000
    assert await sequencing.publish(sequencing.a) is VISIBLE
    overdue = await sequencing.sequencer.overdue(1, silent_ms=4999, pending_ms=9999)
    assert OverdueWriter(sequencing.a, 2, SILENT) in overdue
    assert (await sequencing.fence(sequencing.a, 2)).status is FenceStatus.FENCED


# Fresh stamps ----------------------------------------------------------------------------------


async def test_a_stamp_alone_is_the_high_watermark_shown(sequencing: Sequencing) -> None:
    """Never `next`: what is open may still be void, and would be given out again."""
    await sequencing.ask(sequencing.b, {("t", 0): [plain(3)]})
    await sequencing.publish(sequencing.b)
    await sequencing.ask(sequencing.b, {("t", 0): [plain(4)]})
    answer = await sequencing.ask(
        sequencing.a, {("t", 0): [], ("t", 1): [], ("t", 2): [], ("gone", 0): []}
    )
    assert answer.ticket == Ticket(1, 3)
    assert list(answer.hw_stamps) == [3, 0, -1, -1]
    assert [list(part) for part in answer.batches] == [[], [], [], []]
    assert await sequencing.publish(sequencing.a) is VISIBLE
    assert await sequencing.publish(sequencing.b) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 3, 2]


async def test_nothing_waits_for_a_stamp_alone(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): []})
    answer = await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    assert list(answer.hw_stamps) == [0]
    assert await sequencing.publish(sequencing.b) is VISIBLE
    assert await sequencing.fence(sequencing.a, 1) == FenceResult(FenceStatus.FENCED, 1)


async def test_a_stamp_of_nothing_that_exists_needs_no_ticket(sequencing: Sequencing) -> None:
    assert (await sequencing.ask(sequencing.a, {("t", 9): [], ("gone", 0): []})).ticket is None


# Overdue writers -------------------------------------------------------------------------------


async def overdue(sequencing: Sequencing) -> list[OverdueWriter]:
    return await sequencing.sequencer.overdue(1, silent_ms=100, pending_ms=1000)


async def test_a_silent_writer_is_overdue(sequencing: Sequencing) -> None:
    """`reserve` is a sign of life; a writer's place is its first pending seq, or its next."""
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    sequencing.now_ms += 100
    assert await overdue(sequencing) == []
    sequencing.now_ms += 1
    expected = [OverdueWriter(sequencing.a, 1, SILENT), OverdueWriter(sequencing.b, 0, SILENT)]
    assert await overdue(sequencing) == sorted(expected)
    await sequencing.ask(sequencing.a, {("t", 1): [plain()]})
    assert await overdue(sequencing) == [OverdueWriter(sequencing.b, 0, SILENT)]


async def test_a_stuck_writer_is_overdue_though_it_lives(sequencing: Sequencing) -> None:
    """Its oldest pending reservation counts; what is decided does not, though it is open still."""
    c = await sequencing.writer()
    for _ in range(2):
        await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
        await sequencing.ask(c, {("t", 0): [plain()]})
        sequencing.now_ms += 600
    for writer in (sequencing.a, sequencing.b, c):
        await sequencing.ask(writer, {("t", 1): []})
    stuck = [OverdueWriter(sequencing.a, 1, STUCK), OverdueWriter(c, 0, STUCK)]
    assert await overdue(sequencing) == sorted(stuck)
    assert await sequencing.publish(c) is DECIDED
    assert await overdue(sequencing) == stuck[:1]
    assert await sequencing.publish(sequencing.a) is VISIBLE
    assert await overdue(sequencing) == []
    sequencing.now_ms += 50
    await sequencing.ask(c, {("t", 1): []})
    assert (await sequencing.sequencer.overdue(1, silent_ms=100, pending_ms=600)) == sorted(
        [OverdueWriter(sequencing.a, 2, STUCK), OverdueWriter(c, 1, STUCK)]
    )


async def test_a_writer_of_a_time_yet_to_come_is_overdue(sequencing: Sequencing) -> None:
    """The clock was set back: a dead writer's age would not begin for as long as that."""
    sequencing.now_ms += 10_000
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    sequencing.now_ms -= 9_899
    expected = [OverdueWriter(sequencing.a, 1, SILENT), OverdueWriter(sequencing.b, 0, SILENT)]
    assert await overdue(sequencing) == sorted(expected)
    told = await sequencing.sequencer.overdue(1, silent_ms=20_000, pending_ms=600)
    assert told == [OverdueWriter(sequencing.b, 0, STUCK)]


async def test_a_fenced_writer_is_overdue_no_more(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    sequencing.now_ms += 5000
    assert [each.writer for each in await overdue(sequencing)] == sorted(
        [sequencing.a, sequencing.b]
    )
    await sequencing.fence(sequencing.a, 1)
    await sequencing.fence(sequencing.b, 0)
    assert await overdue(sequencing) == []
