"""Consumer groups on several brokers: who coordinates, who takes over, who stands back."""

import asyncio
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.scripts import SequencerVerb
from bucketlog.stateless_broker.membership.membership import Membership
from tests.models.groups import subscription
from tests.rigs.broker_rig import Rig, until
from tests.rigs.patience import PATIENCE_S
from tests.rigs.several_brokers import QUICK, Brokers

NO_DELAY = QUICK | {"group_initial_rebalance_delay_ms": 0, "session_timeout_ms": 3000}
"""On a busy machine, a broker's heartbeat may be late by more than a second."""


def group_of(membership: Membership, rig: Rig) -> str:
    """A group that is this broker's to coordinate."""
    mine = rig.membership.me
    names = (f"g{number}" for number in range(1000))
    return next(name for name in names if membership.coordinator_of(name) == mine)


async def members_are(count: int, *rigs: Rig) -> None:
    """That many, and all of them serve."""

    def are() -> bool:
        seen = [rig.membership.members for rig in rigs]
        return all(len(each) == count == sum(one.serves for one in each) for each in seen)

    await until(are)


def send_join(rig: Rig, group: str, member_id: str = "") -> "asyncio.Task[Any]":
    return rig.send(
        ApiKey.JOIN_GROUP,
        3,
        group_id=group,
        session_timeout=30_000,
        rebalance_timeout=30_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": subscription("t")}],
    )


async def answer(sent: "asyncio.Task[Any]") -> Any:
    async with asyncio.timeout(PATIENCE_S):
        return await sent


async def join(rig: Rig, group: str) -> tuple[str, int]:
    """The only member of a stable group: id and generation."""
    joined = await answer(send_join(rig, group))
    assert joined.error_code is ErrorCode.none
    member_id, generation = str(joined.member_id), int(joined.generation_id)
    synced = await rig.call(
        ApiKey.SYNC_GROUP,
        3,
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        assignments=[{"member_id": member_id, "assignment": b"all"}],
    )
    assert synced.error_code is ErrorCode.none
    return member_id, generation


async def beat(rig: Rig, group: str, member: tuple[str, int]) -> ErrorCode:
    member_id, generation = member
    found = await rig.call(
        ApiKey.HEARTBEAT, 3, group_id=group, generation_id=generation, member_id=member_id
    )
    return ErrorCode(found.error_code)


async def commit(rig: Rig, group: str, member: tuple[str, int], offset: int) -> ErrorCode:
    row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    found = await rig.call(
        ApiKey.OFFSET_COMMIT,
        8,
        group_id=group,
        generation_id_or_member_epoch=member[1],
        member_id=member[0],
        topics=[{"name": "t", "partitions": [row]}],
    )
    return ErrorCode(found.topics[0].partitions[0].error_code)


async def committed(rig: Rig, group: str) -> int | ErrorCode:
    wanted = {"group_id": group, "topics": [{"name": "t", "partition_indexes": (0,)}]}
    found = await rig.call(ApiKey.OFFSET_FETCH, 8, groups=[wanted], require_stable=True)
    if found.groups[0].error_code is not ErrorCode.none:
        return ErrorCode(found.groups[0].error_code)
    return int(found.groups[0].topics[0].partitions[0].committed_offset)


async def coordinator(rig: Rig, group: str) -> tuple[ErrorCode, int]:
    found = await rig.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[group])
    return ErrorCode(found.coordinators[0].error_code), found.coordinators[0].node_id


async def test_all_brokers_name_one_coordinator_and_only_it_serves(brokers: Brokers) -> None:
    first, second = await brokers.pair(**NO_DELAY)
    await members_are(2, first, second)
    for rig, other in ((first, second), (second, first)):
        group = group_of(rig.membership, rig)
        wanted = (ErrorCode.none, rig.membership.me.node_id)
        assert await coordinator(first, group) == wanted
        assert await coordinator(second, group) == wanted
        member = await join(rig, group)
        assert await beat(other, group, member) is ErrorCode.not_coordinator
        assert await commit(other, group, member, 1) is ErrorCode.not_coordinator
        assert await committed(other, group) is ErrorCode.not_coordinator
        assert await commit(rig, group, member, 1) is ErrorCode.none
    listed = [await rig.call(ApiKey.LIST_GROUPS, 4, states_filter=[]) for rig in (first, second)]
    assert [len(each.groups) for each in listed] == [1, 1], "each group is listed once"


async def test_a_group_outlives_its_coordinator_without_a_rebalance(brokers: Brokers) -> None:
    first, second = await brokers.pair(**NO_DELAY)
    await members_are(2, first, second)
    group = group_of(first.membership, first)
    member = await join(first, group)
    assert await commit(first, group, member, 7) is ErrorCode.none
    first.fall_silent()
    await members_are(1, second)
    assert await beat(second, group, member) is ErrorCode.none
    assert await committed(second, group) == 7
    assert await commit(second, group, member, 8) is ErrorCode.none
    # the one that was taken for dead knows it, and stands back even where it is not told
    assert await beat(first, group, member) is ErrorCode.not_coordinator
    assert await commit(first, group, member, 9) is ErrorCode.not_coordinator
    assert (await coordinator(first, group))[0] is ErrorCode.coordinator_not_available
    first.come_back()
    await members_are(2, first, second)
    assert await beat(second, group, member) is ErrorCode.not_coordinator
    assert await beat(first, group, member) is ErrorCode.none, "it took the group anew"
    assert await committed(first, group) == 8


async def test_members_that_wait_are_sent_on_when_a_broker_joins(brokers: Brokers) -> None:
    first, second = await brokers.pair(**NO_DELAY)
    await members_are(2, first, second)
    group = group_of(first.membership, second)
    second.fall_silent()
    await members_are(1, first)
    member = await join(first, group)
    waiting = send_join(first, group)  # the first member does not come
    assert await beat(first, group, member) is ErrorCode.rebalance_in_progress
    second.come_back()
    assert (await answer(waiting)).error_code is ErrorCode.not_coordinator
    await members_are(2, first, second)
    assert await beat(second, group, member) is ErrorCode.rebalance_in_progress


async def test_a_join_ends_with_its_client(brokers: Brokers) -> None:
    rig = await brokers.start(**NO_DELAY)
    member = await join(rig, "g")
    waiting = send_join(rig, "g")
    assert await beat(rig, "g", member) is ErrorCode.rebalance_in_progress
    held = rig.groups.coordinator.find("g")
    assert held is not None
    assert held.users == 1
    rig.client.go()
    await until(lambda: held.users == 0)
    waiting.cancel()


async def test_a_coordinator_without_redis_stands_back(brokers: Brokers) -> None:
    first, second = await brokers.pair(**NO_DELAY)
    await members_are(2, first, second)
    group = group_of(first.membership, first)
    member = await join(first, group)
    first.sequencer.hold(SequencerVerb.STORE_GROUP)
    waiting = send_join(first, group, member[0])  # a change that cannot be stored
    await until(lambda: first.sequencer.held == 1)
    first.fall_silent()
    await until(lambda: not first.membership.is_session_live)
    assert await beat(first, group, member) is ErrorCode.not_coordinator
    await members_are(1, second)
    assert await beat(second, group, member) is ErrorCode.none
    first.sequencer.let_go()
    assert (await answer(waiting)).error_code is ErrorCode.not_coordinator
