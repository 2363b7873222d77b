"""Brokers that see different Redis servers: which take the log, and which leave it alone."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from bucketlog.tiered_storage import keys
from tests.rigs.broker_rig import Rig, create_topic, end_of, outcome, produce, send, until
from tests.rigs.several_brokers import Brokers, fetch, stored
from tests.servers.own_valkey import OwnValkey
from tests.servers.way import Way

NONE = ErrorCode.none
PATIENT = {"takeover_quiet_ms": 600_000}
"""A moment without writes is no reason to take an epoch from another Redis."""
SHORT_SESSIONS = {"session_timeout_ms": 1000, "heartbeat_interval_ms": 50}
NEVER_MS = 1_000_000


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[OwnValkey]:
    """Another Redis, which knows nothing of the log."""
    (tmp_path / "elsewhere").mkdir()
    server = OwnValkey(tmp_path / "elsewhere")
    server.start()
    yield server
    server.stop()


def reason(rig: Rig) -> str:
    return rig.health.report().get("joining", "")


def is_in(rig: Rig, epoch: int) -> bool:
    return rig.epoch == epoch and rig.health.ready


def knows(rig: Rig, key: str) -> bool:
    """Whether the broker need not read the segment any more."""
    return rig.node.parts.storage.committed.known.index(keys.parse_segment(key)) is not None


async def looked_again(rig: Rig) -> None:
    asked = rig.sequencer.calls[Ask.ACTIVE_EPOCH]
    await until(lambda: rig.sequencer.calls[Ask.ACTIVE_EPOCH] > asked + 3)


async def test_a_broker_that_was_left_behind_leaves_the_log_alone_and_follows_in_the_end(
    brokers: Brokers, valkey: OwnValkey, elsewhere: OwnValkey, tmp_path: Path
) -> None:
    with Way(valkey.path, tmp_path / "way.sock") as way:
        brokers.by(tmp_path / "way.sock")
        left = await brokers.start(**PATIENT)
        await create_topic(left, "t", 4)
        brokers.by(elsewhere.path)
        new = [await brokers.start() for _ in range(2)]
        assert [rig.epoch for rig in new] == [2, 2]
        late = send(left, b"late")
        await until(lambda: "epoch 2 is on another Redis" in reason(left))
        assert "check that all brokers reach the same Redis primary" in reason(left)
        assert not left.health.ready
        for number in range(3):
            assert await produce(new[number % 2], b"new") == (NONE, number)
            await looked_again(left)
        await until(lambda: all(knows(left, key) for rig in new for key in rig.segment_keys()))
        assert not late.done()
        assert brokers.claims() == 2
        way.lead_to(elsewhere.path)
        assert await outcome(late) == (NONE, 3)
    assert {rig.epoch for rig in (left, *new)} == {2}
    assert await stored(left) == [(0, b"new"), (1, b"new"), (2, b"new"), (3, b"late")]


async def test_a_broker_that_was_left_behind_sends_its_clients_to_the_others(
    brokers: Brokers, valkey: OwnValkey, elsewhere: OwnValkey, tmp_path: Path
) -> None:
    """The old Redis still answers the broker's heartbeats, but no longer lists the others."""
    ways = [Way(valkey.path, tmp_path / name) for name in ("way.sock", "others.sock")]
    with ways[0] as way, ways[1] as way_of_others:
        brokers.by(tmp_path / "way.sock")
        left = await brokers.start(**PATIENT, **SHORT_SESSIONS)
        await create_topic(left, "t", 1)
        brokers.by(tmp_path / "others.sock")
        others = [await brokers.start(**SHORT_SESSIONS) for _ in range(2)]
        ids = [rig.membership.me.node_id for rig in others]
        await until(lambda: len(left.membership.serving) == 3)
        way_of_others.lead_to(elsewhere.path)
        await until(lambda: all(is_in(rig, 2) for rig in others))
        error, _ = await outcome(send(left, b"late", timeout=NEVER_MS))
        assert error is ErrorCode.not_leader_or_follower
        await until(lambda: left.membership.members == (left.membership.me,))
        assert [one.node_id for one in left.membership.serving] == ids
        assert (await outcome(send(left, b"later")))[0] is ErrorCode.not_leader_or_follower
        assert (await fetch(left, 0)).error_code is ErrorCode.not_leader_or_follower
        assert await produce(others[0], b"late") == (NONE, 0)
        assert brokers.claims() == 2
        way.lead_to(elsewhere.path)
        await until(lambda: is_in(left, 2) and len(left.membership.serving) == 3)
        assert await produce(left, b"again") == (NONE, 1)
    assert await stored(left) == [(0, b"late"), (1, b"again")]


async def test_answers_of_two_servers_are_not_put_together(
    brokers: Brokers,
    valkey: OwnValkey,
    elsewhere: OwnValkey,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker's Redis changes just after it was asked for the active epoch. The new server's
    claim looks overdue by then, but is active there."""
    with Way(valkey.path, tmp_path / "way.sock") as way:
        brokers.by(tmp_path / "way.sock")
        left = await brokers.start(claim_wait_ms=1, **PATIENT)
        await create_topic(left, "t")
        brokers.by(elsewhere.path)
        new = [await brokers.start() for _ in range(2)]
        late = send(left, b"late")
        await until(lambda: "epoch 2 is on another Redis" in reason(left))
        ask = left.sequencer.active_epoch

        async def change_after_the_answer() -> int | None:
            monkeypatch.setattr(left.sequencer, "active_epoch", ask)
            epoch = await ask()
            way.lead_to(elsewhere.path)
            return epoch

        monkeypatch.setattr(left.sequencer, "active_epoch", change_after_the_answer)
        assert await outcome(late) == (NONE, 0)
    assert {rig.epoch for rig in (left, *new)} == {2}
    assert brokers.claims() == 2


async def test_more_brokers_take_the_log_back(brokers: Brokers, elsewhere: OwnValkey) -> None:
    pair = await brokers.pair(takeover_quiet_ms=20)
    brokers.by(elsewhere.path)
    stray = await brokers.start()
    assert stray.epoch == 2, "the stray broker should take the log while nothing is written"
    stray.sequencer.hold_all()
    for number, rig in enumerate(pair):
        assert await produce(rig) == (NONE, number)
    assert [rig.epoch for rig in pair] == [3, 3]
    assert await end_of(pair[0]) == 2
    stray.sequencer.let_go()


async def test_a_claim_for_another_redis_that_came_to_nothing_is_claimed_over(
    brokers: Brokers,
) -> None:
    rig = await brokers.start(claim_stalled_ms=100, claim_look_ms=20)
    await create_topic(rig, "t")
    claim = {"run_id": "gone", "master_replid": "gone", "incarnation": "dead", "nonce": ""}
    key = keys.epoch_claim(2)
    assert brokers.memory.create(key, [json.dumps(claim).encode()])
    await until(lambda: is_in(rig, 3))
    assert await produce(rig) == (NONE, 0)
