"""Stopping the commit path: what was taken is drained, and nothing is written after it."""

import asyncio

from kio.schema.errors import ErrorCode

from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from bucketlog.tiered_storage.faulty import BucketVerb, ScriptedFaults
from tests.rigs.broker_rig import HELD, Rig, end_of, outcome, send, until
from tests.rigs.patience import PATIENCE_S


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
    for _ in range(20):
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
    rig.plan = ScriptedFaults({BucketVerb.CREATE: [HELD, HELD]})
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
