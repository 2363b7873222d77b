"""Assembling segments: what the sequencer is asked, and the object's bytes as they are read."""

import asyncio
from uuid import UUID

import pytest

from bucketlog.log_format.batch import crc_holds, read_header
from bucketlog.log_format.model import SegmentId, Ticket, TopicId, TopicIdPartition, WriterId
from bucketlog.metadata.facts import TopicCreated, TopicDeleted, encode_fact
from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    FactStatus,
    Reservation,
    WantedBatch,
    WantedTopicChange,
)
from bucketlog.stateless_broker.produce.commit_steps import Flush, assemble
from bucketlog.stateless_broker.produce.intake import (
    BatchOutcome,
    FlushInput,
    PendingBatch,
)
from bucketlog.stateless_broker.produce.pending_facts import PendingFact
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.segment import decode_footer
from tests.rigs.wire_client import build_batch

A, B = TopicId(UUID(int=1).bytes), TopicId(UUID(int=2).bytes)
SEGMENT = SegmentId(WriterId(UUID(int=7).hex), 3)


class Call:
    answered = False

    def settle(self, row: int, outcome: BatchOutcome) -> None:
        raise AssertionError("assembling settles nothing")


def pending(
    topic_id: TopicId,
    partition: int,
    values: list[bytes],
    *,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> PendingBatch:
    data = bytearray(
        build_batch(
            [(None, value) for value in values],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
    )
    return PendingBatch(
        "a" if topic_id == A else "b",
        TopicIdPartition(topic_id, partition),
        memoryview(data),
        read_header(data),
        Call(),
        0,
    )


def flush_of(
    batches: list[PendingBatch],
    facts: list[PendingFact] | None = None,
    stamps: list[TopicIdPartition] | None = None,
) -> Flush:
    names = {A: "a", B: "b"}
    return Flush.of(FlushInput(batches, facts or [], stamps or []), names.get)


def answers(*rows: list[BatchAnswer], control: list[FactStatus]) -> Reservation:
    return Reservation(Ticket(4, 17), 11, [100 + at for at in range(len(rows))], rows, control)


def ok(offset: int) -> BatchAnswer:
    return BatchAnswer(BatchStatus.OK, offset)


def test_batches_are_sorted_by_partition_and_stay_in_order_within() -> None:
    first, second = pending(B, 0, [b"1"]), pending(B, 0, [b"2"])
    other, low = pending(A, 1, [b"3"]), pending(A, 0, [b"4"])
    flush = flush_of([first, other, second, low])
    assert flush.groups == [
        (TopicIdPartition(A, 0), [low]),
        (TopicIdPartition(A, 1), [other]),
        (TopicIdPartition(B, 0), [first, second]),
    ]


def test_what_the_sequencer_is_asked() -> None:
    plain = pending(A, 0, [b"1", b"2"])
    idempotent = pending(A, 0, [b"3"], producer_id=2**53 + 1, producer_epoch=4, base_sequence=9)
    (wanted,) = flush_of([plain, idempotent]).wanted()
    assert (wanted.topic_name, wanted.topic_id, wanted.partition) == ("a", A, 0)
    assert wanted.batches == [
        WantedBatch(2, "", -1, -1),
        WantedBatch(1, str(2**53 + 1), 4, 9),
    ]


async def test_the_object_holds_what_was_accepted_at_its_offsets() -> None:
    batches = [
        pending(A, 0, [b"1", b"2"]),
        pending(A, 0, [b"refused"]),
        pending(A, 0, [b"3"]),
        pending(A, 1, [b"duplicate"]),
        pending(B, 0, [b"4"], producer_id=5, producer_epoch=1, base_sequence=8),
    ]
    created = TopicCreated(topic_id=UUID(int=9), name="new", partitions=2)
    deleted = TopicDeleted(topic_id=UUID(int=8), name="not-there")
    loop = asyncio.get_running_loop()
    facts = [
        PendingFact(encode_fact(fact), WantedTopicChange("", "", A, 0), loop.create_future())
        for fact in (created, deleted)
    ]
    flush = flush_of(batches, facts)
    reservation = answers(
        [ok(40), BatchAnswer(BatchStatus.OUT_OF_ORDER, -1), ok(42)],
        [BatchAnswer(BatchStatus.DUPLICATE, 7)],
        [ok(2**40)],
        control=[FactStatus.OK, FactStatus.UNKNOWN_TOPIC],
    )
    assembled = assemble(flush, reservation, SEGMENT, created_ms=1234)

    data = b"".join(assembled.parts)
    index = decode_footer(keys.segment(SEGMENT), data, len(data))
    assert not isinstance(index, int)
    assert index == assembled.index
    assert (index.segment, index.ticket, index.low_ticket) == (SEGMENT, Ticket(4, 17), 11)
    assert index.created_ms == 1234
    assert index.facts == (encode_fact(created),)
    assert [(part.partition, part.hw_stamp) for part in index.partitions] == [
        (TopicIdPartition(A, 0), 100),
        (TopicIdPartition(B, 0), 102),
    ]
    assert assembled.batches == [(batches[0], 40), (batches[2], 42), (batches[4], 2**40)]
    assert assembled.facts == facts[:1]
    assert data.endswith(assembled.footer)
    rows = [row for part in index.partitions for row in part.batches]
    for row, (batch, offset) in zip(rows, assembled.batches, strict=True):
        stored = data[row.position : row.position + row.length]
        assert stored == bytes(batch.data)
        header = read_header(stored)
        assert header.base_offset == row.base_offset == offset
        assert header.leader_epoch == 0
        assert crc_holds(stored, header)
    assert rows[2].producer_id == 5
    assert (rows[2].producer_epoch, rows[2].base_sequence) == (1, 8)


def test_nothing_is_assembled_without_a_ticket() -> None:
    flush = flush_of([pending(A, 0, [b"1"])])
    refused = Reservation(None, -1, [-1], [[BatchAnswer(BatchStatus.OUT_OF_ORDER, -1)]], [])
    with pytest.raises(ValueError, match="nothing was reserved"):
        assemble(flush, refused, SEGMENT, created_ms=0)


def test_a_stamp_is_asked_for_alone_or_rides_with_batches() -> None:
    one = pending(A, 0, [b"1"])
    flush = flush_of([one], stamps=[TopicIdPartition(A, 0), TopicIdPartition(B, 3)])
    assert flush.groups == [(TopicIdPartition(A, 0), [one]), (TopicIdPartition(B, 3), [])]
    assert [(part.topic_name, part.partition, len(part.batches)) for part in flush.wanted()] == [
        ("a", 0, 1),
        ("b", 3, 0),
    ]


def test_a_stamp_of_a_topic_that_is_gone_is_not_asked_for() -> None:
    gone = TopicId(UUID(int=3).bytes)
    flush = flush_of([], stamps=[TopicIdPartition(gone, 0)])
    assert flush.groups == []
    assert flush.wanted() == []


def test_a_segment_of_stamps_alone() -> None:
    flush = flush_of(
        [], stamps=[TopicIdPartition(A, 0), TopicIdPartition(A, 1), TopicIdPartition(B, 0)]
    )
    reservation = Reservation(Ticket(4, 17), 11, [40, -1, 0], [[], [], []], [])
    assembled = assemble(flush, reservation, SEGMENT, created_ms=1234)
    data = b"".join(assembled.parts)
    index = decode_footer(keys.segment(SEGMENT), data, len(data))
    assert not isinstance(index, int)
    assert [(part.partition, part.hw_stamp, part.batches) for part in index.partitions] == [
        (TopicIdPartition(A, 0), 40, ()),
        (TopicIdPartition(B, 0), 0, ()),  # partition 1 of A does not exist any more
    ]
    assert assembled.batches == []
