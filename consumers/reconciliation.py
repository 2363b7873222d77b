"""The way of a member to its target: it revokes partitions first, then gets those that are free.

    stable ──new target──▶ unrevoked ──revoked──▶ stable, or unreleased until all of it is free

Source: KIP-848, Kafka's CurrentAssignmentBuilder. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from bucketlog.consumers.assignor_input import Assignment
from bucketlog.consumers.modern_member import MemberState, ModernMember, Owned
from bucketlog.log_format.model import TopicId

IsFree = Callable[[TopicId, int], bool]
"""Returns whether no member has the partition, nor is about to revoke it."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a member. `subscribed`: the topics that it subscribes to now, which may be
    fewer than those of `assignment`. `reported`: the partitions that the member says it has, None
    if it does not say."""

    epoch: int
    assignment: Assignment
    subscribed: frozenset[TopicId]
    subscription_changed: bool
    reported: Assignment | None


def reconcile(member: ModernMember, target: Target, is_free: IsFree) -> ModernMember:
    """The member's next state: the same one if the member cannot continue yet."""
    match member.state:
        case MemberState.STABLE:
            if member.member_epoch != target.epoch:
                return _next(member, member.member_epoch, target, is_free)
            return _without_unsubscribed(member, target)
        case MemberState.UNREVOKED:
            if _still_has(target.reported, member.pending_revocation):
                return _without_unsubscribed(member, target)
            epoch = min(member.member_epoch + 1, target.epoch)
            return _next(member, epoch, target, is_free)
        case MemberState.UNRELEASED:
            return _next(member, member.member_epoch, target, is_free)


def _still_has(reported: Assignment | None, revoking: Owned) -> bool:
    """Return whether the member still has a partition that it must revoke. True if the member does
    not say what it has."""
    if reported is None:
        return True
    return any(
        number in revoking.get(topic, {})
        for topic, numbers in reported.items()
        for number in numbers
    )


def _without_unsubscribed(member: ModernMember, target: Target) -> ModernMember:
    """Return the member after topics that it no longer subscribes to are revoked, before there is a
    new target."""
    gone = member.owned.keys() - target.subscribed
    if not target.subscription_changed or not gone:
        return member
    assigned = {topic: each for topic, each in member.owned.items() if topic not in gone}
    revoking = dict(member.pending_revocation)
    for topic in gone:
        revoking[topic] = {**revoking.get(topic, {}), **member.owned[topic]}
    if _still_has(target.reported, revoking):
        return replace(
            member, state=MemberState.UNREVOKED, assigned=assigned or None, revoking=revoking
        )
    return replace(member, assigned=assigned or None)


def _next(member: ModernMember, epoch: int, target: Target, is_free: IsFree) -> ModernMember:
    """`epoch`: the member's while it revokes."""
    kept: dict[TopicId, dict[int, int]] = {}
    revoking: dict[TopicId, dict[int, int]] = {}
    for topic in target.assignment.keys() | member.owned.keys():
        wanted = target.assignment.get(topic, frozenset())
        if topic not in target.subscribed:
            wanted = frozenset()
        mine = member.owned.get(topic, {})
        if stays := {number: at for number, at in mine.items() if number in wanted}:
            kept[topic] = stays
        if goes := {number: at for number, at in mine.items() if number not in wanted}:
            revoking[topic] = goes
    if revoking and _still_has(target.reported, revoking):
        return replace(
            member.moved_to(epoch),
            state=MemberState.UNREVOKED,
            assigned=kept or None,
            revoking=revoking,
        )
    waits = False
    for topic in target.assignment.keys() & target.subscribed:
        own_revoking = member.pending_revocation.get(topic, {})
        for number in sorted(target.assignment[topic] - kept.get(topic, {}).keys()):
            if number in own_revoking or is_free(topic, number):
                kept.setdefault(topic, {})[number] = target.epoch
            else:
                waits = True
    return replace(
        member.moved_to(target.epoch),
        state=MemberState.UNRELEASED if waits else MemberState.STABLE,
        assigned=kept or None,
        revoking=None,
    )
