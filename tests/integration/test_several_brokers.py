"""Several brokers on one cluster: what one acknowledged all show, and what one holds up another
decides."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode
from redis import Redis as SyncRedis

from bucketlog.log_format.errors import BucketRefusedError
from bucketlog.log_format.model import SegmentId
from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.faulty import BucketVerb, Effect, Fault, ScriptedFaults
from tests.rigs.broker_rig import HELD, HELD_MS, create_topic, end_of, outcome, produce, send, until
from tests.rigs.patience import let_pass_async
from tests.rigs.several_brokers import QUICK, Brokers, fetch, stored
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none

# Reading what another broker acknowledged -------------------------------------------------------


async def test_what_one_acknowledged_all_list_and_fetch_at_once(brokers: Brokers) -> None:
    a, b = await brokers.pair()
    for at in range(10):
        writer, reader = (a, b) if at % 2 else (b, a)
        sequence = {"producer_id": 7, "producer_epoch": 0, "base_sequence": at}
        assert await produce(writer, b"%d" % at, **sequence) == (NONE, at)
        assert await end_of(reader) == at + 1
        assert (await stored(reader))[-1] == (at, b"%d" % at)
        assert await produce(reader, b"%d" % at, **sequence) == (NONE, at)  # a duplicate
    assert await stored(a) == await stored(b) == [(at, b"%d" % at) for at in range(10)]


async def test_the_latest_offset_waits_for_a_view_that_lags(brokers: Brokers) -> None:
    a, b = await brokers.pair(view_wait_ms_max=20_000)
    b.sequencer.hold_stream()
    assert await produce(a) == (NONE, 0)
    asked = b.sequencer.calls[Ask.VISIBLE_NUMBER]
    listed = asyncio.create_task(end_of(b))
    await until(lambda: b.sequencer.calls[Ask.VISIBLE_NUMBER] > asked)
    assert not listed.done()
    b.sequencer.let_stream_go()
    assert await listed == 1


async def test_an_offset_beyond_a_view_that_lags_is_not_out_of_range(brokers: Brokers) -> None:
    a, b = await brokers.pair(view_wait_ms_max=50)
    b.sequencer.hold_stream()
    assert await produce(a) == (NONE, 0)
    row = await fetch(b, 1)
    assert row.error_code is ErrorCode.offset_not_available
    assert row.error_code.retriable
    b.sequencer.let_stream_go()
    assert await end_of(b) == 1
    assert (await fetch(b, 1)).error_code is NONE
    assert (await fetch(b, 2)).error_code is ErrorCode.offset_out_of_range


async def test_an_offset_beyond_a_view_is_waited_for(brokers: Brokers) -> None:
    a, b = await brokers.pair(view_wait_ms_max=20_000)
    b.sequencer.hold_stream()
    assert await produce(a) == (NONE, 0)
    asked = b.sequencer.calls[Ask.VISIBLE_NUMBER]
    fetched = asyncio.create_task(fetch(b, 1))
    await until(lambda: b.sequencer.calls[Ask.VISIBLE_NUMBER] > asked)
    b.sequencer.let_stream_go()
    row = await fetched
    assert (row.error_code, row.high_watermark) == (NONE, 1)


async def test_without_the_sequencer_nothing_is_out_of_range(brokers: Brokers) -> None:
    _, b = await brokers.pair(view_wait_ms_max=50)
    b.sequencer.hold(Ask.VISIBLE_NUMBER)
    assert (await fetch(b, 1)).error_code is ErrorCode.offset_not_available


# A writer that holds others up ------------------------------------------------------------------

Sequence = dict[str, int]


NEVER_MS = 1_000_000
PATIENT = {
    "put_stalled_ms": NEVER_MS,
    "put_give_up_ms": NEVER_MS,
    "reservation_limit_ms": NEVER_MS + 1,
}
"""A broker waits for its PUTs on the slowest machine."""


def idempotent(sequence: int) -> Sequence:
    return {"producer_id": 77, "producer_epoch": 0, "base_sequence": sequence}


@pytest.mark.parametrize("producer", ["plain", "idempotent"])
@pytest.mark.parametrize("first_let_go", [0, 1])
async def test_a_silent_writer_is_sealed_and_its_batches_land_once_at_new_offsets(
    brokers: Brokers, producer: str, first_let_go: int
) -> None:
    a, b = await brokers.pair(**QUICK, **PATIENT)
    a.plan = ScriptedFaults({BucketVerb.CREATE: [HELD, HELD]})
    sequences = [idempotent(at) if producer == "idempotent" else {} for at in range(3)]
    held = [send(a, b"held 0", **sequences[0])]
    await until(lambda: a.held == 1)
    held.append(send(a, b"held 1", **sequences[1]))
    await until(lambda: a.held == 2)
    puts = b.counts.snapshot().creates
    later = send(b, b"later")
    await until(lambda: b.counts.snapshot().creates == puts + 1 and not b.committer.buffer)
    assert await end_of(b) == await end_of(a) == 0  # reserved at 2, behind what is open
    assert await stored(b) == []
    assert not later.done()
    first_writer = a.committer.writer
    a.fall_silent()
    assert await outcome(later) == (NONE, 2)
    assert await end_of(b) == 3
    assert await stored(b) == [(2, b"later")]
    await until(lambda: brokers.read_without_brokers(b) == (3, 0))  # nobody produces: a stamp
    assert not held[0].done()
    assert not held[1].done()
    a.come_back()
    a.let_go(first_let_go)
    a.let_go()
    assert [await outcome(one) for one in held] == [(NONE, 3), (NONE, 4)]
    assert a.committer.writer != first_writer
    assert await produce(b, b"last", **sequences[2]) == (NONE, 5)
    everything = [(2, b"later"), (3, b"held 0"), (4, b"held 1"), (5, b"last")]
    for rig in (a, b):
        assert await end_of(rig) == 6
        assert await stored(rig) == everything
        assert rig.health.ready, rig.health.report()
    await until(lambda: brokers.read_without_brokers(b) == (6, 0))
    await until(lambda: a.budget.held_bytes == 0)


async def test_a_segment_in_the_bucket_is_published_on_behalf_of_its_silent_writer(
    brokers: Brokers,
) -> None:
    a, b = await brokers.pair(**QUICK)
    a.sequencer.hold(Ask.PUBLISH)
    kept = send(a, b"kept", **idempotent(0))
    await until(lambda: a.sequencer.held == 1)
    assert await end_of(b) == 0
    a.fall_silent()
    assert await outcome(kept) == (NONE, 0)  # A's own publication has not arrived
    assert await end_of(b) == 1
    a.come_back()
    a.sequencer.let_go()
    assert await produce(a, b"kept", **idempotent(0)) == (NONE, 0)
    error, at = await produce(a, b"next", **idempotent(1))
    assert error is NONE  # at 2, where the seal came before its PUT
    for rig in (a, b):
        assert await end_of(rig) == at + 1
        assert await stored(rig) == [(0, b"kept"), (at, b"next")]
        assert rig.health.ready, rig.health.report()


async def test_a_writer_whose_reservation_is_old_is_sealed_although_it_lives(
    brokers: Brokers,
) -> None:
    a, b = await brokers.pair(
        heartbeat_interval_ms=100, put_give_up_ms=899, reservation_limit_ms=900
    )
    assert b.settings.reservation_limit_ms < b.settings.session_timeout_ms
    a.sequencer.hold(Ask.PUBLISH)
    kept = send(a, b"kept")
    await until(lambda: a.sequencer.held == 1)
    assert await outcome(kept) == (NONE, 0)
    a.sequencer.let_go()
    assert (await produce(a, b"next"))[0] is NONE
    assert [value for _, value in await stored(a)] == [b"kept", b"next"]


async def test_a_put_that_does_not_end_is_given_up_and_written_by_a_successor(
    brokers: Brokers,
) -> None:
    """Its late arrivals change nothing: at the sealed key, and behind it."""
    a, b = await brokers.pair(put_give_up_ms=300)
    late = Fault(Effect.LATER, later_ms=HELD_MS)
    a.plan = ScriptedFaults({BucketVerb.CREATE: [late, late, HELD, HELD]})
    writer, seq = a.committer.writer, len(a.segment_keys())
    sent = [send(a, b"one", **idempotent(0))]
    await until(lambda: a.counts.snapshot().creates > 0 and len(a.committer.awaited()) == 1)
    sent.append(send(a, b"two", **idempotent(1)))
    await until(lambda: len(a.committer.awaited()) == 2)
    assert [await outcome(one) for one in sent] == [(NONE, 2), (NONE, 3)]
    assert a.committer.writer != writer
    a.let_go()
    await until(lambda: brokers.memory.head(keys.segment(SegmentId(writer, seq + 1))) is not None)
    for rig in (a, b):
        assert await end_of(rig) == 4
        assert await stored(rig) == [(2, b"one"), (3, b"two")]
    assert await produce(b, b"two", **idempotent(1)) == (NONE, 3)
    await until(lambda: brokers.read_without_brokers(b) == (4, 0))
    assert a.health.ready, a.health.report()
    await until(lambda: a.budget.held_bytes == 0)


async def test_what_is_being_reserved_while_its_writer_is_fenced_comes_after_what_is_void(
    brokers: Brokers,
) -> None:
    a, _ = await brokers.pair()
    a.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    void = send(a, b"void", **idempotent(0))
    await until(lambda: a.held == 1)
    a.sequencer.hold(Ask.RESERVE)
    in_hand = send(a, b"in hand", **idempotent(1))
    await until(lambda: a.sequencer.held == 1)
    fences = a.sequencer.calls[Ask.FENCE]
    brokers.seal(SegmentId(a.writer, len(a.segment_keys())))
    a.let_go()
    await until(lambda: a.sequencer.calls[Ask.FENCE] > fences)
    await let_pass_async(0.02)  # for what must not be reserved meanwhile
    a.sequencer.let_go()
    assert await outcome(void) == (NONE, 1)
    assert await outcome(in_hand) == (NONE, 2)
    assert await stored(a) == [(1, b"void"), (2, b"in hand")]


async def test_topic_changes_of_a_void_segment_are_made_again(brokers: Brokers) -> None:
    a, b = await brokers.pair()
    a.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    created = asyncio.create_task(create_topic(a, "late", 3))
    await until(lambda: a.held == 1)
    brokers.seal(SegmentId(a.writer, len(a.segment_keys())))
    assert a.view.topic("late") is None
    a.let_go()
    assert await created is NONE
    await until(lambda: b.view.topic("late") is not None)
    topics = [rig.view.topic("late") for rig in (a, b)]
    assert topics[0] == topics[1]
    assert topics[0] is not None
    assert topics[0].partitions == 3
    assert await create_topic(b, "late") is ErrorCode.topic_already_exists
    assert brokers.writers() == 3


async def test_a_client_that_gave_up_is_not_written_again(brokers: Brokers) -> None:
    a, b = await brokers.pair()
    a.plan = ScriptedFaults({BucketVerb.CREATE: [HELD]})
    assert await produce(a, b"given up", timeout=20) == (ErrorCode.request_timed_out, -1)
    brokers.seal(SegmentId(a.writer, len(a.segment_keys())))
    a.let_go()
    await until(lambda: brokers.writers() == 3)
    assert await produce(a, b"next") == (NONE, 1)
    assert await end_of(b) == 2
    assert await stored(b) == [(1, b"next")]


# The feed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("checkpointed", "limit"),
    [(False, "stream_segments_max"), (True, "stream_segments_max"), (False, "stream_bytes_max")],
)
async def test_a_view_that_the_stream_has_left_behind_is_read_from_the_bucket(
    brokers: Brokers, valkey: OwnValkey, checkpointed: bool, limit: str
) -> None:
    with SyncRedis(unix_socket_path=str(valkey.path)) as redis:
        redis.config_set("stream-node-max-entries", 1)  # trimmed to the entry
    a, b = await brokers.pair(view_wait_ms_max=20_000, **{limit: 2})
    b.sequencer.hold_stream()
    assert await produce(a, b"elsewhere", partition=3) == (NONE, 0)  # B's feed holds this one
    polled = asyncio.create_task(fetch(b, 0, max_wait=20_000))
    own = send(b, b"own", **idempotent(0))
    await until(lambda: b.sequencer.calls[Ask.PUBLISH] == 1)
    assert await end_of(a) == 1
    for at in range(1, 6):
        assert await produce(a, b"%d" % at) == (NONE, at)
    assert not own.done()
    if checkpointed:
        made = await a.checkpointer.write()
        assert made is not None
        assert made.covers(SegmentId(b.writer, 0))
    listed = asyncio.create_task(end_of(b))
    b.sequencer.let_stream_go()
    assert await outcome(own) == (NONE, 0)
    assert await listed == 6
    expected = [(0, b"own")] + [(at, b"%d" % at) for at in range(1, 6)]
    assert await stored(b) == await stored(a) == expected
    assert (await polled).high_watermark == 6
    assert await produce(a) == (NONE, 6)
    assert await end_of(b) == 7
    assert b.health.ready, b.health.report()


async def test_a_bucket_that_fails_while_a_view_is_read_anew_is_asked_again(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    with SyncRedis(unix_socket_path=str(valkey.path)) as redis:
        redis.config_set("stream-node-max-entries", 1)
    a, b = await brokers.pair(stream_segments_max=1, view_wait_ms_max=20_000)
    b.sequencer.hold_stream()
    for at in range(3):
        assert await produce(a) == (NONE, at)
    denied = Fault(error=BucketRefusedError("injected: denied"))  # at once, not after retries
    b.plan = lambda verb, key: denied if verb in (BucketVerb.LIST, BucketVerb.GET) else None
    b.sequencer.let_stream_go()
    await until(lambda: "stream" in b.health.report())
    b.plan = ScriptedFaults({})
    assert await end_of(b) == 3
    assert b.health.ready, b.health.report()
