"""Batches are validated in threads: in each connection's order, within bounds, and drained."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from bucketlog.log_format.batch import (
    LENGTH_OVERHEAD,
    BatchHeader,
    Codec,
    InvalidBatchError,
    read_header,
)
from bucketlog.log_format.compression import compress
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.record_check import RecordRules, check_records
from bucketlog.stateless_broker.handlers import batch_validation
from bucketlog.stateless_broker.handlers.batch_validation import (
    BatchValidation,
    UncheckedBatch,
    ValidationLimits,
    Verdict,
)
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.produce.intake import BatchOutcome, PendingBatch
from bucketlog.stateless_broker.supervision import Supervisor
from tests.models.produced_batches import batch, record
from tests.rigs.patience import PATIENCE_S, eventually_async, let_pass_async

SMALL = batch(record(0), 1)
PACKED = batch(compress(Codec.ZSTD, record(0)), 1, attributes=Codec.ZSTD)
GARBAGE = batch(b"\xff" * 40, 1)
ANY = RecordRules()
LIMITS = ValidationLimits(2, 1 << 20, 1000, 1000)


class NoCall:
    answered = False

    def settle(self, row: int, outcome: BatchOutcome) -> None:
        raise AssertionError("validation settles nothing")


def unchecked(data: bytes, *, rules: RecordRules | None = ANY) -> UncheckedBatch:
    view = memoryview(bytearray(data))
    where = TopicIdPartition(TopicId(bytes(16)), 0)
    return UncheckedBatch(
        PendingBatch("t", where, view, read_header(view), NoCall(), 0), rules, True, None
    )


class Gate:
    """Holds each check of a compressed batch until the gate opens; `inside` counts the waiters."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.inside = self.most = 0
        self._lock = threading.Lock()
        self._check = check_records
        monkeypatch.setattr(batch_validation, "check_records", self)

    def __call__(self, data: Any, header: BatchHeader, rules: RecordRules, where: str) -> int:
        if header.codec:
            with self._lock:
                self.inside += 1
                self.most = max(self.most, self.inside)
            assert self.opened.wait(PATIENCE_S)
            with self._lock:
                self.inside -= 1
        return self._check(data, header, rules, where)


@pytest.fixture
async def validation() -> AsyncIterator[BatchValidation]:
    supervisor = Supervisor()
    made = BatchValidation(LIMITS, supervisor, Turns())
    yield made
    await supervisor.cancel_all()
    await made.close()


class Results(list[tuple[str, list[str]]]):
    """Finished calls, in order."""

    def of(self, name: str) -> Any:
        def done(verdicts: Sequence[Verdict]) -> None:
            self.append((name, [type(verdict).__name__ for verdict in verdicts]))

        return done


SOUND, REFUSED = [BatchHeader.__name__], [InvalidBatchError.__name__]


async def test_small_batches_are_checked_at_once(validation: BatchValidation) -> None:
    results = Results()
    validation.submit("a", [unchecked(SMALL), unchecked(GARBAGE)], results.of("both"))
    assert results == [("both", SOUND + REFUSED)]
    validation.submit("a", [unchecked(GARBAGE, rules=None)], results.of("header"))
    assert results[1:] == [("header", SOUND)]


@pytest.mark.parametrize("first", [PACKED, batch(record(0, value=bytes(2000)), 1)])
async def test_others_are_checked_in_the_order_of_their_connection(
    validation: BatchValidation, first: bytes
) -> None:
    results = Results()
    for name, data in (("1", first), ("2", SMALL), ("3", GARBAGE), ("4", PACKED)):
        validation.submit("a", [unchecked(data)], results.of(name))
    assert results == []
    await validation.drained()
    assert results == [("1", SOUND), ("2", SOUND), ("3", REFUSED), ("4", SOUND)]
    validation.submit("a", [unchecked(SMALL)], results.of("5"))
    assert results[4:] == [("5", SOUND)]


async def test_one_connection_does_not_wait_for_another(
    validation: BatchValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, results = Gate(monkeypatch), Results()
    for number in range(4):
        validation.submit("slow", [unchecked(PACKED)], results.of(f"slow {number}"))
    validation.submit("other", [unchecked(SMALL)], results.of("other"))
    large = batch(record(0, value=bytes(2000)), 1)
    validation.submit("third", [unchecked(large)], results.of("third"))
    assert results == [("other", SOUND)]
    await eventually_async(lambda: len(results) == 2)
    assert results[1] == ("third", SOUND)
    gate.opened.set()
    await validation.drained()
    assert [name for name, _ in results[2:]] == [f"slow {number}" for number in range(4)]
    assert gate.most == 1


async def test_decompressed_bytes_are_shared(
    validation: BatchValidation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches that may each need the whole bound are not decompressed concurrently."""
    gate, results = Gate(monkeypatch), Results()
    whole = RecordRules(max_bytes=LIMITS.bytes_max)
    body = record(0, value=bytes(LIMITS.bytes_max - 100))
    large = batch(compress(Codec.LZ4, body), 1, attributes=Codec.LZ4)
    for source in ("a", "b", "c"):
        validation.submit(source, [unchecked(large, rules=whole)], results.of(source))
    await eventually_async(lambda: gate.inside > 0)
    await let_pass_async(0.1)
    gate.opened.set()
    await validation.drained()
    assert sorted(name for name, _ in results) == ["a", "b", "c"]
    assert gate.most == 1


@pytest.mark.parametrize(
    "failure", [RuntimeError("a defect"), MemoryError(), BaseException("panic")]
)
async def test_a_defect_is_told_and_ends_nothing(
    validation: BatchValidation, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fail(*_: object) -> int:
        raise failure

    results = Results()
    with monkeypatch.context() as patched:
        patched.setattr(batch_validation, "check_records", fail)
        validation.submit("a", [unchecked(PACKED)], results.of("1"))
        validation.submit("a", [unchecked(SMALL)], results.of("2"))
        await validation.drained()
    nothing = [type(None).__name__]
    assert results == [("1", nothing), ("2", nothing)]
    validation.submit("a", [unchecked(PACKED)], results.of("3"))
    await validation.drained()
    assert results[2:] == [("3", SOUND)]


async def test_a_broker_that_ends_leaves_nothing_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor, results, gate = Supervisor(), Results(), Gate(monkeypatch)
    validation = BatchValidation(LIMITS, supervisor, Turns())
    validation.submit("a", [unchecked(PACKED)], results.of("1"))
    await asyncio.sleep(0)
    gate.opened.set()
    await supervisor.cancel_all()
    await validation.close()
    await validation.drained()
    assert [name for name, _ in results] == ["1"]


async def test_a_refusal_does_not_keep_what_was_decompressed(validation: BatchValidation) -> None:
    large = batch(compress(Codec.ZSTD, record(0, value=bytes(9999))), 1, attributes=Codec.ZSTD)
    refused: list[Verdict] = []
    rules = RecordRules(max_bytes=5000)
    validation.submit("a", [unchecked(large, rules=rules)], refused.extend)
    await validation.drained()
    (error,) = refused
    assert isinstance(error, InvalidBatchError)
    assert (error.__traceback__, error.__cause__, error.__context__) == (None, None, None)


async def test_small_batches_are_accepted_at_once(validation: BatchValidation) -> None:
    small = read_header(SMALL)
    assert validation.accepts_at_once("a", small)
    most = LIMITS.batch_records_max
    assert validation.accepts_at_once("a", small._replace(record_count=most))
    assert not validation.accepts_at_once("a", small._replace(record_count=most + 1))
    length = LIMITS.inline_bytes_max - LENGTH_OVERHEAD
    assert validation.accepts_at_once("a", small._replace(batch_length=length))
    assert not validation.accepts_at_once("a", small._replace(batch_length=length + 1))


async def test_a_batch_behind_one_in_validation_is_not_accepted_at_once(
    validation: BatchValidation,
) -> None:
    verdicts: list[Verdict] = []
    validation.submit("a", [unchecked(PACKED)], verdicts.extend)
    assert not validation.accepts_at_once("a", read_header(SMALL))
    assert validation.accepts_at_once("b", read_header(SMALL))
    await validation.drained()
    assert validation.accepts_at_once("a", read_header(SMALL))
    assert len(verdicts) == 1
