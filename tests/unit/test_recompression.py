"""Recompressed batches: the memory they hold, and requests that need too much of it."""

import threading
from collections.abc import Sequence

from bucketlog.log_format.batch import BatchTooLargeError, Codec, read_header
from bucketlog.log_format.compression import compress
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.record_check import RecordRules
from bucketlog.stateless_broker.handlers.batch_validation import (
    BatchValidation,
    UncheckedBatch,
    ValidationLimits,
    Verdict,
)
from bucketlog.stateless_broker.handlers.recompression import Compression
from bucketlog.stateless_broker.handlers.validation_memory import RecompressedBytes
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.produce.intake import BatchOutcome, PendingBatch
from bucketlog.stateless_broker.supervision import Supervisor
from tests.models.produced_batches import batch, record
from tests.rigs.patience import PATIENCE_S, eventually

LARGE = batch(compress(Codec.ZSTD, record(0, value=bytes(60_000))), 1, attributes=Codec.ZSTD)
PLAIN = Compression(Codec.NONE, None, 100_000)


class Call:
    answered = False

    def settle(self, row: int, outcome: BatchOutcome) -> None:
        pass


def unchecked(row: int) -> UncheckedBatch:
    view = memoryview(bytearray(LARGE))
    where = TopicIdPartition(TopicId(bytes(16)), 0)
    pending = PendingBatch("t", where, view, read_header(view), Call(), row)
    return UncheckedBatch(pending, RecordRules(), True, None, compression=PLAIN)


async def verdicts_of(validation: BatchValidation, batches: list[UncheckedBatch]) -> list[Verdict]:
    found: list[Verdict] = []

    def done(verdicts: Sequence[Verdict]) -> None:
        found.extend(verdicts)

    validation.submit("a", batches, done)
    await validation.drained()
    return found


async def test_a_request_may_not_need_more_than_the_bound() -> None:
    supervisor = Supervisor()
    validation = BatchValidation(ValidationLimits(1, 150_000, 1_000, 1_000), supervisor, Turns())
    batches = [unchecked(row) for row in range(4)]
    found = await verdicts_of(validation, batches)
    assert [type(verdict).__name__ for verdict in found] == [
        "BatchHeader",
        "BatchHeader",
        BatchTooLargeError.__name__,
        BatchTooLargeError.__name__,
    ]
    outcome = BatchOutcome.not_written("a test")
    for each in batches[:2]:
        assert len(each.pending.data) > 60_000
        each.pending.copy().settle(outcome)
        each.pending.settle(outcome)
    again = await verdicts_of(validation, [unchecked(0)])
    assert type(again[0]).__name__ == "BatchHeader"
    await supervisor.cancel_all()
    await validation.close()


def test_a_request_waits_until_there_is_room() -> None:
    memory = RecompressedBytes(100)
    release = memory.hold(70)
    memory.wait_for_room()
    more = memory.hold(60)
    entered = threading.Event()

    def enter() -> None:
        memory.wait_for_room()
        entered.set()

    thread = threading.Thread(target=enter)
    thread.start()
    assert not entered.is_set()
    release()
    release()
    assert entered.wait(PATIENCE_S)
    thread.join()
    assert memory.held == 60
    more()
    assert memory.held == 0


def test_nothing_waits_once_it_is_closed() -> None:
    memory = RecompressedBytes(10)
    memory.hold(50)
    thread = threading.Thread(target=memory.wait_for_room)
    thread.start()
    memory.close()
    eventually(lambda: not thread.is_alive(), "it still waits")
