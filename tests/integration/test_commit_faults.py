"""The commit path under faults: what is acknowledged is visible, what fails says so, and the memory
of every request is given back."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode
from redis import Redis as SyncRedis

from bucketlog.errors import BucketRefusedError
from bucketlog.model import SegmentId
from metadata.sequencer.scripts import Verb as Ask
from tests.rig import HELD, PATIENCE_S, Rig, until
from tests.sequencing import start_valkey
from tests.wire_client import build_batch
from tiered_storage import keys
from tiered_storage.backends.memory import MemoryBucket
from tiered_storage.faulty import Effect, Fault, Script, Verb
from tiered_storage.segment import Seal, encode_seal

LATEST = -1


class Valkey:
    """A server of the test's own, which it may wipe, end and start again empty."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "valkey.sock"
        self._stack = ExitStack()

    def start(self) -> None:
        self._stack.enter_context(start_valkey(self.path))

    def stop(self) -> None:
        self._stack.close()

    def wipe(self) -> None:
        with SyncRedis(unix_socket_path=str(self.path)) as redis:
            redis.flushall()


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    server = Valkey(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def rig(valkey: Valkey) -> AsyncIterator[Rig]:
    """With topic `t` of 4 partitions."""
    async with AsyncExitStack() as stack:
        rig = Rig(valkey.path)
        stack.push_async_callback(rig.stop)
        await rig.start()
        await create_topic(rig, "t", 4)
        yield rig


async def create_topic(rig: Rig, name: str, partitions: int = 1) -> ErrorCode:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    topic |= {"configs": (), "assignments": ()}
    answer = await rig.call("create_topics", 5, topics=[topic], timeout=20_000, validate_only=False)
    return ErrorCode(answer.topics[0].error_code)


def send(
    rig: Rig, value: bytes = b"value", *, partition: int = 0, timeout: int = 20_000, **producer: int
) -> "asyncio.Task[Any]":
    batch = build_batch([(None, value)], **cast(Any, producer))
    rows = [{"index": partition, "records": batch}]
    data = [{"name": "t", "partition_data": rows}]
    return rig.send("produce", 9, acks=-1, timeout=timeout, topic_data=data)


async def outcome(sent: "asyncio.Task[Any]") -> tuple[ErrorCode, int]:
    async with asyncio.timeout(PATIENCE_S):
        answer = await sent
    row = answer.responses[0].partition_responses[0]
    return ErrorCode(row.error_code), row.base_offset


async def produce(rig: Rig, value: bytes = b"value", **values: int) -> tuple[ErrorCode, int]:
    return await outcome(send(rig, value, **values))


async def end_of(rig: Rig, partition: int = 0) -> int:
    rows = [{"partition_index": partition, "timestamp": LATEST}]
    topics = [{"name": "t", "partitions": rows}]
    answer = await rig.call("list_offsets", 7, replica_id=-1, isolation_level=0, topics=topics)
    row = answer.topics[0].partitions[0]
    assert row.error_code is ErrorCode.none
    return int(row.offset)


async def fetched(rig: Rig, partition: int = 0) -> bytes:
    row = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    answer = await rig.call(
        "fetch",
        11,
        replica_id=-1,
        max_wait=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        rack_id="",
        topics=[{"topic": "t", "partitions": [row]}],
    )
    found = answer.responses[0].partitions[0]
    assert found.error_code is ErrorCode.none
    return bytes(found.records or b"")


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
    rig.plan = Script({Verb.CREATE: faults})
    assert await produce(rig, b"one") == (ErrorCode.none, 0)
    assert await produce(rig, b"two") == (ErrorCode.none, 1)
    assert rig.health.ready
    data = await fetched(rig)
    assert data.count(b"one") == data.count(b"two") == 1
    assert len(rig.segment_keys()) == 3  # the topic, and one each
    await until(lambda: rig.budget.held_bytes == 0)


async def test_a_failing_bucket_is_told_and_nothing_is_acknowledged(rig: Rig) -> None:
    rig.plan = lambda verb, key: Fault(Effect.NONE) if verb is Verb.CREATE else None
    sent = send(rig)
    await until(lambda: "bucket" in rig.health.report())
    assert not sent.done()
    assert await end_of(rig) == 0
    rig.plan = Script({})
    assert await outcome(sent) == (ErrorCode.none, 0)
    assert "bucket" not in rig.health.report()


async def test_puts_in_flight_are_published_in_chain_order(rig: Rig) -> None:
    rig.plan = Script({Verb.CREATE: [HELD, HELD]})
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


async def test_a_seal_at_the_next_key_stops_writing(rig: Rig) -> None:
    assert await produce(rig, b"kept") == (ErrorCode.none, 0)
    segment = SegmentId(rig.writer, len(rig.segment_keys()))
    assert rig.memory.create(keys.segment(segment), [encode_seal(Seal(segment, 2, 1))])
    assert await produce(rig) == (ErrorCode.request_timed_out, -1)
    assert "sealed" in rig.health.report()["writing"]
    assert await produce(rig) == (ErrorCode.not_enough_replicas, -1)
    assert await end_of(rig) == 1
    assert b"kept" in await fetched(rig)
    await until(lambda: rig.budget.held_bytes == 0)


async def test_another_segment_at_the_next_key_is_not_taken_for_ours(rig: Rig) -> None:
    """Also after a lost answer, where a refusal may well be our own first try."""
    rig.memory.create(rig.next_key(), [b"x" * 500])
    rig.plan = Script({Verb.CREATE: [Fault(Effect.NONE)]})
    assert await produce(rig) == (ErrorCode.request_timed_out, -1)
    assert rig.health.stopped is not None
    assert await end_of(rig) == 0


# Time ------------------------------------------------------------------------------------------


async def test_a_request_whose_time_is_over_is_answered_and_its_memory_given_back(rig: Rig) -> None:
    rig.plan = Script({Verb.CREATE: [HELD, HELD]})
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
    rig.plan = Script({Verb.CREATE: [HELD]})
    topic = {"name": "late", "num_partitions": 1, "replication_factor": 1}
    topic |= {"configs": (), "assignments": ()}
    answer = await rig.call("create_topics", 5, topics=[topic], timeout=10, validate_only=False)
    assert answer.topics[0].error_code is ErrorCode.request_timed_out
    rig.let_go()
    await until(lambda: rig.view.topic("late") is not None)


async def test_a_duplicate_of_an_open_batch_waits_for_its_outcome(rig: Rig) -> None:
    rig.plan = Script({Verb.CREATE: [HELD]})
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


async def assert_writing_stopped(rig: Rig, end: int) -> None:
    """Everything that writes is refused, retriably; reading goes on."""
    error, _ = await produce(rig, b"never")
    assert error is ErrorCode.not_enough_replicas
    assert error.retriable
    answer = await rig.call("init_producer_id", 4, transactional_id=None, transaction_timeout=0)
    assert answer.error_code is ErrorCode.coordinator_not_available
    assert answer.error_code.retriable
    assert (await create_topic(rig, "another")).retriable
    assert rig.view.topic("another") is None
    assert await end_of(rig) == end
    data = await fetched(rig)
    assert b"kept" in data
    assert b"never" not in data
    assert "restart the broker" in rig.health.report()["writing"]
    await until(lambda: rig.budget.held_bytes == 0)


async def test_a_wiped_redis_stops_writing_and_nothing_else(rig: Rig, valkey: Valkey) -> None:
    assert await produce(rig, b"kept") == (ErrorCode.none, 0)
    puts = len(rig.segment_keys())
    valkey.wipe()
    assert await produce(rig, b"never") == (ErrorCode.not_enough_replicas, -1)
    await assert_writing_stopped(rig, 1)
    assert len(rig.segment_keys()) == puts


async def test_a_redis_wiped_while_a_put_is_in_flight(rig: Rig, valkey: Valkey) -> None:
    """The object may be there: only the next epoch knows, and the client is told that."""
    assert await produce(rig, b"kept") == (ErrorCode.none, 0)
    rig.plan = Script({Verb.CREATE: [HELD]})
    sent = send(rig, b"open")
    await until(lambda: rig.held == 1)
    valkey.wipe()
    rig.let_go()
    assert await outcome(sent) == (ErrorCode.request_timed_out, -1)
    await assert_writing_stopped(rig, 1)


async def test_init_producer_id_alone_finds_out_that_redis_was_wiped(
    rig: Rig, valkey: Valkey
) -> None:
    valkey.wipe()
    answer = await rig.call("init_producer_id", 4, transactional_id=None, transaction_timeout=0)
    assert answer.error_code is ErrorCode.coordinator_not_available
    assert rig.health.stopped is not None


async def test_the_state_can_be_checked_without_writing(rig: Rig, valkey: Valkey) -> None:
    await rig.sequencer.check_state(rig.epoch)
    valkey.wipe()
    with pytest.raises(Exception, match="no state"):
        await rig.sequencer.check_state(rig.epoch)


async def test_a_redis_restarted_empty_is_lost_state(rig: Rig, valkey: Valkey) -> None:
    assert await produce(rig, b"kept") == (ErrorCode.none, 0)
    valkey.stop()
    sent = send(rig, b"never")
    await until(lambda: "redis" in rig.health.report())
    assert not sent.done()
    assert await end_of(rig) == 1
    valkey.start()
    assert await outcome(sent) == (ErrorCode.not_enough_replicas, -1)
    await assert_writing_stopped(rig, 1)


async def test_the_next_epoch_has_all_that_was_acknowledged(valkey: Valkey) -> None:
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


async def test_a_jump_in_the_stream_stops_writing_and_leaves_the_view(
    rig: Rig, valkey: Valkey
) -> None:
    assert await produce(rig, b"kept") == (ErrorCode.none, 0)
    with SyncRedis(unix_socket_path=str(valkey.path)) as redis:
        (key,) = redis.keys("*:visible")
        fields = {"writer": rig.writer, "seq": "9", "ticket": "9", "size": "9", "index": "?"}
        redis.xadd(key, cast(Any, fields), id=f"{rig.epoch}-9")
    await until(lambda: rig.health.stopped is not None)
    assert "jumps from" in rig.health.report()["writing"]
    assert b"kept" in await fetched(rig)


# Stopping --------------------------------------------------------------------------------------


async def test_what_is_being_reserved_when_writing_stops_is_refused_and_never_written(
    rig: Rig,
) -> None:
    rig.sequencer.hold(Ask.RESERVE)
    sent = send(rig, b"never")
    await until(lambda: rig.sequencer.held == 1)
    puts = rig.counts.snapshot().creates
    rig.health.stop_writing("the test says so")
    assert await outcome(sent) == (ErrorCode.not_enough_replicas, -1)
    assert rig.budget.held_bytes == 0
    rig.sequencer.let_go()
    await rig.commit_loop
    for _ in range(5):
        await asyncio.sleep(0)
    assert rig.counts.snapshot().creates == puts


async def test_draining_waits_for_what_is_being_reserved(rig: Rig) -> None:
    rig.sequencer.hold(Ask.RESERVE)
    sent = send(rig)
    await until(lambda: rig.sequencer.held == 1)
    drained = asyncio.create_task(rig.committer.drained())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not drained.done()
    rig.sequencer.let_go()
    async with asyncio.timeout(PATIENCE_S):
        await drained
    assert sent.done() or await outcome(sent) == (ErrorCode.none, 0)
    assert await end_of(rig) == 1


async def test_draining_waits_for_puts_and_for_what_waits(rig: Rig) -> None:
    rig.plan = Script({Verb.CREATE: [HELD, HELD]})
    sent = [send(rig)]
    await until(lambda: rig.held == 1)
    sent.append(send(rig))
    await until(lambda: rig.held == 2)
    sent.append(send(rig))
    drained = asyncio.create_task(rig.committer.drained())
    rig.let_go(0)
    await outcome(sent[0])
    assert not drained.done()
    rig.let_go()
    async with asyncio.timeout(PATIENCE_S):
        await drained
    assert [await outcome(one) for one in sent] == [(ErrorCode.none, at) for at in range(3)]
