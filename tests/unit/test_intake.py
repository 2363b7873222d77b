"""The intake's buffer: order, sizes, what is put back, what was given up, and waking its reader."""

import asyncio
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.facts import TopicCreated, encode_fact
from bucketlog.metadata.sequencer.requests import FactStatus, WantedTopicChange
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.produce.intake import (
    BatchOutcome,
    FlushInput,
    Intake,
    PendingBatch,
    ProduceBuffer,
)
from bucketlog.stateless_broker.produce.pending_facts import PendingFact
from bucketlog.stateless_broker.produce.step_durations import StepDurations
from tests.rigs.patience import PATIENCE_S
from tests.rigs.wire_client import build_batch

PARTITION = TopicIdPartition(TopicId(bytes(16)), 0)
DATA = build_batch([(b"key", b"value")])


@dataclass
class Call:
    """A produce request: `answered` once it timed out."""

    answered: bool = False
    outcomes: list[BatchOutcome] = field(default_factory=list)

    def settle(self, row: int, outcome: BatchOutcome) -> None:
        self.outcomes.append(outcome)


_rows = count()


def batch(call: Call | None = None) -> PendingBatch:
    """Its row tells it from others."""
    data = memoryview(bytearray(DATA))
    return PendingBatch("t", PARTITION, data, read_header(DATA), call or Call(), next(_rows))


def fact(name: str = "t") -> PendingFact:
    created = encode_fact(TopicCreated(topic_id=UUID(int=1), name=name, partitions=1))
    wanted = WantedTopicChange("create", "t", TopicId(UUID(int=1).bytes), 1)
    return PendingFact(created, wanted, asyncio.get_running_loop().create_future())


def take(buffer: ProduceBuffer, max_bytes: int, max_batches: int) -> FlushInput:
    return buffer.take(max_bytes, max_batches, max_stamps=100)


def filled(*batches: PendingBatch) -> ProduceBuffer:
    buffer = ProduceBuffer()
    for one in batches:
        buffer.add(one)
    return buffer


def test_takes_in_order_and_no_more_than_asked() -> None:
    batches = [batch() for _ in range(5)]
    buffer = filled(*batches)
    assert buffer.waiting_bytes == 5 * len(DATA)
    assert take(buffer, 2 * len(DATA), 100)[0] == batches[:2]
    assert take(buffer, 3 * len(DATA) - 1, 100)[0] == batches[2:4]
    assert buffer.waiting_bytes == len(DATA)
    assert take(buffer, 1, 100)[0] == batches[4:]  # at least one, whatever its size
    assert not buffer
    assert buffer.waiting_bytes == 0


def test_takes_no_more_batches_than_a_flush_may_have() -> None:
    batches = [batch() for _ in range(5)]
    buffer = filled(*batches)
    assert take(buffer, 1 << 20, 2)[0] == batches[:2]
    assert take(buffer, 1 << 20, 3)[0] == batches[2:]


def test_many_small_batches_fill_a_flush() -> None:
    intake = Intake(
        Health(),
        flush_bytes=1 << 20,
        flush_batches_max=3,
        durations=StepDurations(),
        now_s=lambda: 0.0,
    )
    for number in range(3):
        assert not intake.full.is_set()
        assert not intake.is_full, number
        intake.add(batch())
    assert intake.full.is_set()
    assert intake.is_full


def test_what_was_put_back_comes_first_in_its_order() -> None:
    batches = [batch() for _ in range(4)]
    buffer = filled(*batches)
    taken, _, _ = take(buffer, 2 * len(DATA), 100)
    buffer.put_back(taken, [])
    assert buffer.waiting_bytes == 4 * len(DATA)
    assert take(buffer, 1 << 20, 100)[0] == batches


async def test_facts_come_back_first() -> None:
    first, second, third = fact(), fact(), fact()
    buffer = ProduceBuffer()
    buffer.add_fact(first)
    buffer.add_fact(second)
    batches, facts, _ = take(buffer, 1 << 20, 100)
    assert (batches, facts) == ([], [first, second])
    buffer.add_fact(third)
    buffer.put_back([], facts)
    assert take(buffer, 1 << 20, 100).facts == [first, second, third]


def test_what_its_client_gave_up_is_not_taken_but_settled() -> None:
    gone = Call(answered=True)
    kept = batch()
    buffer = filled(batch(gone), kept, batch(gone))
    assert take(buffer, 1 << 20, 100)[0] == [kept]
    assert [outcome.error for outcome in gone.outcomes] == [ErrorCode.request_timed_out] * 2
    assert not buffer
    assert buffer.waiting_bytes == 0


def test_drop_answered_lets_go_of_them_alone() -> None:
    gone = Call(answered=True)
    kept = [batch(), batch()]
    buffer = filled(kept[0], batch(gone), kept[1])
    buffer.drop_answered()
    assert len(gone.outcomes) == 1
    assert buffer.waiting_bytes == 2 * len(DATA)
    assert take(buffer, 1 << 20, 100)[0] == kept


async def test_wait_returns_for_each_thing_there_is_to_take() -> None:
    buffer = ProduceBuffer()
    waiting = asyncio.create_task(buffer.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    buffer.add(batch())
    await waiting
    await buffer.wait()  # still there
    take(buffer, 1 << 20, 100)
    waiting = asyncio.create_task(buffer.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    buffer.add_fact(fact())
    await waiting


async def test_wait_sees_what_was_put_back() -> None:
    buffer = filled(batch())
    taken, _, _ = take(buffer, 1 << 20, 100)
    buffer.put_back(taken, [])
    await asyncio.wait_for(buffer.wait(), PATIENCE_S)


async def test_wait_goes_on_where_all_was_dropped_before_it_woke() -> None:
    buffer = ProduceBuffer()
    waiting = asyncio.create_task(buffer.wait())
    await asyncio.sleep(0)
    call = Call()
    buffer.add(batch(call))
    call.answered = True
    buffer.drop_answered()
    await asyncio.sleep(0)
    assert not waiting.done()
    buffer.add(batch())
    await waiting


async def test_drain_empties_it() -> None:
    batches = [batch(), batch()]
    buffer = filled(*batches)
    buffer.add_fact(fact())
    settled: list[PendingBatch] = []
    facts = buffer.drain(settled.append)
    assert settled == batches
    assert len(facts) == 1
    assert not buffer
    assert buffer.waiting_bytes == 0


async def test_takes_facts_in_order_and_no_more_than_asked() -> None:
    facts = [fact("t" * length) for length in (200, 10, 10, 10)]
    size = len(facts[1].entry.payload)
    buffer = ProduceBuffer()
    for one in facts:
        buffer.add_fact(one)
    assert take(buffer, size, 100).facts == facts[:1]
    buffer.put_back([], facts[:1])
    assert take(buffer, size + 190 + size, 100).facts == facts[:2]
    assert take(buffer, size * 2 - 1, 100).facts == facts[2:3]
    assert buffer
    assert take(buffer, size * 2, 100).facts == facts[3:]
    assert not buffer


async def test_facts_that_nobody_waits_for_are_dropped() -> None:
    """But not those that were answered when they were reserved, and have come back."""
    gone, kept, answered = fact("t" * 100), fact(), fact()
    answered.settle(FactStatus.OK)
    gone.future.cancel()
    buffer = ProduceBuffer()
    for one in (gone, answered, kept):
        buffer.add_fact(one)
    assert take(buffer, 1 << 20, 100).facts == [answered, kept]
    for one in (gone, answered, gone):
        buffer.add_fact(one)
    buffer.drop_answered()
    assert take(buffer, 1 << 20, 100).facts == [answered]
    buffer.add_fact(gone)
    buffer.drop_answered()
    assert not buffer


async def test_a_fact_is_settled_once() -> None:
    settled, failed = fact(), fact()
    settled.settle(FactStatus.OK)
    settled.fail(SequencerError("too late"))
    assert await settled.future is FactStatus.OK
    failed.fail(SequencerError("lost"))
    failed.settle(FactStatus.OK)
    assert isinstance(failed.future.exception(), SequencerError)


async def test_a_stamp_alone_is_something_to_take_once() -> None:
    buffer = ProduceBuffer()
    waiting = asyncio.create_task(buffer.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    buffer.add_stamps([PARTITION])
    buffer.add_stamps([PARTITION])
    await waiting
    assert buffer
    assert take(buffer, 1 << 20, 100) == ([], [], [PARTITION])
    assert not buffer
    assert take(buffer, 1 << 20, 100) == ([], [], [])


def test_a_flush_takes_some_stamps_in_the_order_of_their_requests() -> None:
    partitions = [TopicIdPartition(PARTITION.topic_id, number) for number in (5, 2, 9, 0)]
    buffer = ProduceBuffer()
    buffer.add_stamps(partitions[:3])
    buffer.add_stamps(partitions[1:])
    assert buffer.take(1 << 20, 100, max_stamps=3).stamps == partitions[:3]
    assert buffer
    assert buffer.take(1 << 20, 100, max_stamps=3).stamps == partitions[3:]
    assert not buffer


def test_stamps_ride_with_what_is_taken_first() -> None:
    batches = [batch(), batch()]
    buffer = filled(*batches)
    buffer.add_stamps([PARTITION])
    assert take(buffer, 1, 100) == (batches[:1], [], [PARTITION])
    assert take(buffer, 1, 100) == (batches[1:], [], [])


def test_a_copy_has_memory_of_its_own_and_the_same_call() -> None:
    call = Call()
    original = batch(call)
    copy = original.copy()
    copy.data[0] ^= 0xFF
    assert bytes(original.data) == DATA
    copy.settle(BatchOutcome(ErrorCode.none, 3))
    assert call.outcomes == [BatchOutcome(ErrorCode.none, 3)]
    assert (copy.row, copy.partition, copy.header) == (
        original.row,
        original.partition,
        original.header,
    )
