"""Publishing in chain order, visibility by dependencies, roll-back, on a real server."""

from itertools import permutations

import ormsgpack
import pytest

from bucketlog.log_format.errors import SequencerLostError
from bucketlog.log_format.model import SegmentId, WriterId
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    FactStatus,
    PublishResult,
    PublishStatus,
)
from tests.servers.sequencing import NOW_MS, Sequencing, plain, produced

VISIBLE, DECIDED = PublishStatus.VISIBLE, PublishStatus.DECIDED


async def test_publish_is_in_chain_order(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.a, {("t", 1): [plain()]})
    with pytest.raises(SequencerLostError, match="early: the first pending is 1"):
        await sequencing.publish(sequencing.a, 2)
    with pytest.raises(SequencerLostError, match="unknown: the next of the chain is 3"):
        await sequencing.publish(sequencing.a, 3)
    assert await sequencing.publish(sequencing.a, 0) is PublishStatus.ALREADY
    assert await sequencing.publish(sequencing.a, 1) is VISIBLE
    assert await sequencing.publish(sequencing.a, 1) is PublishStatus.ALREADY
    assert await sequencing.publish(sequencing.a, 2) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 2]


async def test_the_answer_has_the_number_in_the_stream(sequencing: Sequencing) -> None:
    """Of the published segment, also if it makes others visible, which follow it."""
    for writer in (sequencing.a, sequencing.b, sequencing.b):
        await sequencing.ask(writer, {("t", 0): [plain()]})

    async def publish(writer: WriterId, seq: int) -> PublishResult:
        segment = SegmentId(writer, seq)
        return await sequencing.sequencer.publish(1, segment, footer=b"", object_size_bytes=1)

    assert await publish(sequencing.b, 0) == PublishResult(DECIDED)
    first = await publish(sequencing.a, 1)
    assert await publish(sequencing.a, 1) == PublishResult(PublishStatus.ALREADY)
    last = await publish(sequencing.b, 1)
    shown = {
        (each.segment.writer, each.segment.seq): each.number for each in await sequencing.shown()
    }
    assert first == PublishResult(VISIBLE, number=shown[sequencing.a, 1])
    assert last == PublishResult(VISIBLE, number=shown[sequencing.b, 1])
    assert sorted(shown.values()) == [1, 2, 3, 4]


async def test_an_unknown_writer_and_a_fenced_one(sequencing: Sequencing) -> None:
    with pytest.raises(SequencerLostError, match="unknown: writer"):
        await sequencing.publish(WriterId("f" * 32), 0)
    for _ in range(3):
        await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    assert await sequencing.publish(sequencing.a, 1) is VISIBLE
    await sequencing.fence(sequencing.a, 2)
    for seq in (2, 3, 4):
        segment = SegmentId(sequencing.a, seq)
        answer = await sequencing.sequencer.publish(1, segment, footer=b"", object_size_bytes=1)
        assert answer == PublishResult(PublishStatus.VOID, 2)
    assert await sequencing.publish(sequencing.a, 0) is PublishStatus.ALREADY
    assert await sequencing.publish(sequencing.a, 1) is PublishStatus.ALREADY


async def test_a_reservation_that_is_gone_is_unknown(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    await sequencing.redis.hdel(sequencing.key("reservations"), "1")
    with pytest.raises(SequencerLostError, match="unknown: the reservation of ticket 1 is gone"):
        await sequencing.publish(sequencing.a)


ORDERS = sorted(set(permutations("aaabbb")))


@pytest.mark.parametrize("order", ORDERS, ids="".join)
async def test_two_writers_interleaved_in_every_order(
    sequencing: Sequencing, order: tuple[str, ...]
) -> None:
    """Tickets 1 to 6: a0 b0 a01 b1 a0 b01 (partitions). Each shows once its writer has published
    it and everything before it that touches its partitions, or precedes it in its chain, shows."""
    touched = [("a", {0}), ("b", {0}), ("a", {0, 1}), ("b", {1}), ("a", {0}), ("b", {0, 1})]
    writers = {"a": sequencing.a, "b": sequencing.b}
    for name, partitions in touched:
        await sequencing.ask(writers[name], {("t", p): [plain()] for p in partitions})
    needs = {
        ticket: {
            before
            for before in range(1, ticket)
            if touched[before - 1][1] & partitions or touched[before - 1][0] == name
        }
        for ticket, (name, partitions) in enumerate(touched, 1)
    }
    decided: set[int] = set()
    visible: set[int] = set()
    for name in order:
        ticket = next(t for t, (n, _) in enumerate(touched, 1) if n == name and t not in decided)
        decided.add(ticket)
        status = await sequencing.publish(writers[name])
        while grown := {t for t in decided - visible if needs[t] <= visible}:
            visible |= grown
        assert status is (VISIBLE if ticket in visible else DECIDED)
        shown = (await sequencing.tickets_shown())[1:]
        assert set(shown) == visible
        assert all(needs[t] <= set(shown[:at]) for at, t in enumerate(shown))


async def test_dependencies_are_all_earlier_open_segments_not_only_the_last(
    sequencing: Sequencing,
) -> None:
    """The last of a partition may become visible or void while an earlier one is open."""
    c = await sequencing.writer()
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    await sequencing.ask(c, {("t", 0): [plain()]})
    assert await sequencing.publish(c) is DECIDED
    await sequencing.void(sequencing.b, 0)
    assert await sequencing.tickets_shown() == [0]
    assert await sequencing.publish(sequencing.a) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 3]


async def test_the_stream_says_what_a_view_needs(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    await sequencing.publish(sequencing.b)
    created, batch = await sequencing.shown()
    assert (created.epoch, created.number, batch.epoch, batch.number) == (1, 1, 1, 2)
    assert batch.segment == SegmentId(sequencing.b, 0)
    assert (batch.footer, batch.object_size_bytes) == (b"footer of 0", 1000)
    assert await sequencing.shown(after=2) == []


async def test_the_stream_is_bounded_in_bytes(sequencing: Sequencing) -> None:
    """The limit of each call applies. The newest entry stays, however large it is."""
    footers = "footer of 0", "footer of 1"
    limited = [
        Sequencer(
            sequencing.redis,
            cluster_id=sequencing.cluster_id,
            stream_bytes_max=bytes_max,
            now_ms=lambda: NOW_MS,
        )
        for bytes_max in (10_000, 3 * len(footers[0]), 1, 2 * len(footers[0]))
    ]
    kept = []
    for sequencer in (limited[0],) * 3 + (limited[1],) * 3 + (limited[2],) + (limited[3],) * 3:
        sequencing.sequencer = sequencer
        await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
        assert await sequencing.publish(sequencing.b) is VISIBLE
        numbers = [entry.number for entry in await sequencing.shown()]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        kept.append(numbers)
    assert [len(numbers) for numbers in kept] == [2, 3, 4, 3, 3, 3, 1, 2, 2, 2]
    assert [numbers[-1] for numbers in kept] == list(range(2, 12))


async def test_nothing_is_left_of_what_is_visible(sequencing: Sequencing) -> None:
    for _ in range(3):
        await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
        await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    for _ in range(3):
        await sequencing.publish(sequencing.b)
    for _ in range(3):
        await sequencing.publish(sequencing.a)
    for name in ("reservations", "holders", "blocked", "indexes"):
        assert await sequencing.records(name) == {}
    assert await sequencing.open_tickets() == []
    partition = (await sequencing.records("partitions"))[f"{sequencing.topic_ids['t'].hex()}:0"]
    assert partition == {"next": 6, "visible_end": 6, "log_start": 0, "open": ""}


# Topics ----------------------------------------------------------------------------------------


async def test_topic_entries_are_checked(sequencing: Sequencing) -> None:
    async def status(verb: str, name: str, partitions: int = 0) -> FactStatus:
        return (await sequencing.control(sequencing.a, verb, name, partitions)).fact_statuses[0]

    topic_id = sequencing.topic_ids["t"]
    assert await status("create", "t", 3) is FactStatus.EXISTS
    assert await status("grow", "t", 3) is FactStatus.UNKNOWN_TOPIC  # another id
    sequencing.topic_ids["t"] = topic_id
    assert await status("grow", "t", 2) is FactStatus.INVALID_PARTITIONS
    assert await status("grow", "nothing", 2) is FactStatus.UNKNOWN_TOPIC
    assert await status("delete", "nothing") is FactStatus.UNKNOWN_TOPIC
    assert await status("grow", "t", 3) is FactStatus.OK
    assert await status("grow", "t", 3) is FactStatus.INVALID_PARTITIONS
    assert await status("delete", "t") is FactStatus.OK
    assert await status("delete", "t") is FactStatus.UNKNOWN_TOPIC
    assert await status("create", "t", 1) is FactStatus.OK
    for _ in range(3):
        assert await sequencing.publish(sequencing.a) is VISIBLE
    assert await sequencing.records("topics") == {
        "t": [[-1, sequencing.topic_ids["t"].hex(), 1, False]]
    }
    assert list(await sequencing.records("partitions")) == [f"{sequencing.topic_ids['t'].hex()}:0"]


async def test_several_entries_of_a_topic_in_one_segment(sequencing: Sequencing) -> None:
    create = sequencing.wanted("create", "u", 1)
    grow, more = sequencing.wanted("grow", "u", 2), sequencing.wanted("grow", "u", 4)
    answer = await sequencing.ask(sequencing.a, control=[create, grow, more])
    assert set(answer.fact_statuses) == {FactStatus.OK}
    await sequencing.publish(sequencing.a)
    topic_id = sequencing.topic_ids["u"].hex()
    assert (await sequencing.records("topics"))["u"] == [[-1, topic_id, 4, False]]
    assert {f"{topic_id}:{p}" for p in range(4)} <= set(await sequencing.records("partitions"))
    delete = sequencing.wanted("delete", "u")
    again, gone = sequencing.wanted("create", "u", 1), sequencing.wanted("delete", "u")
    answer = await sequencing.ask(sequencing.a, control=[delete, again, gone])
    assert set(answer.fact_statuses) == {FactStatus.OK}
    await sequencing.publish(sequencing.a)
    assert set(await sequencing.records("topics")) == {"t"}
    assert len(await sequencing.records("partitions")) == 2


async def test_entries_and_batches_wait_for_another_writers_pending_entry(
    sequencing: Sequencing,
) -> None:
    grow = sequencing.wanted("grow", "t", 4)
    assert list((await sequencing.ask(sequencing.a, control=[grow])).fact_statuses) == [
        FactStatus.OK
    ]
    blocked = await sequencing.ask(sequencing.b, {("t", 0): [plain(), produced(7, 0)]}, [grow])
    assert blocked.ticket is None
    assert [answer.status for answer in blocked.batches[0]] == [BatchStatus.WAIT] * 2
    assert list(blocked.fact_statuses) == [FactStatus.WAIT]
    assert (await sequencing.batch(sequencing.a, plain())).status is BatchStatus.OK
    await sequencing.publish(sequencing.a)
    after = await sequencing.ask(sequencing.b, {("t", 3): [plain()]}, [grow])
    assert after.batches[0][0] == BatchAnswer(BatchStatus.OK, 0)
    assert list(after.fact_statuses) == [FactStatus.INVALID_PARTITIONS]


async def test_a_batch_waits_for_a_pending_deletion_and_new_creation(
    sequencing: Sequencing,
) -> None:
    """Were it voided, the old topic would be there again: no batch is told otherwise."""
    old = sequencing.topic_ids["t"]
    delete = sequencing.wanted("delete", "t")
    await sequencing.ask(sequencing.a, control=[delete, sequencing.wanted("create", "t", 2)])
    new = sequencing.topic_ids["t"]
    for topic_id in (old, new):
        sequencing.topic_ids["t"] = topic_id
        assert (await sequencing.batch(sequencing.b, plain())).status is BatchStatus.WAIT
    await sequencing.publish(sequencing.a)
    assert (await sequencing.batch(sequencing.b, plain())).status is BatchStatus.OK
    sequencing.topic_ids["t"] = old
    assert (await sequencing.batch(sequencing.b, plain())).status is BatchStatus.UNKNOWN_TOPIC


@pytest.mark.parametrize("verb", ["delete", "grow", "configure"])
async def test_a_topic_entry_touches_all_partitions(sequencing: Sequencing, verb: str) -> None:
    await sequencing.ask(sequencing.b, {("t", 1): [plain()]})
    await sequencing.control(sequencing.a, verb, "t", 5)
    assert await sequencing.publish(sequencing.a) is DECIDED
    assert await sequencing.publish(sequencing.b) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 2]


async def test_a_deletion_writes_only_to_partitions_with_open_batches(
    sequencing: Sequencing,
) -> None:
    topic_id = sequencing.topic_ids["t"].hex()
    await sequencing.ask(sequencing.b, {("t", 1): [plain()]})
    before = await sequencing.records("partitions")
    await sequencing.control(sequencing.a, "delete", "t")
    after = await sequencing.records("partitions")
    assert [key for key in after if after[key] != before[key]] == [f"{topic_id}:1"]
    await sequencing.void(sequencing.a, 1)
    assert await sequencing.records("partitions") == before
    await sequencing.control(sequencing.b, "delete", "t")
    assert [await sequencing.publish(sequencing.b) for _ in range(2)] == [VISIBLE, VISIBLE]
    assert await sequencing.records("partitions") == {}


async def test_a_number_that_looks_like_an_empty_list_does_not_hide_a_batch(
    sequencing: Sequencing,
) -> None:
    field = f"{sequencing.topic_ids['t'].hex()}:1"
    await sequencing.ask(sequencing.b, {("t", 1): [plain()]})
    record = (await sequencing.records("partitions"))[field]
    looks_empty, seq = int.from_bytes(b"\xa4open\xa0"), 1
    for record_of in (
        {"next": looks_empty, **{key: record[key] for key in ("visible_end", "log_start", "open")}},
        {**{key: record[key] for key in ("visible_end", "log_start", "open")}, "next": looks_empty},
    ):
        await sequencing.redis.hset(sequencing.key("partitions"), field, ormsgpack.packb(record_of))
        answer = await sequencing.control(sequencing.a, "delete", "t")
        assert list(answer.fact_statuses) == [FactStatus.OK]
        assert (await sequencing.records("partitions"))[field]["open"].count(",") == 2
        await sequencing.void(sequencing.a, seq)
        seq, sequencing.a = 0, await sequencing.writer()


async def test_an_open_deletion_does_not_touch_partitions_that_come_into_being(
    sequencing: Sequencing,
) -> None:
    topic_id = sequencing.topic_ids["t"].hex()
    await sequencing.control(sequencing.a, "grow", "t", 4)
    await sequencing.control(sequencing.a, "delete", "t")
    assert await sequencing.publish(sequencing.a) is VISIBLE
    records = await sequencing.records("partitions")
    assert records[f"{topic_id}:3"]["open"] == ""
    assert await sequencing.publish(sequencing.a) is VISIBLE
    assert await sequencing.records("partitions") == {}


async def test_a_batch_depends_on_an_open_entry_of_its_topic(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.b, {("t", 1): [plain()]})
    await sequencing.control(sequencing.a, "grow", "t", 5)
    assert await sequencing.publish(sequencing.a) is DECIDED
    c = await sequencing.writer()
    await sequencing.ask(c, {("t", 0): [plain()]})
    assert await sequencing.publish(c) is DECIDED
    assert await sequencing.publish(sequencing.b) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 2, 3]


async def test_open_entries_touch_partitions_that_come_into_being(sequencing: Sequencing) -> None:
    """Three grow, one after another; the second is held up by a batch of another topic. A batch in
    what the first has made waits for the other two; and they go on once they are free."""
    await sequencing.control(sequencing.a, "create", "u", 1)
    await sequencing.publish(sequencing.a)
    await sequencing.ask(sequencing.b, {("u", 0): [plain()]})
    await sequencing.control(sequencing.a, "grow", "t", 3)
    held_up = sequencing.wanted("grow", "t", 4)
    await sequencing.ask(sequencing.a, {("u", 0): [plain()]}, [held_up])
    await sequencing.control(sequencing.a, "grow", "t", 5)
    assert await sequencing.publish(sequencing.a) is VISIBLE
    for _ in range(2):
        assert await sequencing.publish(sequencing.a) is DECIDED
    c = await sequencing.writer()
    await sequencing.ask(c, {("t", 2): [plain()]})
    assert await sequencing.publish(c) is DECIDED
    assert await sequencing.tickets_shown() == [0, 1, 3]
    assert await sequencing.publish(sequencing.b) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 3, 2, 4, 5, 6]


async def test_entries_precede_batches_in_a_segment(sequencing: Sequencing) -> None:
    delete = sequencing.wanted("delete", "t")
    answer = await sequencing.ask(sequencing.a, {("t", 0): [plain()]}, [delete])
    assert answer.batches[0][0].status is BatchStatus.UNKNOWN_TOPIC
    assert list(answer.fact_statuses) == [FactStatus.OK]


# Roll-back -------------------------------------------------------------------------------------


async def test_a_void_segment_leaves_a_gap_and_nothing_else(sequencing: Sequencing) -> None:
    await sequencing.batch(sequencing.a, produced(7, 0, 2))
    await sequencing.publish(sequencing.a)
    grow = sequencing.wanted("grow", "t", 4)
    await sequencing.ask(sequencing.a, {("t", 0): [produced(7, 2, 3), produced(8, 0)]}, [grow])
    await sequencing.void(sequencing.a, 2)
    assert (await sequencing.records("topics"))["t"][-1][2] == 2
    topic_id = sequencing.topic_ids["t"].hex()
    assert await sequencing.records("producers") == {f"7:{topic_id}:0": [[-1, 0, 0, 1, 0, NOW_MS]]}
    answer = await sequencing.batch(sequencing.b, produced(7, 2, 3))
    assert answer == BatchAnswer(BatchStatus.OK, 6)
    partition = (await sequencing.records("partitions"))[f"{topic_id}:0"]
    assert (partition["next"], partition["visible_end"]) == (9, 2)
