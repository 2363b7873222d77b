"""Deletion by real brokers: what goes, what stays readable, and who must not be believed then."""

import asyncio
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.inspect.verify import verify_log
from bucketlog.log_format.errors import SequencerLostError, StaleCheckpointError
from bucketlog.log_format.model import SegmentId
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.floors import Floor, encode_floor
from bucketlog.tiered_storage.log_cut_reading import read_log
from tests.rigs.broker_rig import Rig, create_topic, outcome, produce, send, until
from tests.rigs.patience import PATIENCE_S
from tests.rigs.readable_log import readable_in
from tests.rigs.several_brokers import Brokers, stored
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
HOUR_MS = 3_600_000


class Clock:
    """The bucket's."""

    def __init__(self, brokers: Brokers) -> None:
        self.now_ms = 1_700_000_000_000
        brokers.memory._clock = lambda: self.now_ms

    def pass_hours(self, count: int) -> None:
        self.now_ms += count * HOUR_MS


@pytest.fixture
def clock(brokers: Brokers) -> Clock:
    return Clock(brokers)


async def write_two(rig: Rig) -> None:
    for _ in range(2):
        for _ in range(2):
            assert (await produce(rig))[0] is NONE
        assert await rig.checkpointer.write() is not None


async def delete_topic(rig: Rig, name: str) -> None:
    answer = await rig.call(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout=20_000)
    assert answer.responses[0].error_code is NONE


async def second_epoch(valkey: OwnValkey, brokers: Brokers) -> tuple[Rig, str]:
    """A broker in epoch 2; the chain of the one of epoch 1."""
    first = await brokers.start()
    await create_topic(first, "t", 4)
    await create_topic(first, "gone")
    for number in range(3):
        assert await produce(first, b"%d" % number) == (NONE, number)
    await delete_topic(first, "gone")
    chain = keys.chain(first.writer)
    await first.stop()
    valkey.wipe()
    return await brokers.start(), chain


def names(brokers: Brokers, prefix: str) -> list[str]:
    return sorted(info.key.removeprefix(prefix) for info in brokers.memory.list(prefix))


async def test_what_is_closed_and_holds_nothing_goes_after_the_safety_age(
    valkey: OwnValkey, brokers: Brokers, clock: Clock
) -> None:
    rig, chain = await second_epoch(valkey, brokers)
    deleter = rig.duties.deleter
    await write_two(rig)
    everything = names(brokers, keys.LOG)
    assert await deleter.round() == 0
    assert len(names(brokers, keys.FLOORS)) == 1
    clock.pass_hours(23)
    await write_two(rig)
    assert await deleter.round() == 0
    assert set(everything) <= set(names(brokers, keys.LOG))
    clock.pass_hours(1)
    await write_two(rig)
    # topics `t` and `gone` created, `gone` deleted, and the seal
    assert await deleter.round() == 4
    assert names(brokers, chain) == [keys.number(seq) for seq in (2, 3, 4)]
    assert verify_log(brokers.memory).damage == []
    assert len(names(brokers, keys.WRITERS)) == 2, "what is left must stay findable"
    assert rig.health.ready
    assert await deleter.round() == 0
    before = await stored(rig)
    assert [offset for offset, _ in before] == list(range(len(before)))
    topic = rig.view.topic("t")
    assert topic is not None
    parts = readable_in(read_log(brokers.memory)).values()
    assert {part.end_offset for part in parts if part.batches} == {len(before)}
    await rig.stop()
    valkey.wipe()
    third = await brokers.start()
    assert third.epoch == 3
    assert await stored(third) == before
    assert await produce(third, b"more") == (NONE, len(before))
    await write_two(third)


async def test_a_chain_that_is_wholly_dead_goes_with_its_registration(
    valkey: OwnValkey, brokers: Brokers, clock: Clock
) -> None:
    rig, chain = await second_epoch(valkey, brokers)
    await delete_topic(rig, "t")
    await create_topic(rig, "t", 4)
    await write_two(rig)
    await rig.duties.deleter.round()
    clock.pass_hours(24)
    await write_two(rig)
    deleted = await rig.duties.deleter.round()
    assert names(brokers, chain) == []
    assert len(names(brokers, keys.WRITERS)) == 1
    assert rig.epochs.work._broker.counts.upkeep.deleted_by_kind == {
        "checkpoints": 2,
        "seals": 1,
        "segments": deleted - 2,
        "registrations": 1,
    }


async def test_a_topic_of_the_live_epoch_frees_its_segments(brokers: Brokers, clock: Clock) -> None:
    rig = await brokers.start()
    await create_topic(rig, "t", 4)
    for _ in range(5):
        await produce(rig)
    await delete_topic(rig, "t")
    await create_topic(rig, "t", 4)
    await write_two(rig)
    await rig.duties.deleter.round()
    clock.pass_hours(24)
    await write_two(rig)
    assert await rig.duties.deleter.round() > 5
    assert keys.number(0) not in names(brokers, keys.chain(rig.writer))
    before = await stored(rig)
    assert len(before) == 8
    late = await brokers.start()
    assert late.epoch == 1
    assert await stored(late) == before


async def test_held_segments_are_settled_from_a_thinned_out_chain(
    valkey: OwnValkey, brokers: Brokers, clock: Clock
) -> None:
    rig = await brokers.start()
    await create_topic(rig, "t", 4)
    await write_two(rig)
    await rig.duties.deleter.round()
    clock.pass_hours(24)
    await write_two(rig)
    assert await rig.duties.deleter.round() > 0
    rig.sequencer.hold(Ask.PUBLISH)
    key = keys.segment(SegmentId(rig.writer, 9))
    sent = send(rig, b"held")
    await until(lambda: brokers.memory.head(key) is not None)
    valkey.wipe()
    rig.sequencer.let_go()
    assert await outcome(sent) == (NONE, 8)
    assert rig.epoch == 2
    assert (await produce(rig)) == (NONE, 9)
    assert [offset for offset, _ in await stored(rig)] == list(range(10))


async def test_a_broker_that_the_others_left_acknowledges_nothing_where_its_seal_was(
    tmp_path: Path, valkey: OwnValkey, brokers: Brokers, clock: Clock
) -> None:
    """Idle beside the old Redis for a day, which answers as ever."""
    zombie = await brokers.start()
    await create_topic(zombie, "t", 4)
    assert await produce(zombie) == (NONE, 0)
    zombie.fall_silent()
    other = OwnValkey(tmp_path / "other")
    other.path.parent.mkdir()
    other.start()
    try:
        rig = Rig(other.path, memory=brokers.memory, cluster_id=brokers.cluster_id, claim_wait_ms=0)
        await rig.start()
        assert rig.epoch == 2
        await write_two(rig)
        await rig.duties.deleter.round()
        clock.pass_hours(24)
        await write_two(rig)
        assert await rig.duties.deleter.round() > 0
        sealed = keys.segment(SegmentId(zombie.writer, 2))
        assert brokers.memory.head(sealed) is None
        zombie.epochs.work._claims._looked = None  # that long ago
        sent = send(zombie, b"lost?", timeout=1000)
        await until(lambda: brokers.memory.head(sealed) is not None)
        await until(lambda: zombie.epochs.work.end.reason is not None)
        assert "epoch 2 is claimed" in (zombie.epochs.work.end.reason or "")
        end = zombie.view.log(next(iter(zombie.view._logs)))
        assert end is not None
        assert end.high_watermark == 1
        sent.cancel()
        assert [value for _, value in await stored(rig)].count(b"lost?") == 0
        await rig.stop()
    finally:
        other.stop()


async def test_it_runs_by_itself(brokers: Brokers, clock: Clock) -> None:
    rig = await brokers.start(deletion_safety_age_ms=24)
    await create_topic(rig, "t", 4)
    await delete_topic(rig, "t")
    await create_topic(rig, "t", 4)
    await write_two(rig)
    await until(lambda: bool(names(brokers, keys.FLOORS)))
    clock.pass_hours(1)
    await write_two(rig)
    await until(
        lambda: rig.epochs.work._broker.counts.upkeep.deleted_by_kind.get("segments", 0) > 0
    )
    assert rig.health.ready


async def test_who_publishes_on_anothers_behalf_looks_at_the_claims_too(brokers: Brokers) -> None:
    rig = await brokers.start()
    await create_topic(rig, "t", 4)
    rig.sequencer.hold(Ask.PUBLISH)
    sent = send(rig, timeout=1000)
    there = SegmentId(rig.writer, 1)
    await until(lambda: brokers.memory.head(keys.segment(there)) is not None)
    brokers.claim(2)
    rig.epochs.work._claims._looked = None
    before = rig.sequencer.calls[Ask.PUBLISH]
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(SequencerLostError, match="epoch 2 is claimed"):
            await rig.epochs.work._sealer.close(there)
    assert rig.sequencer.calls[Ask.PUBLISH] == before
    rig.sequencer.let_go()
    sent.cancel()


async def test_tails_below_a_floor_are_not_believed(brokers: Brokers) -> None:
    """Of whoever began before it was laid, and was slow."""
    rig = await brokers.start()
    await create_topic(rig, "t", 4)
    committed = CommittedLog(ThreadedBucket(brokers.memory), footer_reads_in_flight=1)
    await write_two(rig)
    newer, older = await committed.checkpoints(2)
    assert await committed.tails(None)
    assert brokers.memory.create(keys.floor(newer.ticket), [encode_floor(Floor.of(older, newer))])
    assert await committed.tails(newer)
    for begun in (None, older):
        with pytest.raises(StaleCheckpointError):
            await committed.tails(begun)
    brokers.memory.delete([next(iter(brokers.memory.list(keys.WRITERS))).key])
    with pytest.raises(StaleCheckpointError):  # and not: it never registered
        await committed.tails(None)
