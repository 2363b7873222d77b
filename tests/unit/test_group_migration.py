"""Groups that change their protocol: members keep partitions and epochs, and commit by them."""

from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_forms import GroupForms, converted, stored
from bucketlog.consumers.group_messages import (
    CallerIdentity,
    GroupResponse,
    GroupState,
    JoinResponse,
    LeavingMember,
    SyncRequest,
    SyncResponse,
    Token,
)
from bucketlog.consumers.modern_group import ModernGroup
from bucketlog.consumers.modern_messages import HeartbeatAnswer
from bucketlog.consumers.modern_settings import MigrationPolicy
from tests.models.groups import asks, subscription
from tests.models.modern_groups import SETTINGS, forms, joins, refused

NOW_MS = 1_000_000
NO_USER_DATA = b"\xff" * 4


def classic_group(made: GroupForms, protocol_type: str = "consumer") -> Group:
    """Stable, with one member."""
    group = made.new("g")
    metadata = subscription("ab") + NO_USER_DATA
    request = asks("c", protocols=[("range", metadata)], protocol_type=protocol_type)
    group.join(request, Token(0), NOW_MS)
    group.expire(NOW_MS + made.classic_settings.initial_rebalance_delay_ms)
    (member,) = group.machine.roster
    assigned = bytes(2) + b"\0\0\0\1\0\2ab\0\0\0\1\0\0\0\0" + NO_USER_DATA
    identity = CallerIdentity(member.member_id, group.generation)
    group.sync(SyncRequest(identity, ((member.member_id, assigned),)), Token(1), NOW_MS)
    assert group.state is GroupState.STABLE
    return group


def test_a_classic_group_keeps_members_and_partitions() -> None:
    made = forms()
    heard = made.heartbeat(classic_group(made), joins(), NOW_MS)
    assert isinstance(heard.answer, HeartbeatAnswer)
    group = heard.group
    assert isinstance(group, ModernGroup)
    classic, new = group.machine.members
    assert classic.classic is not None
    assert classic.member_epoch == 1
    assert [sorted(each) for each in classic.owned.values()] == [[0]]
    assert not set(new.owned) & set(classic.owned) or new.owned != classic.owned
    identity = CallerIdentity(classic.member_id, 1)
    assert group.heartbeat(identity, NOW_MS) is ErrorCode.rebalance_in_progress


def test_the_new_group_answers_a_member_that_waits() -> None:
    made = forms()
    classic = classic_group(made)
    (member,) = classic.machine.roster
    metadata = subscription("ab") + NO_USER_DATA
    assert classic.join(asks("new", protocols=[("range", metadata)]), Token(5), NOW_MS) == []
    heard = made.heartbeat(classic, joins(), NOW_MS)
    ((token, response),) = heard.others
    assert token == 5
    assert isinstance(response, JoinResponse)
    assert response.error is ErrorCode.none
    group = heard.group
    assert isinstance(group, ModernGroup)
    assert response.generation == group.machine.epoch
    assert group.heartbeat(CallerIdentity(response.member_id, response.generation), NOW_MS) in (
        ErrorCode.none,
        ErrorCode.rebalance_in_progress,
    )
    assert {response.member_id, member.member_id, "m"} == {
        each.member_id for each in group.machine.members
    }


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_a_policy_without_upgrades(policy: MigrationPolicy) -> None:
    made = forms(replace(SETTINGS, migration_policy=policy))
    classic = classic_group(made)
    heard = made.heartbeat(classic, joins(), NOW_MS)
    assert refused(heard) is ErrorCode.group_id_not_found
    assert heard.group is classic
    assert classic.state is GroupState.STABLE


def test_a_group_of_another_kind_does_not_change() -> None:
    made = forms()
    heard = made.heartbeat(classic_group(made, "connect"), joins(), NOW_MS)
    assert refused(heard) is ErrorCode.group_id_not_found


@pytest.mark.parametrize("may", [True, False])
def test_the_last_member_of_the_consumer_protocol_goes(may: bool) -> None:
    policy = MigrationPolicy.BIDIRECTIONAL if may else MigrationPolicy.UPGRADE
    made = forms(replace(SETTINGS, migration_policy=policy))
    group = made.heartbeat(classic_group(made), joins(), NOW_MS).group
    assert isinstance(group, ModernGroup)
    group.leave([LeavingMember("m")], NOW_MS)
    after = converted(group)
    assert isinstance(after, Group) is may
    assert after.revision > 0
    if isinstance(after, Group):
        assert after.state is GroupState.PREPARING_REBALANCE
        assert after.generation == group.machine.epoch


# members of the classic protocol that are an epoch behind


def classic_join(group: Group | ModernGroup, name: str, member_id: str = "") -> JoinResponse:
    """Of a member that subscribes to topic `ab`, and has revoked what it had."""
    request = asks(name, member_id, [("range", subscription("ab") + NO_USER_DATA)])
    ((_, response),) = group.join(request, Token(0), NOW_MS)
    assert isinstance(response, JoinResponse)
    assert response.error is ErrorCode.none
    return response


def assigned(group: ModernGroup, joined: JoinResponse) -> bytes:
    identity = CallerIdentity(joined.member_id, joined.generation)
    ((_, response),) = group.sync(SyncRequest(identity, ()), Token(1), NOW_MS)
    assert isinstance(response, SyncResponse)
    assert response.error is ErrorCode.none
    return response.assignment


def members_behind(made: GroupForms) -> tuple[Group, CallerIdentity, CallerIdentity]:
    """Two members of the classic protocol, of which the first is an epoch behind when the last
    member of the consumer protocol leaves. The classic group is stored and restored."""
    group = made.heartbeat(made.new("g"), joins(topics=frozenset()), NOW_MS).group
    assert isinstance(group, ModernGroup)
    first, second = classic_join(group, "first"), classic_join(group, "second")
    assert second.generation == first.generation + 1
    assert len(assigned(group, second)) > len(NO_USER_DATA)
    group.leave([LeavingMember("m")], NOW_MS)
    classic = made.restored(stored(converted(group)), NOW_MS)
    assert isinstance(classic, Group)
    behind = CallerIdentity(first.member_id, first.generation)
    return classic, behind, CallerIdentity(second.member_id, second.generation)


def test_a_member_that_is_behind_commits_until_it_rejoins() -> None:
    group, behind, current = members_behind(forms())
    assert group.generation == current.generation
    for each in (behind, current):
        assert group.check_commit(each, NOW_MS) is ErrorCode.none
        assert group.heartbeat(each, NOW_MS) is ErrorCode.rebalance_in_progress
        ((_, synced),) = group.sync(SyncRequest(each, ()), Token(2), NOW_MS)
        assert synced.error is ErrorCode.rebalance_in_progress
    wrong = behind._replace(generation=current.generation)
    assert group.check_commit(wrong, NOW_MS) is ErrorCode.illegal_generation


def test_a_member_that_was_behind_is_in_the_next_generation() -> None:
    group, behind, current = members_behind(forms())
    answers: list[GroupResponse] = []
    for token, each in enumerate((behind, current)):
        request = asks("any", each.member_id, [("range", subscription("ab") + NO_USER_DATA)])
        answers += group.join(request, Token(token), NOW_MS)
    assert group.state is GroupState.COMPLETING_REBALANCE
    assert [response.error for _, response in answers] == [ErrorCode.none] * 2
    for each in (behind, current):
        assert group.heartbeat(each, NOW_MS) is ErrorCode.illegal_generation
        rejoined = each._replace(generation=group.generation)
        assert group.heartbeat(rejoined, NOW_MS) is ErrorCode.none


def test_a_member_that_is_behind_stays_so_when_the_group_changes_once_more() -> None:
    made = forms()
    classic, behind, current = members_behind(made)
    before = {each.member_id: each.assignment for each in classic.machine.roster}
    group = made.heartbeat(classic, joins("other"), NOW_MS).group
    assert isinstance(group, ModernGroup)
    member = group.machine.members[behind.member_id]
    assert member.member_epoch == behind.generation
    assert sum(len(each) for each in member.owned.values()) == 2, "it has not revoked anything"
    assert group.machine.members[current.member_id].owned == {}
    assert len(before[behind.member_id]) > len(before[current.member_id])
    for each in (behind, current):
        assert group.check_commit(each, (), transactional=False) is ErrorCode.none
        assert group.heartbeat(each, NOW_MS) is ErrorCode.rebalance_in_progress


@pytest.mark.parametrize("is_behind", [True, False])
def test_a_static_member_returns_by_the_classic_protocol(is_behind: bool) -> None:
    """The group changes back. Members that have their targets need no rebalance."""
    made = forms()
    request = joins("m", instance_id="i", topics=frozenset({"b"}))
    group = made.heartbeat(made.new("g"), request, NOW_MS).group
    assert isinstance(group, ModernGroup)
    other = classic_join(group, "other")
    assigned(group, other)
    if is_behind:
        group.machine.bump(made.topics)
    metadata = subscription("b") + NO_USER_DATA
    ((_, joined),) = group.join(
        asks("s", protocols=[("range", metadata)], instance="i"), Token(0), NOW_MS
    )
    assert isinstance(joined, JoinResponse)
    classic = converted(group)
    assert isinstance(classic, Group)
    assert (classic.state is GroupState.STABLE) is not is_behind
    for each in (other, joined):
        identity = CallerIdentity(each.member_id, each.generation)
        assert classic.check_commit(identity, NOW_MS) is ErrorCode.none
        expected = ErrorCode.rebalance_in_progress if is_behind else ErrorCode.none
        assert classic.heartbeat(identity, NOW_MS) is expected
