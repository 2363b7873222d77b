"""What `reserve` accepts, refuses and lets wait, on a real server (commit protocol, "Produce")."""

import pytest

from bucketlog.log_format.errors import SequencerLostError, WriterFencedError
from bucketlog.log_format.model import MAX_OFFSET, Ticket, TopicId, TopicIdPartition, WriterId
from bucketlog.metadata.fold import LogState, PartitionState, TopicState
from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    FactStatus,
    PublishStatus,
)
from tests.servers.sequencing import Sequencing, plain, produced

SEQUENCES = 2**31


def ok(base_offset: int) -> BatchAnswer:
    return BatchAnswer(BatchStatus.OK, base_offset)


def refused(status: BatchStatus, expected_sequence: int = -1) -> BatchAnswer:
    return BatchAnswer(status, expected_sequence)


async def test_offsets_follow_one_another_per_partition(sequencing: Sequencing) -> None:
    first = await sequencing.ask(
        sequencing.a, {("t", 0): [plain(3), plain(2)], ("t", 1): [plain(7)]}
    )
    second = await sequencing.ask(sequencing.b, {("t", 1): [plain()], ("t", 0): [plain()]})
    assert [list(part) for part in first.batches] == [[ok(0), ok(3)], [ok(0)]]
    assert [list(part) for part in second.batches] == [[ok(7)], [ok(5)]]
    assert (first.ticket, second.ticket) == (Ticket(1, 1), Ticket(1, 2))


async def test_a_repeat_gets_the_stored_answer(sequencing: Sequencing) -> None:
    wanted = {("t", 0): [produced(7, 0, 3)]}
    first = await sequencing.ask(sequencing.a, wanted, request="r")
    assert await sequencing.ask(sequencing.a, wanted, seq=1, request="r") == first
    again = await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    assert again.batches[0][0] == ok(3)


@pytest.mark.parametrize("seq", [0, 1, 3])
async def test_another_request_for_a_seq_that_is_not_next_is_refused(
    sequencing: Sequencing, seq: int
) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    with pytest.raises(SequencerLostError, match="seq: the next of the chain is 2"):
        await sequencing.ask(sequencing.a, {("t", 0): [plain()]}, seq=seq, request="other")


async def test_a_published_seq_is_not_answered_again(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]}, request="r")
    await sequencing.publish(sequencing.a)
    with pytest.raises(SequencerLostError, match="seq"):
        await sequencing.ask(sequencing.a, {("t", 0): [plain()]}, seq=1, request="r")


async def test_unknown_and_fenced_writers(sequencing: Sequencing) -> None:
    with pytest.raises(SequencerLostError, match="unknown: writer"):
        await sequencing.ask(WriterId("f" * 32), {("t", 0): [plain()]}, seq=0)
    await sequencing.fence(sequencing.a, 1)
    with pytest.raises(WriterFencedError, match="was sealed"):
        await sequencing.ask(sequencing.a, {("t", 0): [plain()]})


async def test_nothing_accepted_uses_no_seq_and_no_ticket(sequencing: Sequencing) -> None:
    answer = await sequencing.ask(
        sequencing.a,
        {("t", 0): [produced(7, 3)], ("t", 9): [plain()], ("gone", 0): [plain()]},
        [sequencing.wanted("delete", "gone")],
    )
    assert answer.ticket is None
    assert answer.low_ticket == -1
    assert list(answer.hw_stamps) == [-1, -1, -1]
    assert [part[0] for part in answer.batches] == [
        refused(BatchStatus.UNKNOWN_PRODUCER, 0),
        refused(BatchStatus.UNKNOWN_TOPIC),
        refused(BatchStatus.UNKNOWN_TOPIC),
    ]
    assert list(answer.fact_statuses) == [FactStatus.UNKNOWN_TOPIC]
    next_one = await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    assert next_one.ticket == Ticket(1, 1)


# Idempotent producers --------------------------------------------------------------------------


async def test_a_duplicate_of_an_open_batch_is_open_and_of_a_visible_one_has_its_offset(
    sequencing: Sequencing,
) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain(4), produced(7, 0, 3)]})
    for writer in (sequencing.a, sequencing.b):
        again = await sequencing.batch(writer, produced(7, 0, 3))
        assert again == BatchAnswer(BatchStatus.OPEN, 4)
    await sequencing.publish(sequencing.a)
    for writer in (sequencing.a, sequencing.b):
        again = await sequencing.batch(writer, produced(7, 0, 3))
        assert again == BatchAnswer(BatchStatus.DUPLICATE, 4)


async def test_a_decided_batch_is_open_still(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.a, {("t", 0): [produced(7, 0)]})
    assert await sequencing.publish(sequencing.a) is PublishStatus.DECIDED
    assert (await sequencing.batch(sequencing.b, produced(7, 0))).status is BatchStatus.OPEN


async def test_a_duplicate_in_the_same_request_is_open(sequencing: Sequencing) -> None:
    answer = await sequencing.ask(sequencing.a, {("t", 0): [produced(7, 0), produced(7, 0)]})
    assert list(answer.batches[0]) == [ok(0), BatchAnswer(BatchStatus.OPEN, 0)]


async def test_the_last_five_visible_batches_are_recognised(sequencing: Sequencing) -> None:
    for sequence in range(6):
        await sequencing.batch(sequencing.a, produced(7, sequence))
        await sequencing.publish(sequencing.a)
    answers = [await sequencing.batch(sequencing.a, produced(7, n)) for n in range(6)]
    assert answers[0] == refused(BatchStatus.FORGOTTEN_DUPLICATE)
    assert answers[1:] == [BatchAnswer(BatchStatus.DUPLICATE, n) for n in range(1, 6)]


@pytest.mark.parametrize(
    ("first", "records", "status"),
    [
        (0, 4, BatchStatus.FORGOTTEN_DUPLICATE),
        (0, 2, BatchStatus.FORGOTTEN_DUPLICATE),
        (4, 4, BatchStatus.FORGOTTEN_DUPLICATE),
        (2, 6, BatchStatus.FORGOTTEN_DUPLICATE),
        (4, 5, BatchStatus.OUT_OF_ORDER),
        (0, 28, BatchStatus.OUT_OF_ORDER),
        (9, 2, BatchStatus.OUT_OF_ORDER),
        (29, 1, BatchStatus.OUT_OF_ORDER),
        (SEQUENCES - 4, 4, BatchStatus.OUT_OF_ORDER),
    ],
)
async def test_a_batch_before_all_remembered_ones_is_in_the_log(
    sequencing: Sequencing, first: int, records: int, status: BatchStatus
) -> None:
    """Seven visible batches of four records: five are remembered, from sequence 8 on."""
    for sequence in range(0, 28, 4):
        await sequencing.batch(sequencing.a, produced(7, sequence, 4))
        await sequencing.publish(sequencing.a)
    answer = await sequencing.batch(sequencing.a, produced(7, first, records))
    assert answer.status is status
    of_newer = await sequencing.batch(sequencing.a, produced(7, 4, 4, epoch=1))
    assert of_newer.status is BatchStatus.OUT_OF_ORDER


async def test_a_batch_with_new_records_is_no_duplicate_after_sequences_wrapped(
    sequencing: Sequencing,
) -> None:
    """The remembered batches begin before the wrap, and end at sequence 9."""
    for first, records in [(0, SEQUENCES - 10), *((SEQUENCES - 10 + 4 * n, 4) for n in range(5))]:
        await sequencing.batch(sequencing.a, produced(7, first % SEQUENCES, records))
        await sequencing.publish(sequencing.a)
    late = await sequencing.batch(sequencing.a, produced(7, 3, 9))
    assert late == refused(BatchStatus.OUT_OF_ORDER, 10)


async def test_all_open_batches_are_recognised(sequencing: Sequencing) -> None:
    for sequence in range(9):
        await sequencing.batch(sequencing.a, produced(7, sequence))
    answers = [await sequencing.batch(sequencing.b, produced(7, n)) for n in range(9)]
    assert answers == [BatchAnswer(BatchStatus.OPEN, n) for n in range(9)]


async def test_half_a_duplicate_is_out_of_order(sequencing: Sequencing) -> None:
    await sequencing.batch(sequencing.a, produced(7, 0, 4))
    for first, records in [(0, 3), (0, 5), (1, 3), (3, 1), (5, 1)]:
        answer = await sequencing.batch(sequencing.a, produced(7, first, records))
        assert answer == refused(BatchStatus.OUT_OF_ORDER, 4)
    assert await sequencing.batch(sequencing.a, produced(7, 4)) == ok(4)


async def test_producers_and_partitions_have_sequences_of_their_own(
    sequencing: Sequencing,
) -> None:
    answer = await sequencing.ask(
        sequencing.a,
        {("t", 0): [produced(7, 0), produced(8, 0), produced(7, 1)], ("t", 1): [produced(7, 0)]},
    )
    assert [list(part) for part in answer.batches] == [[ok(0), ok(1), ok(2)], [ok(0)]]


@pytest.mark.parametrize(
    ("start", "records", "following"),
    [(SEQUENCES - 3, 3, 0), (SEQUENCES - 1, 3, 2), (SEQUENCES - 1, 1, 0)],
)
async def test_sequences_wrap(
    sequencing: Sequencing, start: int, records: int, following: int
) -> None:
    await sequencing.batch(sequencing.a, produced(7, 0, start))
    assert await sequencing.batch(sequencing.a, produced(7, start, records)) == ok(start)
    again = await sequencing.batch(sequencing.a, produced(7, start, records))
    assert again == BatchAnswer(BatchStatus.OPEN, start)
    answer = await sequencing.batch(sequencing.a, produced(7, following + 1))
    assert answer == refused(BatchStatus.OUT_OF_ORDER, following)
    assert await sequencing.batch(sequencing.a, produced(7, following)) == ok(start + records)


async def test_a_new_producer_epoch_starts_at_sequence_0_and_fences_the_old(
    sequencing: Sequencing,
) -> None:
    await sequencing.batch(sequencing.a, produced(7, 0, epoch=3))
    bumped = await sequencing.batch(sequencing.a, produced(7, 1, epoch=4))
    assert bumped == refused(BatchStatus.OUT_OF_ORDER, 0)
    assert await sequencing.batch(sequencing.a, produced(7, 0, epoch=4)) == ok(1)
    for sequence in (0, 1):
        old = await sequencing.batch(sequencing.a, produced(7, sequence, epoch=3))
        assert old == refused(BatchStatus.FENCED)
    assert await sequencing.batch(sequencing.a, produced(7, 1, epoch=4)) == ok(2)


async def test_wait_for_another_writers_pending_batch(sequencing: Sequencing) -> None:
    """And so do the later batches of that producer and partition, but nobody else's."""
    await sequencing.ask(sequencing.a, {("t", 0): [produced(7, 0)]})
    answer = await sequencing.ask(
        sequencing.b,
        {
            ("t", 0): [produced(7, 1), produced(7, 2), produced(8, 0), produced(7, 9)],
            ("t", 1): [produced(7, 0)],
        },
    )
    wait = refused(BatchStatus.WAIT)
    assert [list(part) for part in answer.batches] == [[wait, wait, ok(1), wait], [ok(0)]]


async def test_nothing_is_built_on_another_writers_pending_producer_epoch(
    sequencing: Sequencing,
) -> None:
    """Were it voided, the older epoch would not be fenced."""
    await sequencing.ask(sequencing.a, {("t", 0): [produced(7, 0, epoch=1)]})
    for batch in (produced(7, 0, epoch=2), produced(7, 5, epoch=0)):
        assert await sequencing.batch(sequencing.b, batch) == refused(BatchStatus.WAIT)
    await sequencing.publish(sequencing.a)
    old = await sequencing.batch(sequencing.b, produced(7, 5, epoch=0))
    assert old == refused(BatchStatus.FENCED)


async def test_no_wait_for_a_decided_batch_or_for_ones_own(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.a, {("t", 0): [produced(7, 0)]})
    assert await sequencing.batch(sequencing.a, produced(7, 1)) == ok(2)
    assert await sequencing.publish(sequencing.a) is PublishStatus.DECIDED
    assert (await sequencing.batch(sequencing.b, produced(7, 2))).status is BatchStatus.WAIT
    assert await sequencing.publish(sequencing.a) is PublishStatus.DECIDED
    assert await sequencing.batch(sequencing.b, produced(7, 2)) == ok(3)


# Offsets' end ----------------------------------------------------------------------------------


async def test_idle_producers_are_forgotten(sequencing: Sequencing) -> None:
    """Neither those that have written since, nor one whose batch is open."""

    async def forget(idle_ms: int) -> int:
        cursor, forgotten, kept = await sequencing.sequencer.forget_producers(
            1, "0", count=1000, idle_ms=idle_ms
        )
        assert cursor == "0"
        assert kept == len(await sequencing.records("producers"))
        return forgotten

    for producer in (7, 8, 9):
        await sequencing.ask(sequencing.a, {("t", 0): [produced(producer, 0, 2)]})
        if producer != 9:
            await sequencing.publish(sequencing.a)
    sequencing.now_ms += 1000
    await sequencing.ask(sequencing.b, {("t", 0): [produced(8, 2)]})
    assert await forget(idle_ms=1001) == 0
    sequencing.now_ms += 2
    assert await forget(idle_ms=1001) == 1
    assert [name.split(":")[0] for name in await sequencing.records("producers")] == ["8", "9"]
    await sequencing.publish(sequencing.a)
    sequencing.now_ms -= 5000  # the clock is set back
    assert await forget(idle_ms=1001) == 0
    sequencing.now_ms += 5000
    assert await forget(idle_ms=1001) == 1
    answer = await sequencing.batch(sequencing.a, produced(7, 2))
    assert answer.status is BatchStatus.UNKNOWN_PRODUCER
    assert (await sequencing.batch(sequencing.a, produced(7, 0))).status is BatchStatus.OK


async def test_all_producers_are_looked_at_in_parts(sequencing: Sequencing) -> None:
    batches = [produced(producer, 0) for producer in range(2000)]
    await sequencing.ask(sequencing.a, {("t", 0): batches})
    await sequencing.publish(sequencing.a)
    sequencing.now_ms += 10
    cursor, calls, forgotten = "0", 0, 0
    while calls == 0 or cursor != "0":
        cursor, count, _ = await sequencing.sequencer.forget_producers(
            1, cursor, count=100, idle_ms=5
        )
        calls, forgotten = calls + 1, forgotten + count
    assert forgotten == 2000
    assert calls > 5
    assert await sequencing.records("producers") == {}


async def test_producers_beyond_the_limit_are_asked_to_wait(sequencing: Sequencing) -> None:
    sequencing.sequencer.producer_rows.limit = 2
    answer = await sequencing.ask(
        sequencing.a,
        {
            ("t", 0): [produced(7, 0), produced(8, 0), produced(9, 0), produced(9, 1), plain()],
            ("t", 1): [produced(7, 0)],
        },
    )
    too_many = refused(BatchStatus.TOO_MANY_PRODUCERS)
    assert list(answer.batches[0]) == [ok(0), ok(1), too_many, too_many, ok(2)]
    assert list(answer.batches[1]) == [too_many]
    await sequencing.publish(sequencing.a)
    again = await sequencing.ask(sequencing.a, {("t", 0): [produced(7, 1), produced(9, 0)]})
    assert list(again.batches[0]) == [ok(3), too_many]
    rows = sequencing.sequencer.producer_rows
    assert (rows.known, rows.held_back) == (0, 4)
    await sequencing.sequencer.overdue(1, silent_ms=10_000, pending_ms=10_000)
    assert rows.known == 2


async def test_offsets_end_below_2_to_53(fresh: Sequencing) -> None:
    topic_id = TopicId(bytes(15) + b"\1")
    fresh.topic_ids["t"] = topic_id
    await fresh.activate(1, full_log(topic_id, MAX_OFFSET - 3))
    writer = await fresh.writer()
    answer = await fresh.ask(
        writer, {("t", 0): [plain(4), plain(2), produced(7, 0, 2), plain(1), plain(1)]}
    )
    limit = refused(BatchStatus.OFFSET_LIMIT)
    assert list(answer.batches[0]) == [limit, ok(MAX_OFFSET - 3), limit, ok(MAX_OFFSET - 1), limit]
    assert list(answer.hw_stamps) == [MAX_OFFSET - 3]
    assert (await fresh.records("partitions"))[f"{topic_id.hex()}:0"]["next"] == MAX_OFFSET


def full_log(topic_id: TopicId, next_offset: int) -> LogState:
    state = LogState()
    state.topics[topic_id] = TopicState(topic_id, "t", 1, {})
    state.names["t"] = topic_id
    state.partitions[TopicIdPartition(topic_id, 0)] = PartitionState(next_offset)
    return state


# Stamps ----------------------------------------------------------------------------------------


async def test_hw_stamps_are_the_lowest_open_base_else_next(sequencing: Sequencing) -> None:
    stamps = []
    for writer, parts in [
        (sequencing.a, {("t", 0): [plain(3)], ("t", 1): [plain(2)]}),
        (sequencing.b, {("t", 0): [plain(2)]}),
        (sequencing.b, {("t", 1): [plain()], ("t", 0): [plain(), plain()]}),
    ]:
        stamps.append(list((await sequencing.ask(writer, parts)).hw_stamps))
    assert stamps == [[0, 0], [0], [0, 0]]
    await sequencing.publish(sequencing.a)
    answer = await sequencing.ask(sequencing.a, {("t", 0): [plain()], ("t", 1): [plain()]})
    assert list(answer.hw_stamps) == [3, 2]
    await sequencing.publish(sequencing.b)
    answer = await sequencing.ask(sequencing.a, {("t", 0): [plain()], ("t", 1): [plain()]})
    assert list(answer.hw_stamps) == [5, 2]


async def test_low_ticket_is_the_lowest_open_one_else_ones_own(sequencing: Sequencing) -> None:
    lows = [(await sequencing.ask(sequencing.a, {("t", 0): [plain()]})).low_ticket]
    lows.append((await sequencing.ask(sequencing.b, {("t", 1): [plain()]})).low_ticket)
    await sequencing.publish(sequencing.a)
    lows.append((await sequencing.ask(sequencing.a, {("t", 0): [plain()]})).low_ticket)
    await sequencing.publish(sequencing.a)
    await sequencing.publish(sequencing.b)
    lows.append((await sequencing.ask(sequencing.b, {("t", 0): [plain()]})).low_ticket)
    assert lows == [1, 1, 2, 4]


async def test_a_request_with_thousands_of_partitions_and_producers(
    sequencing: Sequencing,
) -> None:
    """More than Lua's unpack takes at once."""
    count = 3000
    await sequencing.control(sequencing.a, "create", "wide", count)
    await sequencing.publish(sequencing.a)
    wanted = {("wide", p): [produced(7, 0, 2), produced(8 + p, 0)] for p in range(count)}
    answer = await sequencing.ask(sequencing.b, wanted)
    assert all(list(part) == [ok(0), ok(2)] for part in answer.batches)
    assert await sequencing.publish(sequencing.b) is PublishStatus.VISIBLE
    await sequencing.control(sequencing.a, "delete", "wide")
    assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE
    assert len(await sequencing.records("partitions")) == 2
