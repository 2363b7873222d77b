"""Batches with a slow validation: memory, timeouts, a stopping broker."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.compression import compress
from bucketlog.log_format.record_check import check_records
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.handlers import batch_validation
from tests.models.produced_batches import batch, record
from tests.rigs.broker_rig import Rig, create_topic, end_of, outcome, until
from tests.rigs.patience import PATIENCE_S, let_pass_async

NONE = ErrorCode.none
PACKED = batch(compress(Codec.ZSTD, record(0)), 1, attributes=Codec.ZSTD)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """An event that starts the check of records."""
    opened = threading.Event()

    def check(*args: Any) -> int:
        assert opened.wait(PATIENCE_S)
        return check_records(*args)

    monkeypatch.setattr(batch_validation, "check_records", check)
    yield opened
    opened.set()


def sent(rig: Rig, *, acks: int = -1, timeout: int = 20_000) -> "asyncio.Task[Any]":
    data = [{"name": "t", "partition_data": [{"index": 0, "records": PACKED}]}]
    return rig.send(ApiKey.PRODUCE, 9, acks=acks, timeout=timeout, topic_data=data)


async def test_a_request_that_timed_out_is_not_committed(rig: Rig, gate: threading.Event) -> None:
    first = sent(rig, timeout=1)
    assert (await outcome(first))[0] is ErrorCode.request_timed_out
    assert rig.budget.held_bytes > 0
    gate.set()
    await until(lambda: rig.budget.held_bytes == 0)
    assert await outcome(sent(rig)) == (NONE, 0)
    assert await end_of(rig) == 1


async def test_memory_is_given_back_when_a_batch_is_settled(
    rig: Rig, gate: threading.Event
) -> None:
    requests = [sent(rig) for _ in range(5)]
    held = rig.budget.held_bytes
    assert held > 5 * len(PACKED)
    rig.client.go()
    gate.set()
    assert [await outcome(each) for each in requests] == [(NONE, offset) for offset in range(5)]
    await until(lambda: rig.budget.held_bytes == 0)


async def test_a_broker_that_stops_commits_what_it_has_taken(
    rig: Rig, gate: threading.Event
) -> None:
    waiting = sent(rig)
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    draining = asyncio.create_task(rig.node.drain(deadline))
    await let_pass_async(0.2)
    assert not draining.done()
    gate.set()
    await draining
    assert await outcome(waiting) == (NONE, 0)


async def test_other_requests_are_answered_meanwhile(rig: Rig, gate: threading.Event) -> None:
    waiting = sent(rig)
    assert await create_topic(rig, "other") is NONE
    assert not waiting.done()
    gate.set()
    assert await outcome(waiting) == (NONE, 0)
