"""Rebalances: who is waited for and how long, who leads, which protocol wins, who comes back."""

from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import GroupState, LeavingMember
from tests.models.groups import (
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    GroupDriver,
    asks,
    stable,
    subscription,
    three_members,
)

DELAY_MS = SETTINGS.initial_rebalance_delay_ms
ONE_PROTOCOL = asks().protocols


def test_an_empty_group_waits_once_for_more_members() -> None:
    driver = GroupDriver()
    first = driver.join(asks("a"))
    driver.pass_ms(DELAY_MS - 1)
    assert first in driver.waiting
    driver.pass_ms(1)
    response = driver.joined(first)
    assert (response.generation, response.leader) == (1, response.member_id)
    assert [each.member_id for each in response.members] == [response.member_id]


def test_whoever_comes_during_the_delay_prolongs_it_up_to_the_rebalance_timeout() -> None:
    driver = GroupDriver()
    tokens = {driver.join(asks("m", rebalance_ms=3 * DELAY_MS + 1000))}
    for _ in range(3):
        driver.pass_ms(DELAY_MS - 1)
        tokens.add(driver.join(asks("m")))
        driver.pass_ms(1)
        assert driver.waiting == tokens
    driver.pass_ms(1000)
    assert not driver.waiting, "3 delays and the second that was left"
    assert driver.group.generation == 1


def test_a_rebalance_ends_when_all_have_rejoined() -> None:
    driver = stable()
    new = driver.join(asks("n"))
    driver.join(asks("a", driver.ids["a"]))
    driver.join(asks("s", driver.ids["s"], instance="s1"))
    assert new in driver.waiting
    last = driver.join(asks("b", driver.ids["b"]))
    assert not driver.waiting
    assert driver.joined(last).generation == driver.joined(new).generation == 2
    assert driver.joined(last).members == ()
    assert driver.group.state is GroupState.COMPLETING_REBALANCE


def test_dynamic_members_who_do_not_rejoin_in_time_are_out_and_static_ones_stay() -> None:
    driver = stable()
    new = driver.join(asks("n", session_ms=100_000))
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        for name in driver.ids:
            assert driver.heartbeat(name) is ErrorCode.rebalance_in_progress
        driver.pass_ms(SESSION_MS // 2)
    response = driver.joined(new)
    assert response.leader == response.member_id
    assert [each.instance_id for each in response.members] == ["s1", None]
    assert driver.heartbeat("a") is ErrorCode.unknown_member_id


def test_a_generation_is_not_begun_while_only_absent_static_members_are_left() -> None:
    driver = GroupDriver()
    driver.form(asks("s", instance="s1", session_ms=200_000))
    driver.settle("s")
    driver.join(asks("n"))
    driver.leave(LeavingMember(driver.group.describe().members[1].member_id))
    driver.pass_ms(REBALANCE_MS)
    assert driver.is_in(GroupState.PREPARING_REBALANCE)
    assert driver.group.generation == 1
    back = driver.join(asks("s", instance="s1"))
    assert driver.joined(back).generation == 2


def test_the_leader_stays_the_leader_if_it_rejoins() -> None:
    driver = stable()
    for name in ("b", "a"):
        driver.join(asks(name, driver.ids[name], [("range", subscription("u"))]))
    last = driver.join(asks("s", driver.ids["s"], instance="s1"))
    assert driver.joined(last).leader == driver.ids["a"]


@pytest.mark.parametrize(
    ("preferences", "chosen"),
    [
        (["xy", "xy", "yx"], "x"),
        (["xy", "yx", "yx"], "y"),
        (["yx", "xy"], "y"),  # a draw: the first member's
        (["xyz", "zy", "zy"], "z"),
        (["xyz", "zx", "yxz"], "x"),  # x and z are shared; y has no vote
    ],
)
def test_members_vote_among_the_protocols_all_support(preferences: list[str], chosen: str) -> None:
    driver = GroupDriver()
    for index, names in enumerate(preferences):
        driver.join(asks(f"m{index}", protocols=[(name, name.encode()) for name in names]))
    driver.pass_ms(REBALANCE_MS)
    leader = driver.joined(min(driver.asked))
    assert leader.protocol_name == chosen
    assert {each.metadata for each in leader.members} == {chosen.encode()}


def test_a_pending_member_is_waited_for_until_its_session_ends() -> None:
    driver = stable()
    required = driver.joined(driver.join(asks("p", two_steps=True)))
    assert (required.error, required.generation) == (ErrorCode.member_id_required, -1)
    rejoins = [
        driver.join(asks(name, driver.ids[name], instance=instance))
        for name, instance in (("a", None), ("b", None), ("s", "s1"))
    ]
    assert driver.synced(driver.sync(driver.me("b"))).error is ErrorCode.rebalance_in_progress
    driver.pass_ms(SESSION_MS - 1)
    assert rejoins[0] in driver.waiting
    driver.pass_ms(1)
    assert not driver.waiting
    late = driver.join(asks("p", required.member_id))
    assert driver.joined(late).error is ErrorCode.unknown_member_id


def test_a_pending_member_joins_with_the_id_it_was_given() -> None:
    driver = GroupDriver()
    given = driver.joined(driver.join(asks("p", two_steps=True))).member_id
    assert given.startswith("p-")
    token = driver.join(asks("p", given))
    driver.pass_ms(DELAY_MS)
    assert driver.joined(token).member_id == given


def test_a_pending_member_is_no_static_one() -> None:
    driver = GroupDriver()
    given = driver.joined(driver.join(asks("p", two_steps=True))).member_id
    token = driver.join(asks("p", given, instance="p1"))
    assert driver.joined(token).error is ErrorCode.invalid_request


def test_the_leaders_assignment_reaches_each_member() -> None:
    driver = three_members()
    follower = driver.sync(driver.me("b"))
    assert follower in driver.waiting
    leader = driver.sync(
        driver.me("a"), [(driver.ids["a"], b"A"), (driver.ids["b"], b"B"), ("stranger", b"X")]
    )
    assert driver.synced(leader).assignment == b"A"
    assert driver.synced(follower).assignment == b"B"
    assert driver.synced(driver.sync(driver.me("s"))).assignment == b"", "it was left out"
    again = driver.sync(driver.me("a"), [(driver.ids["b"], b"other")])
    assert driver.synced(again).assignment == b"A", "a generation is assigned once"
    assert driver.synced(driver.sync(driver.me("b"))).assignment == b"B"


def test_who_does_not_ask_for_its_assignment_in_time_is_out() -> None:
    driver = three_members()
    waits = [driver.sync(driver.me(name)) for name in ("b", "s")]
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        assert driver.heartbeat("a") is ErrorCode.none
        driver.pass_ms(SESSION_MS // 2)
    assert [driver.synced(each).error for each in waits] == [ErrorCode.rebalance_in_progress] * 2
    assert driver.is_in(GroupState.PREPARING_REBALANCE)
    assert driver.heartbeat("a") is ErrorCode.unknown_member_id
    assert driver.heartbeat("b") is ErrorCode.rebalance_in_progress


def test_a_stable_group_waits_for_late_syncs_too() -> None:
    driver = three_members()
    driver.sync(driver.me("a"))
    driver.sync(driver.me("s"))
    assert driver.is_in(GroupState.STABLE)
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        assert {driver.heartbeat(name) for name in driver.ids} == {ErrorCode.none}
        driver.pass_ms(SESSION_MS // 2)
    assert driver.is_in(GroupState.PREPARING_REBALANCE)
    assert driver.heartbeat("b") is ErrorCode.unknown_member_id


@pytest.mark.parametrize("beats", [0, 3])
def test_a_silent_member_is_out_after_its_session_timeout(beats: int) -> None:
    driver = stable()
    for _ in range(beats):
        driver.pass_ms(SESSION_MS - 1)
        assert {driver.heartbeat(name) for name in driver.ids} == {ErrorCode.none}
    driver.pass_ms(1)
    for name in ("a", "s"):
        driver.heartbeat(name)
    driver.pass_ms(SESSION_MS - 2)
    assert driver.is_in(GroupState.STABLE)
    driver.pass_ms(1)
    assert driver.is_in(GroupState.PREPARING_REBALANCE)
    assert driver.heartbeat("b") is ErrorCode.unknown_member_id
    assert driver.heartbeat("a") is ErrorCode.rebalance_in_progress


def test_a_commit_is_a_sign_of_life_and_a_transactions_is_not() -> None:
    driver = stable()
    driver.pass_ms(SESSION_MS - 1)
    driver.heartbeat("a")
    assert driver.group.check_commit(driver.me("b"), driver.now_ms) is ErrorCode.none
    driver.group.check_commit(driver.me("s"), driver.now_ms, transactional=True)
    driver.pass_ms(1)
    assert driver.heartbeat("b") is ErrorCode.rebalance_in_progress
    assert driver.heartbeat("s") is ErrorCode.unknown_member_id


def test_members_who_wait_need_no_heartbeat() -> None:
    driver = stable()
    waits = driver.join(asks("a", driver.ids["a"]))
    for _ in range(5):
        driver.heartbeat("b")
        driver.pass_ms(SESSION_MS - 1)
    assert waits in driver.waiting
    assert driver.heartbeat("s") is ErrorCode.unknown_member_id, "it did not wait"
    driver.join(asks("b", driver.ids["b"]))
    assert driver.joined(waits).error is ErrorCode.none
    driver.pass_ms(SESSION_MS)
    assert driver.heartbeat("a") is ErrorCode.unknown_member_id, "now it was to be heard of"


def test_the_first_join_of_a_member_that_is_gone_expires() -> None:
    settings = replace(SETTINGS, new_member_join_timeout_ms=20_000)
    driver = stable(settings)
    first = driver.join(asks("n"))
    for _ in range(4):
        driver.heartbeat("a")
        driver.pass_ms(5_000)
    assert driver.joined(first).error is ErrorCode.unknown_member_id
    assert driver.joined(first).member_id == ""


def test_a_join_sent_again_takes_the_place_of_the_first() -> None:
    driver = stable()
    first = driver.join(asks("a", driver.ids["a"]))
    second = driver.join(asks("a", driver.ids["a"]))
    assert driver.joined(first).error is ErrorCode.rebalance_in_progress
    assert driver.waiting == {second}


def test_a_sync_sent_again_takes_the_place_of_the_first() -> None:
    driver = three_members()
    first, second = driver.sync(driver.me("b")), driver.sync(driver.me("b"))
    assert driver.synced(first).error is ErrorCode.rebalance_in_progress
    assert driver.waiting == {second}


def test_members_that_leave_while_they_wait_are_told() -> None:
    driver = three_members()
    sync = driver.sync(driver.me("b"))
    driver.leave(LeavingMember(driver.ids["b"]))
    assert driver.synced(sync).error is ErrorCode.unknown_member_id
    join = driver.join(asks("a", driver.ids["a"]))
    driver.leave(LeavingMember(driver.ids["a"]))
    assert driver.joined(join).error is ErrorCode.unknown_member_id


def test_many_leave_at_once_each_with_its_own_answer() -> None:
    driver = stable()
    errors = driver.leave(
        LeavingMember(driver.ids["a"]), LeavingMember("", "s1"), LeavingMember("nobody")
    )
    assert errors == [ErrorCode.none, ErrorCode.none, ErrorCode.unknown_member_id]
    assert driver.group.revision == stable().group.revision + 2, "one rebalance for all"
    assert driver.leave(LeavingMember(driver.ids["b"])) == [ErrorCode.none]
    assert (driver.group.state, driver.group.generation) == (GroupState.EMPTY, 2)


def test_a_rebalance_goes_on_when_the_one_it_waited_for_leaves() -> None:
    driver = stable()
    waits = [driver.join(asks(name, driver.ids[name])) for name in ("a", "b")]
    driver.leave(LeavingMember("", "s1"))
    assert [driver.joined(each).generation for each in waits] == [2, 2]


@pytest.mark.parametrize("may_skip", [True, False])
@pytest.mark.parametrize("name", ["s", "f"])
def test_a_static_member_comes_back_without_a_rebalance(name: str, may_skip: bool) -> None:
    driver = GroupDriver()
    driver.form(asks("s", instance="s1"), asks("f", instance="f1"))
    driver.settle("s", "f")
    former = driver.me(name)._replace(instance_id=f"{name}1")
    revision = driver.group.revision
    back = driver.joined(driver.join(asks(name, instance=f"{name}1", may_skip=may_skip)))
    assert (back.error, back.generation) == (ErrorCode.none, 1)
    assert driver.is_in(GroupState.STABLE)
    assert driver.group.revision > revision, "its former self is fenced for all coordinators"
    assert driver.group.heartbeat(former, driver.now_ms) is ErrorCode.fenced_instance_id
    driver.ids[name] = back.member_id
    assert driver.synced(driver.sync(driver.me(name))).assignment == name.encode()
    leads = name == "s"
    assert back.skip_assignment is (leads and may_skip)
    assert len(back.members) == (2 if leads and may_skip else 0)
    if leads and not may_skip:
        assert back.leader == former.member_id, "an old client must not assign anew"
    else:
        assert back.leader == driver.ids["s"]


def test_a_static_member_that_changes_the_protocol_rebalances_the_group() -> None:
    driver = GroupDriver()
    both = [("range", b"r"), ("sticky", b"s")]
    driver.form(asks("s", protocols=both, instance="s1"))
    driver.settle("s")
    back = driver.join(asks("s", protocols=both[::-1], instance="s1"))
    assert driver.joined(back).generation == 2
    assert driver.joined(back).protocol_name == "sticky"


def test_a_static_member_that_waits_is_fenced_by_its_successor() -> None:
    driver = stable()
    former = driver.join(asks("s", driver.ids["s"], [("range", b"new")], instance="s1"))
    back = driver.join(asks("s", instance="s1"))
    assert driver.joined(former).error is ErrorCode.fenced_instance_id
    assert driver.joined(former).member_id == driver.ids["s"]
    assert driver.waiting == {back}
    syncing = three_members()
    token = syncing.sync(syncing.me("s"))
    syncing.join(asks("s", instance="s1"))
    assert syncing.synced(token).error is ErrorCode.fenced_instance_id


def test_an_empty_group_keeps_its_generation_and_takes_another_type() -> None:
    driver = stable()
    driver.leave(*(LeavingMember(each) for each in driver.ids.values()))
    assert (driver.group.protocol_type, driver.group.generation) == ("consumer", 2)
    driver.form(asks("c", protocol_type="connect"))
    assert (driver.group.protocol_type, driver.group.generation) == ("connect", 3)


def test_a_new_rebalance_waits_for_nobody_where_all_left() -> None:
    driver = GroupDriver()
    token = driver.join(asks("a"))
    (member,) = driver.group.describe().members
    driver.leave(LeavingMember(member.member_id))
    assert driver.joined(token).error is ErrorCode.unknown_member_id
    driver.pass_ms(DELAY_MS)
    assert (driver.group.state, driver.group.next_deadline_ms) == (GroupState.EMPTY, None)


def test_a_coordinator_that_resigns_sends_everybody_on() -> None:
    driver = three_members()
    sync = driver.sync(driver.me("b"))
    join = driver.join(asks("n"))
    assert driver.synced(sync).error is ErrorCode.rebalance_in_progress
    driver.take(driver.group.resign())
    assert driver.joined(join).error is ErrorCode.not_coordinator
    assert (driver.group.state, driver.group.next_deadline_ms) == (GroupState.DEAD, None)


def test_deadlines_that_are_all_overdue_do_not_trip_over_each_other() -> None:
    driver = stable()
    new = driver.join(asks("n"))
    driver.join(asks("p", two_steps=True))
    driver.now_ms += 10 * REBALANCE_MS
    driver.take(driver.group.expire(driver.now_ms))
    assert [each.member_id for each in driver.joined(new).members] == [driver.joined(new).leader]
    assert driver.group.state is GroupState.COMPLETING_REBALANCE
    assert (driver.group.next_deadline_ms or 0) > driver.now_ms


def test_a_rebalance_timeout_of_nothing_does_not_make_the_coordinator_spin() -> None:
    driver = GroupDriver()
    driver.form(asks("a", rebalance_ms=-1))
    assert driver.group.next_deadline_ms == driver.now_ms + SETTINGS.rebalance_timeout_ms_min
