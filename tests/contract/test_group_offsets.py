"""Committed offsets under the coordinator: fencing, order, what a fetch waits for, expiry."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import (
    ANYBODY,
    CallerIdentity,
    GroupDescription,
    GroupState,
    LeavingMember,
)
from bucketlog.consumers.group_store import GroupSummary
from bucketlog.consumers.offset_expiry import expired_offsets
from bucketlog.metadata.facts import OffsetRow
from tests.models.groups import SESSION_MS, asks
from tests.rigs.broker_rig import until
from tests.rigs.coordinators import DAY_MS, OFFSETS, Seat, seats
from tests.servers.sequencing import Sequencing

WEEK_MS = OFFSETS.retention_ms
Pair = tuple[Seat, Seat]


@pytest.fixture
async def pair(sequencing: Sequencing) -> AsyncIterator[Pair]:
    async with seats(sequencing) as found:
        yield found


async def leave(seat: Seat, members: dict[str, CallerIdentity]) -> None:
    leaving = [LeavingMember(each.member_id) for each in members.values()]
    outcome = await seat.coordinator.leave("g", leaving)
    assert {each.error for each in outcome.members} == {ErrorCode.none}
    described = await seat.coordinator.describe("g")
    assert isinstance(described, GroupDescription)
    assert described.state is GroupState.EMPTY


async def test_a_consumer_without_a_group_keeps_its_offsets(pair: Pair) -> None:
    first, second = pair
    assert await first.commit(3, ANYBODY) is ErrorCode.none
    assert await second.committed() == {0: 3}
    assert await second.commit(4, ANYBODY, 1) is ErrorCode.none
    assert await second.committed(stable=False) == {0: 3, 1: 4}


async def test_a_member_commits_in_its_generation_alone(pair: Pair) -> None:
    first, _ = pair
    assert await first.commit(1, CallerIdentity("m", 3)) is ErrorCode.group_id_not_found
    member = (await first.form("a"))["a"]
    assert await first.commit(1, member) is ErrorCode.none
    assert await first.commit(2, member._replace(generation=9)) is ErrorCode.illegal_generation
    assert await first.commit(2, CallerIdentity("m", 1)) is ErrorCode.unknown_member_id
    assert await first.commit(2, ANYBODY) is ErrorCode.unknown_member_id
    assert await first.committed() == {0: 1}


async def test_commits_come_into_the_log_in_their_order(pair: Pair) -> None:
    first, _ = pair
    member = (await first.form("a"))["a"]
    errors = await asyncio.gather(*(first.commit(offset, member) for offset in range(20)))
    assert set(errors) == {ErrorCode.none}
    assert await first.committed() == {0: 19}


async def test_a_stable_fetch_waits_for_commits_on_their_way(pair: Pair) -> None:
    first, _ = pair
    member = (await first.form("a"))["a"]
    assert await first.commit(1, member) is ErrorCode.none
    first.log.hold()
    committing = asyncio.create_task(first.commit(2, member))
    await until(lambda: first.log.reserved == 2)
    fetching = asyncio.create_task(first.committed())
    assert await first.committed(stable=False) == {0: 1}
    assert not fetching.done()
    first.log.let_go()
    assert await fetching == {0: 2}
    assert await committing is ErrorCode.none


async def test_the_next_coordinator_waits_for_the_last_ones_commits(pair: Pair) -> None:
    """Else an offset that a member was given could be older than one that is committed later."""
    first, second = pair
    member = (await first.form("a"))["a"]
    first.log.hold()
    committing = asyncio.create_task(first.commit(2, member))
    await until(lambda: first.log.reserved == 1)
    assert await second.beat(member) is ErrorCode.none
    held = second.coordinator.find("g")
    assert held is not None
    assert held.unsettled
    fetching = asyncio.create_task(second.committed())
    committed_by_second = asyncio.create_task(second.commit(3, member, 1))
    assert await second.committed(stable=False) == {}
    assert not fetching.done()
    first.log.let_go()
    assert await committing is ErrorCode.none
    assert await committed_by_second is ErrorCode.none
    assert (await fetching)[0] == 2
    assert not held.unsettled


async def test_a_fetch_does_not_wait_for_ever(sequencing: Sequencing) -> None:
    impatient = replace(OFFSETS, commit_timeout_ms=50)
    async with seats(sequencing, offset_settings=impatient) as (first, _):
        member = (await first.form("a"))["a"]
        first.log.hold()
        assert await first.commit(2, member) is ErrorCode.coordinator_not_available
        found = await first.offsets.fetch("g", require_stable=True)
        assert found is ErrorCode.unstable_offset_commit
        first.log.let_go()
        await until(lambda: not first.tasks)
        assert await first.committed() == {0: 2}, "nobody knew: it came into the log"


async def test_what_is_acknowledged_early_is_fetched_at_once(sequencing: Sequencing) -> None:
    early = replace(OFFSETS, ack_when_reserved=True)
    async with seats(sequencing, offset_settings=early) as (first, second):
        member = (await first.form("a"))["a"]
        assert await first.commit(2, member) is ErrorCode.none
        assert not first.view.offsets("g")
        assert await first.committed() == {0: 2}
        assert await first.committed(stable=False) == {0: 2}
        assert await second.beat(member) is ErrorCode.none
        assert await first.commit(3, member) is ErrorCode.not_coordinator


async def test_commits_that_pile_up_are_put_off(sequencing: Sequencing) -> None:
    narrow = replace(OFFSETS, rows_in_flight=2)
    async with seats(sequencing, offset_settings=narrow) as (first, _):
        member = (await first.form("a"))["a"]
        first.log.hold()
        waiting = [asyncio.create_task(first.commit(offset, member)) for offset in (1, 2)]
        await until(lambda: first.log.reserved == 1)
        assert await first.commit(3, member) is ErrorCode.coordinator_load_in_progress
        first.log.let_go()
        assert [await each for each in waiting] == [ErrorCode.none, ErrorCode.none]
        assert await first.commit(3, member) is ErrorCode.none


async def test_commits_that_come_together_are_bounded_together(sequencing: Sequencing) -> None:
    narrow = replace(OFFSETS, rows_in_flight=2)
    async with seats(sequencing, offset_settings=narrow) as (first, _):
        member = (await first.form("a"))["a"]
        errors = await asyncio.gather(*(first.commit(offset, member) for offset in range(5)))
        refused = ErrorCode.coordinator_load_in_progress
        assert errors == [ErrorCode.none] * 2 + [refused] * 3


async def test_much_metadata_counts_as_many_offsets(sequencing: Sequencing) -> None:
    narrow = replace(OFFSETS, rows_in_flight=10)
    async with seats(sequencing, offset_settings=narrow) as (first, _):
        member = (await first.form("a"))["a"]
        first.log.hold()
        row = OffsetRow(UUID(bytes=first.partition().topic_id), 0, 1, -1, "m" * 2000)
        waiting = asyncio.create_task(first.offsets.commit("g", member, [row]))
        await until(lambda: first.log.reserved == 1)
        assert await first.commit(3, member) is ErrorCode.coordinator_load_in_progress
        first.log.let_go()
        assert await waiting is ErrorCode.none
        assert await first.commit(3, member) is ErrorCode.none


async def test_committed_offsets_are_bounded_and_can_still_be_moved(
    sequencing: Sequencing, caplog: pytest.LogCaptureFixture
) -> None:
    narrow = replace(OFFSETS, offsets_max=2)
    async with seats(sequencing, offset_settings=narrow) as (first, second):
        assert await first.commit(1, ANYBODY) is ErrorCode.none
        assert await second.commit(1, ANYBODY, group="h") is ErrorCode.none
        for seat, group, number in ((first, "g", 1), (second, "new", 0), (second, "h", 1)):
            refused = await seat.commit(1, ANYBODY, number, group=group)
            assert refused is ErrorCode.policy_violation
        assert "BUCKETLOG_OFFSETS_MAX" in caplog.text
        assert await first.commit(2, ANYBODY) is ErrorCode.none
        row = OffsetRow(UUID(bytes=first.partition().topic_id), 0, 1, -1, "m" * 200)
        assert await first.offsets.commit("g", ANYBODY, [row]) is ErrorCode.policy_violation
        assert await first.committed() == {0: 2}


async def test_offsets_are_deleted_where_nobody_subscribes(pair: Pair) -> None:
    first, _ = pair
    partitions = [first.partition(0), first.partition(1), first.partition(0, "u")]
    assert await first.offsets.delete("g", partitions) is ErrorCode.group_id_not_found
    member = (await first.form("a"))["a"]  # subscribes to t
    for number in range(2):
        assert await first.commit(5, member, number) is ErrorCode.none
    assert await first.commit(6, member, topic="u") is ErrorCode.none
    assert await first.offsets.delete("g", partitions) == [
        ErrorCode.group_subscribed_to_topic,
        ErrorCode.group_subscribed_to_topic,
        ErrorCode.none,
    ]
    assert sorted(first.view.offsets("g")) == sorted(partitions[:2])
    await leave(first, {"a": member})
    assert await first.offsets.delete("g", partitions[:1]) == [ErrorCode.none]
    assert await first.committed() == {1: 5}


async def test_an_empty_group_is_deleted_with_its_offsets(
    pair: Pair, sequencing: Sequencing
) -> None:
    first, second = pair
    assert await first.offsets.delete_group("g") is ErrorCode.group_id_not_found
    members = await first.form("a")
    assert await first.commit(5, members["a"]) is ErrorCode.none
    assert await first.offsets.delete_group("g") is ErrorCode.non_empty_group
    await leave(first, members)
    assert await second.offsets.delete_group("g") is ErrorCode.none
    assert await second.committed() == {}
    assert await second.coordinator.list(second.view.groups()) == []
    await until(lambda: not second.tasks)
    assert await sequencing.records("groups") == {}
    assert await first.joins("a", members["a"].member_id) is not None


async def test_a_deletion_by_who_was_taken_over_changes_nothing(pair: Pair) -> None:
    first, second = pair
    members = await first.form("a")
    assert await first.commit(5, members["a"]) is ErrorCode.none
    await leave(first, members)
    held = first.coordinator.find("g")
    assert held is not None
    assert await second.committed() == {0: 5}
    assert await first.offsets.delete_group("g") is ErrorCode.not_coordinator
    assert await second.committed() == {0: 5}


async def test_an_empty_groups_offsets_are_kept_from_when_it_became_empty(
    pair: Pair, sequencing: Sequencing
) -> None:
    first, second = pair
    members = await first.form("a")
    assert await first.commit(5, members["a"]) is ErrorCode.none
    first.wall_ms += WEEK_MS - 1
    await leave(first, members)
    first.wall_ms += WEEK_MS - 1
    await first.offsets.expire()
    assert await first.committed() == {0: 5}
    second.wall_ms = first.wall_ms
    await second.offsets.expire()  # another coordinator knows since when
    assert await second.committed() == {0: 5}
    second.wall_ms += 1
    await second.offsets.expire()
    assert await second.committed() == {}
    await until(lambda: not second.tasks)
    assert await sequencing.records("groups") == {}


async def test_live_subscriptions_keep_their_offsets(pair: Pair) -> None:
    first, _ = pair
    member = (await first.form("a"))["a"]
    assert await first.commit(5, member) is ErrorCode.none
    assert await first.commit(6, member, topic="u") is ErrorCode.none
    first.wall_ms += WEEK_MS
    await first.offsets.expire()
    assert list(first.view.offsets("g")) == [first.partition(0)]


async def test_simple_groups_offsets_expire_since_their_commit(pair: Pair) -> None:
    first, _ = pair
    assert await first.commit(5, ANYBODY) is ErrorCode.none
    first.wall_ms += DAY_MS
    assert await first.commit(6, ANYBODY, 1) is ErrorCode.none
    first.wall_ms += WEEK_MS - DAY_MS
    await first.offsets.expire()
    assert await first.committed() == {1: 6}
    first.wall_ms += DAY_MS
    await first.offsets.expire()
    assert await first.committed() == {}


@pytest.mark.parametrize("differs_ms", [-1, 8 * DAY_MS])
async def test_offsets_expire_when_both_clocks_say_so(pair: Pair, differs_ms: int) -> None:
    """A Redis whose clock is ahead for a moment, or a broker, takes nothing away."""
    first, _ = pair
    assert await first.commit(5, ANYBODY) is ErrorCode.none
    first.own_clock_differs_ms = differs_ms
    first.wall_ms += WEEK_MS - (1 if differs_ms > 0 else 0)
    await first.offsets.expire()
    assert await first.committed() == {0: 5}
    first.wall_ms += 1
    await first.offsets.expire()
    assert await first.committed() == {}


async def test_offsets_outlive_a_redis_that_forgot_the_members(pair: Pair) -> None:
    """They had members until the epoch began, for all that is known, and these may come back."""
    first, _ = pair
    assert await first.commit(5, ANYBODY) is ErrorCode.none
    first.wall_ms += WEEK_MS
    first.offsets._known_since_ms = first.wall_ms
    first.wall_ms += WEEK_MS - 1
    await first.offsets.expire()
    assert await first.committed() == {0: 5}
    first.wall_ms += 1
    await first.offsets.expire()
    assert await first.committed() == {}


async def test_a_time_of_the_clients_own_counts_from_the_commit(pair: Pair) -> None:
    first, _ = pair
    assert await first.commit(5, ANYBODY) is ErrorCode.none
    (partition, row), *_ = first.view.offsets("g").items()
    await first.form("a")
    held = first.coordinator.find("g")
    assert held is not None
    group = held.group
    offsets = {partition: row._replace(expires_ms=first.wall_ms + 10)}

    def gone(after_ms: int) -> int:
        now_ms = first.wall_ms + after_ms
        found = expired_offsets(group, offsets, lambda _: "u", now_ms, WEEK_MS, known_since_ms=0)
        return len(found)

    assert [gone(9), gone(10)] == [0, 1]


async def test_a_client_asks_for_no_longer_retention_than_the_most(pair: Pair) -> None:
    first, _ = pair
    topic_id = UUID(bytes=first.partition(0).topic_id)
    expected = [first.wall_ms + 10, first.wall_ms + OFFSETS.retention_ms_max]
    for retention_ms, expires_ms in zip((10, 2**62), expected, strict=True):
        row = OffsetRow(topic_id, 0, retention_ms % 7, -1, "")
        error = await first.offsets.commit("g", ANYBODY, [row], retention_ms=retention_ms)
        assert error is ErrorCode.none
        assert [kept.expires_ms for kept in first.view.offsets("g").values()] == [expires_ms]


async def test_members_that_went_with_their_coordinator_end_all_the_same(pair: Pair) -> None:
    first, second = pair
    await first.form("a")
    await second.offsets.expire()  # nobody asks
    second.pass_ms(SESSION_MS)
    listed = await second.coordinator.list([])
    assert listed == [GroupSummary("g", "consumer", GroupState.EMPTY)]


async def test_an_empty_group_without_offsets_ends(pair: Pair, sequencing: Sequencing) -> None:
    first, _ = pair
    await leave(first, await first.form("a"))
    assert await sequencing.records("groups") != {}
    await first.offsets.expire()
    assert await sequencing.records("groups") == {}
    answer = await first.coordinator.join("g", asks("b", "unknown"))
    assert answer.error is ErrorCode.unknown_member_id


async def test_an_empty_group_outlives_its_deleted_offsets(pair: Pair) -> None:
    """Until the next look at expired offsets, as in Kafka; also for another coordinator."""
    first, second = pair
    assert await first.commit(5, ANYBODY) is ErrorCode.none
    assert await first.offsets.delete("g", [first.partition(0)]) == [ErrorCode.none]
    assert first.view.offsets("g") == {}
    for each in (first, second):
        assert not isinstance(await each.coordinator.describe("g"), ErrorCode)
    await second.offsets.expire()
    assert await second.coordinator.describe("g") is ErrorCode.group_id_not_found
