"""When a batch is acknowledged: the answer of `publish` is enough if the view is next, and the
stream's entry acknowledges in all other cases."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import SegmentId
from bucketlog.metadata.sequencer.requests import PublishResult, PublishStatus
from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from bucketlog.tiered_storage.faulty import BucketVerb, ScriptedFaults
from tests.rigs.broker_rig import HELD, Rig, end_of, outcome, produce, send, until
from tests.rigs.several_brokers import Brokers, stored

NONE = ErrorCode.none
PATIENCE_MS = 600_000
TURNS = 100
"""Turns of the event loop. An acknowledgement needs a few."""


async def test_the_answer_of_publish_acknowledges_what_can_be_read_here(rig: Rig) -> None:
    rig.sequencer.hold_stream()
    for at in range(3):
        assert await produce(rig, b"%d" % at) == (NONE, at)
        assert await stored(rig) == [(each, b"%d" % each) for each in range(at + 1)]
        assert await end_of(rig) == at + 1
    rig.sequencer.let_stream_go()  # its entries repeat what the view has
    assert await produce(rig, b"3") == (NONE, 3)
    assert await stored(rig) == [(at, b"%d" % at) for at in range(4)]
    assert (rig.epoch, rig.health.ready) == (1, True), rig.health.report()


async def test_a_lost_answer_leaves_the_acknowledgement_to_the_stream(rig: Rig) -> None:
    await until(lambda: rig.sequencer.on_their_way == 0)  # the topic's publication is answered
    rig.sequencer.hold_stream()
    rig.sequencer.lose_answer(Ask.PUBLISH)
    first = send(rig, b"0", timeout=PATIENCE_MS)
    await until(lambda: rig.sequencer.calls[Ask.PUBLISH] == 3)  # the topic, and two for the batch
    second = send(rig, b"1", timeout=PATIENCE_MS)
    await until(lambda: rig.sequencer.calls[Ask.PUBLISH] == 4)
    assert not first.done(), first.result()
    assert not second.done(), second.result()  # its answer is ahead of the view
    rig.sequencer.let_stream_go()
    assert [await outcome(first), await outcome(second)] == [(NONE, 0), (NONE, 1)]


async def test_an_answer_ahead_of_the_view_waits_for_the_segments_before_it(
    brokers: Brokers,
) -> None:
    a, b = await brokers.pair()
    b.sequencer.hold_stream()
    assert await produce(a, b"elsewhere", partition=3) == (NONE, 0)
    own = send(b, b"own")
    await until(lambda: b.sequencer.on_their_way == 0 and b.sequencer.calls[Ask.PUBLISH] == 1)
    assert await end_of(a) == 1  # the sequencer shows it
    assert not own.done()
    b.sequencer.let_stream_go()
    assert await outcome(own) == (NONE, 0)
    assert b.epoch == a.epoch == 1


async def test_a_segment_that_depends_on_an_open_one_is_acknowledged_after_it(
    brokers: Brokers,
) -> None:
    a, b = await brokers.pair(put_stalled_ms=1_000_000, reservation_limit_ms=1_000_001)
    a.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    first = send(a, b"first")
    await until(lambda: a.held == 1)
    second = send(b, b"second")
    await until(lambda: b.sequencer.calls[Ask.PUBLISH] == 1 and b.sequencer.on_their_way == 0)
    assert not second.done()  # the answer is "decided"
    assert await end_of(b) == 0
    a.let_go(0)
    assert [await outcome(first), await outcome(second)] == [(NONE, 0), (NONE, 1)]


async def test_an_answer_that_comes_after_the_epoch_has_ended_acknowledges_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the sequencer shows when the broker joins again settles the segment."""
    publish, has_ended = rig.sequencer.publish, asyncio.Event()

    async def end_before_the_answer(
        epoch: int, segment: SegmentId, *, footer: bytes, object_size_bytes: int
    ) -> PublishResult:
        answer = await publish(epoch, segment, footer=footer, object_size_bytes=object_size_bytes)
        assert answer.status is PublishStatus.VISIBLE
        if not has_ended.is_set():
            has_ended.set()
            rig.sequencer.hold_all()
            rig.epochs.work.end.end("injected")
        return answer

    rig.sequencer.hold_stream()
    monkeypatch.setattr(rig.sequencer, "publish", end_before_the_answer)
    sent = send(rig)
    await has_ended.wait()
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert not sent.done()
    rig.sequencer.let_go()
    assert await outcome(sent) == (NONE, 0)
    assert await end_of(rig) == 1
