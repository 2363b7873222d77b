"""Coordinators on a real sequencer: one at a time, nothing told too early, no leftovers."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_messages import (
    CONSUMER_PROTOCOL_TYPE,
    CallerIdentity,
    GroupDescription,
    GroupState,
    LeavingMember,
)
from bucketlog.consumers.group_store import GroupSummary
from bucketlog.consumers.snapshot import snapshot
from bucketlog.metadata.sequencer.scripts import SequencerVerb
from tests.models.groups import REBALANCE_MS, SESSION_MS, SETTINGS, asks
from tests.rigs.broker_rig import until
from tests.rigs.coordinators import Seat, seats
from tests.rigs.patience import PATIENCE_S
from tests.servers.sequencing import Sequencing

NOBODY = CallerIdentity("nobody", 1)
ANYBODY = CallerIdentity("", -1)
Pair = tuple[Seat, Seat]


@pytest.fixture
async def pair(sequencing: Sequencing) -> AsyncIterator[Pair]:
    async with seats(sequencing) as found:
        yield found


async def test_another_coordinator_goes_on_without_a_rebalance(pair: Pair) -> None:
    first, second = pair
    members = await first.form("a", "b")
    assert {await second.beat(each) for each in members.values()} == {ErrorCode.none}
    assert (await second.sync(members["b"])).assignment == b"b"
    described = await second.coordinator.describe("g")
    assert isinstance(described, GroupDescription)
    assert (described.state, len(described.members)) == (GroupState.STABLE, 2)


async def test_groups_beyond_the_limit_are_refused(
    sequencing: Sequencing, caplog: pytest.LogCaptureFixture
) -> None:
    """Groups with offsets count, and can be taken by any broker."""
    async with seats(sequencing, groups_max=2) as (first, second):
        for group in ("with offsets", "and another"):
            assert await first.commit(1, ANYBODY, group=group) is ErrorCode.none
        assert await first.commit(1, ANYBODY, group="third") is ErrorCode.policy_violation
        assert (await first.joins("a")).error is ErrorCode.policy_violation
        assert await second.commit(2, ANYBODY, group="with offsets") is ErrorCode.none
        assert caplog.text.count("raise BUCKETLOG_GROUPS_MAX") == 1
        # as after a new epoch, which knows groups by their offsets alone
        await sequencing.redis.hdel(sequencing.key("groups"), *await sequencing.records("groups"))
        assert await first.commit(1, ANYBODY, group="fourth") is ErrorCode.policy_violation


async def test_members_beyond_the_memory_of_all_groups_are_refused(
    sequencing: Sequencing, caplog: pytest.LogCaptureFixture
) -> None:
    """Existing members stay, and the memory of groups that are resigned is free again."""
    async with seats(sequencing, bytes_max=30_000) as (first, _):
        members = await first.form("a")
        large = asks("b", protocols=[("range", bytes(20_000))])
        joining = asyncio.create_task(first.coordinator.join("h", large))
        await until(lambda: first.memory.used_bytes > 20_000)
        refused = await first.coordinator.join("i", large)
        assert refused.error is ErrorCode.coordinator_not_available
        grown = await first.coordinator.join("g", replace(large, member_id=members["a"].member_id))
        assert grown.error is ErrorCode.coordinator_not_available
        assert caplog.text.count("raise BUCKETLOG_COORDINATED_GROUPS_BYTES_MAX") == 1
        assert await first.beat(members["a"]) is ErrorCode.none
        assert (await first.sync(members["a"])).assignment == b"a"
        first.pass_ms(REBALANCE_MS)
        assert (await joining).error is ErrorCode.none
        first.coordinator.resign_all()
        assert first.memory.used_bytes == 0


async def test_assignments_beyond_the_memory_of_all_groups_are_refused(
    sequencing: Sequencing,
) -> None:
    """The leader may repeat its request once there is memory."""
    async with seats(sequencing, bytes_max=30_000) as (first, _):
        large = asks("b", protocols=[("range", bytes(15_000))])
        joining = asyncio.create_task(first.coordinator.join("h", large))
        await until(lambda: first.memory.used_bytes > 15_000)
        first.pass_ms(1)
        held = await joining
        joining = first.joins("a")
        await until(lambda: first.joined == 1)
        first.pass_ms(1)
        leader = CallerIdentity((await joining).member_id, 1)
        wishes = ((leader.member_id, bytes(20_000)),)
        refused = await first.sync(leader, wishes)
        assert refused.error is ErrorCode.coordinator_not_available
        stranger = await first.sync(CallerIdentity("stranger", 1), wishes)
        assert stranger.error is ErrorCode.unknown_member_id
        await first.coordinator.leave("h", [LeavingMember(held.member_id)])
        assert (await first.sync(leader, wishes)).assignment == bytes(20_000)
        # an assigned group ignores assignments
        longer = ((leader.member_id, bytes(29_000)),)
        assert (await first.sync(leader, longer)).assignment == bytes(20_000)


async def test_a_request_that_is_wrong_is_refused_as_such_where_memory_is_full(
    sequencing: Sequencing,
) -> None:
    async with seats(sequencing, bytes_max=3_000) as (first, _):
        me = (await first.form("a"))["a"].member_id
        large = [("range", bytes(20_000))]
        for wrong, error in (
            (asks("b", "", large), ErrorCode.coordinator_not_available),
            (asks("b", "unknown", large), ErrorCode.unknown_member_id),
            (asks("b", "", large, session_ms=1), ErrorCode.invalid_session_timeout),
            (
                asks("b", "", large, protocol_type="connect"),
                ErrorCode.inconsistent_group_protocol,
            ),
            (asks("a", me, large, instance="i"), ErrorCode.unknown_member_id),
        ):
            assert (await first.coordinator.join("g", wrong)).error is error


async def test_memory_is_free_again_when_sessions_end(sequencing: Sequencing) -> None:
    async with seats(sequencing, bytes_max=30_000) as (first, _):
        large = [("range", bytes(20_000))]
        first_one = first.joins("a", protocols=large)
        await until(lambda: first.joined == 1)
        first.pass_ms(1)
        assert (await first_one).error is ErrorCode.none
        pending = await first.coordinator.join("p", asks("p", two_steps=True))
        assert pending.error is ErrorCode.member_id_required
        assert first.memory.used_bytes > 20_000
        first.pass_ms(SESSION_MS)
        first.pass_ms(REBALANCE_MS)
        assert first.memory.used_bytes == 0


async def test_a_deletion_whose_client_is_gone_leaves_no_dead_group(pair: Pair) -> None:
    first, _ = pair
    assert await first.commit(1, ANYBODY) is ErrorCode.none
    pending = await first.joins("p", two_steps=True)
    assert pending.error is ErrorCode.member_id_required
    assert first.memory.used_bytes > 0
    first.log.hold()
    deleting = asyncio.create_task(first.offsets.delete_group("g"))
    await until(lambda: first.log.reserved == 2)
    deleting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deleting
    first.log.let_go()
    await until(lambda: not first.tasks)
    assert first.memory.used_bytes == 0
    await first.form("a")


async def test_a_snapshot_of_another_group_is_not_used(pair: Pair, sequencing: Sequencing) -> None:
    first, second = pair
    await first.form("a")
    held = first.coordinator.find("g")
    assert held is not None
    other = Group("other", SETTINGS, lambda: "")
    revision = held.group.revision + 1
    assert await sequencing.sequencer.store_group(
        1, "g", held.term, revision, "Empty", "consumer", snapshot(other)
    )
    await second.form("b")
    second.coordinator.resign_all()
    assert second.memory.used_bytes == 0
    assert second.coordinator.find("g") is None


async def test_who_was_taken_over_tells_nobody_anything_any_more(pair: Pair) -> None:
    first, second = pair
    members = await first.form("a", "b")
    assert await second.beat(members["a"]) is ErrorCode.none
    again = await first.joins("a", members["a"].member_id)
    # in the join phase nobody is told anything; the change is what it cannot store
    assert again.error is ErrorCode.not_coordinator
    assert first.coordinator.find("g") is None
    assert await second.beat(members["b"]) is ErrorCode.none, "nothing came of it"


async def test_only_one_of_two_can_commit(pair: Pair) -> None:
    first, second = pair
    members = await first.form("a")
    assert await first.commit(5, members["a"]) is ErrorCode.none
    assert await second.beat(members["a"]) is ErrorCode.none
    assert await first.commit(6, members["a"]) is ErrorCode.not_coordinator
    assert first.coordinator.find("g") is None
    assert await second.committed() == {0: 5}
    assert await second.commit(7, members["a"]) is ErrorCode.none
    assert await second.committed() == {0: 7}


async def test_what_is_not_stored_is_not_told(pair: Pair) -> None:
    first, second = pair
    first.sequencer.hold(SequencerVerb.STORE_GROUP)
    joining = first.joins("a")
    await until(lambda: first.joined == 1)
    first.coordinator.expire()
    await until(lambda: first.sequencer.held == 1)
    assert not joining.done()
    beating = asyncio.create_task(first.beat(NOBODY))
    await until(lambda: first.sequencer.calls[SequencerVerb.STORE_GROUP] == 1)
    assert not beating.done(), "an answer that tells of what is not stored"
    assert await second.beat(NOBODY) is ErrorCode.unknown_member_id  # and lets go of nothing
    await second.form("b")
    first.sequencer.let_go()
    assert (await joining).error is ErrorCode.not_coordinator
    assert await beating is ErrorCode.not_coordinator


async def test_a_store_whose_answer_is_lost_is_repeated(pair: Pair) -> None:
    first, second = pair
    first.sequencer.lose_answer(SequencerVerb.STORE_GROUP)
    members = await first.form("a")
    assert first.sequencer.lost == 1
    assert await second.beat(members["a"]) is ErrorCode.none


async def test_a_taking_whose_answer_is_lost_is_asked_for_again_by_the_client(pair: Pair) -> None:
    first, _ = pair
    first.sequencer.lose_answer(SequencerVerb.TAKE_GROUP)
    assert await first.beat(NOBODY) is ErrorCode.coordinator_not_available
    await first.form("a")


async def test_members_that_come_together_share_takings_and_stores(pair: Pair) -> None:
    first, _ = pair
    await first.form(*(f"m{number}" for number in range(50)))
    calls = first.sequencer.calls
    assert calls[SequencerVerb.TAKE_GROUP] == 1
    assert calls[SequencerVerb.STORE_GROUP] <= 6


async def test_a_group_of_which_there_never_was_anything_leaves_nothing(
    pair: Pair, sequencing: Sequencing
) -> None:
    first, _ = pair
    for number in range(5):
        assert await first.coordinator.heartbeat(f"x{number}", NOBODY) is (
            ErrorCode.unknown_member_id
        )
        assert await first.coordinator.describe(f"y{number}") is ErrorCode.group_id_not_found
        assert await first.committed(group=f"z{number}") == {}
    await until(lambda: not first.tasks)
    assert first.sequencer.calls[SequencerVerb.FORGET_GROUP] == 15
    assert await sequencing.records("groups") == {}


async def test_who_stays_away_is_out_when_its_session_ends(pair: Pair) -> None:
    first, _ = pair
    members = await first.form("a", "b")
    first.pass_ms(SESSION_MS - 1)
    assert await first.beat(members["a"]) is ErrorCode.none
    first.pass_ms(1)
    assert await first.beat(members["a"]) is ErrorCode.rebalance_in_progress
    assert await first.beat(members["b"]) is ErrorCode.unknown_member_id


async def test_the_next_coordinator_knows_who_was_let_go(pair: Pair) -> None:
    first, second = pair
    members = await first.form("a", "b")
    left = await first.coordinator.leave("g", [LeavingMember(members["b"].member_id)])
    assert left.members[0].error is ErrorCode.none
    assert await second.beat(members["b"]) is ErrorCode.unknown_member_id
    assert await second.beat(members["a"]) is ErrorCode.rebalance_in_progress


async def test_the_timer_runs_by_itself(sequencing: Sequencing) -> None:
    async with seats(sequencing) as (first, _):
        timer = asyncio.create_task(first.coordinator.run())
        assert (await first.joins("a")).error is ErrorCode.none, "the initial delay is over at once"
        timer.cancel()


async def test_those_who_wait_are_told_when_the_group_is_another_brokers(pair: Pair) -> None:
    first, second = pair
    members = await first.form("a", "b")
    waiting = first.joins("a", members["a"].member_id)
    await until(lambda: first.joined == 1)
    first.refusal = ErrorCode.not_coordinator
    first.coordinator.check_ownership()
    assert (await waiting).error is ErrorCode.not_coordinator
    assert await first.beat(members["b"]) is ErrorCode.not_coordinator
    assert await second.beat(members["b"]) is ErrorCode.rebalance_in_progress


async def test_no_deadline_is_met_by_a_broker_whose_group_it_is_no_more(pair: Pair) -> None:
    first, second = pair
    members = await first.form("a")
    first.refusal = ErrorCode.not_coordinator
    first.pass_ms(SESSION_MS)
    assert await second.beat(members["a"]) is ErrorCode.none


async def test_a_client_that_goes_leaves_no_waiting_request(pair: Pair) -> None:
    first, _ = pair
    members = await first.form("a", "b")
    waiting = first.joins("a", members["a"].member_id)
    await until(lambda: first.joined == 1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    held = first.coordinator.find("g")
    assert held is not None
    assert held.users == 0
    other = first.joins("b", members["b"].member_id)
    assert (await other).generation == 2, "it joined all the same, as in Kafka"


async def test_an_unreadable_snapshot_begins_the_group_anew(
    pair: Pair, sequencing: Sequencing
) -> None:
    first, second = pair
    members = await first.form("a", "b")
    held = first.coordinator.find("g")
    assert held is not None
    mine = await sequencing.sequencer.store_group(
        1, "g", held.term, held.group.revision + 1, "Stable", "consumer", b"nonsense"
    )
    assert mine
    assert await second.beat(members["a"]) is ErrorCode.unknown_member_id
    await second.form("c")
    assert not second.store_lost


async def test_listed_are_groups_with_members_and_groups_with_offsets(pair: Pair) -> None:
    first, second = pair
    await first.form("a")
    listed = await second.coordinator.list(["only offsets"])
    assert listed == [
        GroupSummary("g", CONSUMER_PROTOCOL_TYPE, GroupState.STABLE),
        GroupSummary("only offsets", "", GroupState.EMPTY),
    ]
    assert await second.coordinator.list([]) == listed[:1]
    assert second.sequencer.calls[SequencerVerb.LIST_GROUPS] == 1, "asked for once"
    await leave_all(second)
    assert await second.coordinator.list([]) == [
        GroupSummary("g", CONSUMER_PROTOCOL_TYPE, GroupState.EMPTY)
    ]
    assert await first.coordinator.list([]) == [
        GroupSummary("g", CONSUMER_PROTOCOL_TYPE, GroupState.STABLE)
    ], "it holds the group still, as far as it knows"
    first.coordinator.check_ownership()
    first.coordinator.resign_all()
    assert await first.coordinator.list([]) == [
        GroupSummary("g", CONSUMER_PROTOCOL_TYPE, GroupState.EMPTY)
    ]
    second.refusal = ErrorCode.not_coordinator
    second.coordinator.check_ownership()
    assert await second.coordinator.list(["only offsets"]) == []


async def leave_all(seat: Seat) -> None:
    described = await seat.coordinator.describe("g")
    assert isinstance(described, GroupDescription)
    leaving = [LeavingMember(each.member_id) for each in described.members]
    assert (await seat.coordinator.leave("g", leaving)).error is ErrorCode.none


async def test_an_id_beyond_its_bound_is_refused(pair: Pair) -> None:
    first, _ = pair
    assert await first.coordinator.heartbeat("g" * 1025, NOBODY) is ErrorCode.invalid_group_id


async def test_the_end_of_an_epoch_is_an_answer_to_whoever_waits_for_a_group(pair: Pair) -> None:
    """Also before the first step of the task that takes the group."""
    first, _ = pair
    joining = first.joins("a")
    await asyncio.sleep(0)
    assert first.tasks
    first.refusal = ErrorCode.not_coordinator
    first.coordinator.resign_all()
    await first.supervisor.cancel_all()
    async with asyncio.timeout(PATIENCE_S):
        error = (await joining).error
    assert error in (ErrorCode.not_coordinator, ErrorCode.coordinator_not_available)
