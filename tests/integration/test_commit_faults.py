"""The commit path under faults: what is acknowledged is visible, what fails says so, and the memory
of every request is given back."""

from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode
from redis import Redis as SyncRedis

from bucketlog.log_format.errors import BucketRefusedError, SequencerLostError
from bucketlog.log_format.model import SegmentId
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.faulty import BucketVerb, Effect, Fault, ScriptedFaults
from bucketlog.tiered_storage.segment import Seal, encode_seal
from tests.rigs.broker_rig import (
    HELD,
    Rig,
    create_topic,
    end_of,
    fetched,
    outcome,
    produce,
    send,
    until,
)
from tests.servers.own_valkey import OwnValkey

# The bucket ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([Fault(Effect.NONE)], id="nothing happened"),
        pytest.param([Fault(Effect.NONE)] * 3, id="nothing happened, three times"),
        pytest.param([Fault(Effect.DONE)], id="done, the answer lost"),
        pytest.param([Fault(Effect.NONE), Fault(Effect.DONE)], id="nothing, then lost"),
        pytest.param([Fault(Effect.LATER)], id="done later"),
        pytest.param([Fault(error=BucketRefusedError("injected: denied"))], id="denied"),
    ],
)
async def test_a_put_is_retried_until_it_is_known(rig: Rig, faults: list[Fault]) -> None:
    rig.plan = ScriptedFaults({BucketVerb.CREATE: faults})
    assert await produce(rig, b"one") == (ErrorCode.none, 0)
    assert await produce(rig, b"two") == (ErrorCode.none, 1)
    assert rig.health.ready
    data = await fetched(rig)
    assert data.count(b"one") == data.count(b"two") == 1
    assert len(rig.segment_keys()) == 3  # the topic, and one each
    await until(lambda: rig.budget.held_bytes == 0)


async def test_a_failing_bucket_is_told_and_nothing_is_acknowledged(rig: Rig) -> None:
    rig.plan = lambda verb, key: Fault(Effect.NONE) if verb is BucketVerb.CREATE else None
    sent = send(rig)
    await until(lambda: "bucket" in rig.health.report())
    assert not sent.done()
    assert await end_of(rig) == 0
    rig.plan = ScriptedFaults({})
    assert await outcome(sent) == (ErrorCode.none, 0)
    assert "bucket" not in rig.health.report()


async def test_puts_in_flight_are_published_in_chain_order(rig: Rig) -> None:
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD, HELD]})
    first = send(rig, b"first", partition=0)
    await until(lambda: rig.held == 1)
    second = send(rig, b"second", partition=1)
    await until(lambda: rig.held == 2)
    third = send(rig, b"third", partition=2)  # both slots are in use: it waits in the buffer
    before = len(rig.segment_keys())
    rig.let_go(1)
    await until(lambda: len(rig.segment_keys()) == before + 1)
    assert await end_of(rig, 1) == 0  # written, and yet not to be shown
    assert not second.done()
    rig.let_go(0)
    assert await outcome(first) == (ErrorCode.none, 0)
    assert await outcome(second) == (ErrorCode.none, 0)
    assert await outcome(third) == (ErrorCode.none, 0)
    shown = await rig.sequencer.read_visible(rig.epoch, 0, block_ms=1)
    assert [entry.segment.seq for entry in shown] == [0, 1, 2, 3]


async def test_after_a_seal_at_the_next_key_a_new_writer_goes_on(rig: Rig) -> None:
    assert await produce(rig, b"kept") == (ErrorCode.none, 0)
    writer = rig.committer.writer
    segment = SegmentId(writer, len(rig.segment_keys()))
    assert rig.memory.create(keys.segment(segment), [encode_seal(Seal(segment, 1, 1))])
    assert await produce(rig, b"moved") == (ErrorCode.none, 2)  # its reservation at 1 is void
    assert rig.committer.writer != writer
    assert await produce(rig, b"next") == (ErrorCode.none, 3)
    assert rig.health.ready, rig.health.report()
    assert await end_of(rig) == 4
    data = await fetched(rig)
    assert [data.count(value) for value in (b"kept", b"moved", b"next")] == [1, 1, 1]
    await until(lambda: rig.budget.held_bytes == 0)


async def test_a_writer_that_was_fenced_unawares_is_followed_by_a_new_one(rig: Rig) -> None:
    """Another broker took it for dead while it was idle: its next reservation is refused."""
    writer = rig.committer.writer
    segment = SegmentId(writer, len(rig.segment_keys()))
    assert rig.memory.create(keys.segment(segment), [encode_seal(Seal(segment, 1, 1))])
    await rig.sequencer.fence(rig.epoch, segment)
    assert await produce(rig) == (ErrorCode.none, 0)
    assert rig.committer.writer != writer
    assert rig.health.ready, rig.health.report()


async def test_another_segment_at_the_next_key_is_not_taken_for_ours(rig: Rig) -> None:
    """Also after a lost answer, where a refusal may well be our own first try."""
    rig.memory.create(rig.next_key(), [b"x" * 500])
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [Fault(Effect.NONE)]})
    assert await produce(rig) == (ErrorCode.request_timed_out, -1)
    assert rig.health.stopped is not None
    assert await fetched(rig) == b""


# Time ------------------------------------------------------------------------------------------


async def test_a_request_whose_time_is_over_is_answered_and_its_memory_given_back(rig: Rig) -> None:
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD, HELD]})
    in_flight = [send(rig, b"in flight", timeout=20)]
    await until(lambda: rig.held == 1)
    in_flight.append(send(rig, b"in flight", timeout=20))
    await until(lambda: rig.held == 2)
    held_bytes = rig.budget.held_bytes
    waiting = [send(rig, b"waits " * 1000, timeout=20) for _ in range(3)]
    for sent in [*in_flight, *waiting]:
        assert await outcome(sent) == (ErrorCode.request_timed_out, -1)
    await until(lambda: rig.budget.held_bytes == held_bytes)
    assert not rig.committer.buffer
    assert rig.health.stopped is None
    rig.let_go()
    await until(lambda: rig.budget.held_bytes == 0)
    assert await end_of(rig) == 2  # those that were in flight; the others never were written
    assert await produce(rig) == (ErrorCode.none, 2)


async def test_a_topic_change_whose_time_is_over_is_answered_and_done_later(rig: Rig) -> None:
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    topic = {"name": "late", "num_partitions": 1, "replication_factor": 1}
    topic |= {"configs": (), "assignments": ()}
    answer = await rig.call(
        ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout=10, validate_only=False
    )
    assert answer.topics[0].error_code is ErrorCode.request_timed_out
    await until(lambda: rig.held == 1)  # on a busy machine, the answer precedes the PUT
    rig.let_go()
    await until(lambda: rig.view.topic("late") is not None)


async def test_a_duplicate_of_an_open_batch_waits_for_its_outcome(rig: Rig) -> None:
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    producer = {"producer_id": 77, "producer_epoch": 0, "base_sequence": 0}
    first = send(rig, b"once", **producer)
    await until(lambda: rig.held == 1)
    again = send(rig, b"once", **producer)
    asked = rig.sequencer.calls[Ask.RESERVE]
    await until(lambda: rig.sequencer.calls[Ask.RESERVE] > asked + 2)
    assert not first.done()
    assert not again.done()
    rig.let_go()
    assert await outcome(first) == (ErrorCode.none, 0)
    assert await outcome(again) == (ErrorCode.none, 0)
    assert await end_of(rig) == 1
    assert (await fetched(rig)).count(b"once") == 1
    await until(lambda: rig.budget.held_bytes == 0)


# Redis -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [Ask.RESERVE, Ask.PUBLISH])
async def test_a_lost_answer_is_asked_for_again(rig: Rig, verb: Ask) -> None:
    rig.sequencer.lose_answer(verb)
    producer = {"producer_id": 5, "producer_epoch": 0}
    assert await produce(rig, b"one", **producer, base_sequence=0) == (ErrorCode.none, 0)
    await until(lambda: rig.sequencer.lost == 1)
    assert await produce(rig, b"two", **producer, base_sequence=1) == (ErrorCode.none, 1)
    assert await end_of(rig) == 2
    assert len(rig.segment_keys()) == 3
    assert rig.health.stopped is None


async def test_redis_out_of_reach_for_a_while(rig: Rig) -> None:
    rig.sequencer.hold(Ask.RESERVE)
    sent = send(rig)
    await until(lambda: rig.sequencer.held == 1)
    assert not sent.done()
    assert await end_of(rig) == 0  # reading goes on
    rig.sequencer.let_go()
    assert await outcome(sent) == (ErrorCode.none, 0)


async def test_init_producer_id_alone_finds_out_that_redis_was_wiped(
    rig: Rig, valkey: OwnValkey
) -> None:
    first = await rig.call(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=0)
    rig.sequencer.hold(Ask.CHECK_STATE)
    valkey.wipe()
    while rig.epoch == 1:  # ids of a block that it has are given out still
        answer = await rig.call(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=0
        )
        assert answer.error_code in (ErrorCode.none, ErrorCode.coordinator_load_in_progress)
        assert answer.producer_id - first.producer_id in range(1, 100) or answer.error_code
    answer = await rig.call(
        ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=0
    )
    assert answer.producer_id >> 40 == 2


async def test_the_state_can_be_checked_without_writing(rig: Rig, valkey: OwnValkey) -> None:
    await rig.sequencer.check_state(rig.epoch)
    valkey.wipe()
    with pytest.raises(SequencerLostError, match="no state"):
        await rig.sequencer.check_state(rig.epoch)


async def test_the_next_epoch_has_all_that_was_acknowledged(valkey: OwnValkey) -> None:
    memory = MemoryBucket()
    acknowledged = []
    for number in range(3):
        rig = Rig(valkey.path, memory=memory)
        try:
            await rig.start()
            if not number:
                await create_topic(rig, "t", 4)
            assert rig.epoch == number + 1
            error, offset = await produce(rig, b"epoch-%d" % number)
            assert error is ErrorCode.none
            acknowledged.append(offset)
            data = await fetched(rig)
            assert all(data.count(b"epoch-%d" % past) == 1 for past in range(number + 1))
            valkey.wipe()
        finally:
            await rig.stop()
    assert acknowledged == [0, 1, 2]


async def test_a_jump_in_the_stream_ends_the_epoch_and_leaves_the_view(
    rig: Rig, valkey: OwnValkey
) -> None:
    assert await produce(rig, b"kept") == (ErrorCode.none, 0)
    with SyncRedis(unix_socket_path=str(valkey.path)) as redis:
        (key,) = redis.keys("*:visible")
        fields = {"writer": rig.writer, "seq": "9", "ticket": "9", "size": "9", "index": "?"}
        redis.xadd(key, cast(Any, fields), id=f"{rig.epoch}-9")
    await until(lambda: rig.epoch == 2)
    assert b"kept" in await fetched(rig)
    assert await produce(rig, b"next") == (ErrorCode.none, 1)
