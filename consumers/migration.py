"""Groups that change their protocol while members are at work, both ways (KIP-848).

A classic group becomes one of the consumer protocol when the first member sends a heartbeat to it.
It changes back when the last such member has gone. Members keep their ids, partitions and epochs:
the generation is the epoch. Source: Kafka's ConsumerGroup.fromClassicGroup,
ClassicGroup.fromConsumerGroup.

One thing differs from Kafka. A member of the classic protocol may be some epochs behind when the
group changes back. Until it rejoins, it keeps the partitions that it had and its epoch
(`former_generation`): it commits by that epoch, and its heartbeats get REBALANCE_IN_PROGRESS. Kafka
gives it the group's epoch and its target, so the member gets ILLEGAL_GENERATION, loses its
partitions and reads records again.
"""

from collections.abc import Collection

from kio.schema.errors import ErrorCode

from bucketlog.consumers.assignor_input import Assignment
from bucketlog.consumers.embedded_protocol import (
    read_assignment,
    read_subscription,
    write_assignment,
)
from bucketlog.consumers.group import Group
from bucketlog.consumers.group_messages import (
    CONSUMER_PROTOCOL_TYPE,
    GroupState,
    JoinRequest,
    Token,
)
from bucketlog.consumers.join import NewUuid
from bucketlog.consumers.modern_member import ClassicPart, ModernMember, partition_numbers
from bucketlog.consumers.modern_messages import GroupRefusal, KnownTopics
from bucketlog.consumers.modern_settings import ModernSettings
from bucketlog.consumers.modern_state import ModernGroupState
from bucketlog.consumers.rebalance import Rebalance, expect
from bucketlog.consumers.roster import GroupMember, Roster
from bucketlog.log_format.errors import InvalidDataError

FIRST_EPOCH = 1
"""The epoch of a new group. Its first member that names topics begins the next epoch."""


def upgraded(
    classic: Group, topics: KnownTopics, settings: ModernSettings, now_ms: int
) -> ModernGroupState | GroupRefusal:
    """The classic group as one of the consumer protocol. The classic group does not change."""
    group = ModernGroupState(classic.group_id, settings, revision=classic.revision + 1)
    if classic.state is GroupState.EMPTY and not classic.machine.pending_joins:
        group.epoch = FIRST_EPOCH
        return group
    reason = _no_upgrade(classic, settings)
    if reason is not None:
        return _refused(classic, reason)
    machine = classic.machine
    group.epoch = group.target_epoch = machine.generation
    try:
        for member in machine.roster:
            found = _upgraded_member(member, machine, topics)
            group.target[member.member_id] = {
                topic: frozenset(numbers) for topic, numbers in found.owned.items()
            }
            group.members.put(found)
            group.expect(found, now_ms)
    except (InvalidDataError, ValueError) as error:
        return _refused(classic, f"the embedded consumer protocol is malformed: {error}")
    group.follow_topics(topics)
    return group


def _no_upgrade(classic: Group, settings: ModernSettings) -> str | None:
    if not settings.migration_policy.may_upgrade:
        return "online upgrade is disabled"
    if classic.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        return "the group does not use the consumer embedded protocol"
    if len(classic.machine.roster) > settings.members_max:
        return "the group size exceeds the consumer group maximum size"
    return None


def _refused(classic: Group, reason: str) -> GroupRefusal:
    return GroupRefusal(
        ErrorCode.group_id_not_found,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}.",
    )


def _upgraded_member(member: GroupMember, machine: Rebalance, topics: KnownTopics) -> ModernMember:
    limit = machine.settings.subscribed_topics_max
    name = machine.protocol_name or member.protocols[0].name
    subscription = read_subscription(member.metadata(name), items_max=limit)
    assigned = read_assignment(member.assignment, topics, items_max=limit)
    former = member.former_generation
    epoch = machine.generation if former is None else former
    return ModernMember(
        member.member_id,
        member_epoch=epoch,
        previous_epoch=epoch,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=subscription.topics,
        assigned={topic: dict.fromkeys(each, epoch) for topic, each in assigned.items()} or None,
        classic=ClassicPart(member.session_timeout_ms, member.protocols),
    )


def take_waiting_joins(classic: Group) -> list[tuple[JoinRequest, Token]]:
    """The requests of members that wait for the classic group, which answers them no more.

    The upgraded group answers them. (Kafka answers REBALANCE_IN_PROGRESS, and the members join
    again; consumers of librdkafka report this as an error.)"""
    taken: list[tuple[JoinRequest, Token]] = []
    for member in classic.machine.roster:
        if member.join_token is None:
            continue
        request = JoinRequest(
            member.member_id,
            member.client_id,
            member.client_host,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            CONSUMER_PROTOCOL_TYPE,
            member.protocols,
            member.instance_id,
        )
        taken.append((request, member.join_token))
        member.join_token = None
    return taken


def may_downgrade(group: ModernGroupState, gone: Collection[str]) -> bool:
    """Return whether the group changes back once these members have gone."""
    rest = [each for each in group.members if each.member_id not in gone]
    return (
        bool(rest)
        and all(each.classic is not None for each in rest)
        and group.settings.migration_policy.may_downgrade
        and len(rest) <= group.settings.classic.members_max
    )


def downgraded(
    group: ModernGroupState,
    gone: Collection[str],
    topics: KnownTopics,
    new_uuid: NewUuid,
    now_ms: int,
) -> Group:
    """Return the stable classic group of the members that stay, all of which use the classic
    protocol. The caller begins a rebalance, unless all of them have their targets of the last
    epoch."""
    roster = Roster()
    limits = group.settings.classic
    for each in group.members:
        if each.member_id in gone or each.classic is None:
            continue
        first = each.classic.protocols[0].metadata
        subscription = read_subscription(first, items_max=limits.subscribed_topics_max)
        member = GroupMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            each.classic.session_timeout_ms,
            max(each.rebalance_timeout_ms, limits.rebalance_timeout_ms_min),
            each.classic.protocols,
            former_generation=each.member_epoch if each.member_epoch != group.epoch else None,
        )
        had = _merged(partition_numbers(each.owned), partition_numbers(each.pending_revocation))
        member.assignment = write_assignment(had, topics, subscription.version)
        expect(member, now_ms)
        roster.add(member)
    machine = Rebalance(
        limits,
        state=GroupState.STABLE,
        generation=group.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=roster.vote(),
        revision=group.revision + 1,
        roster=roster,
    )
    machine.topics = machine.find_topics()
    return Group(group.group_id, limits, new_uuid, machine)


def _merged(one: Assignment, other: Assignment) -> Assignment:
    none = frozenset[int]()
    return {each: one.get(each, none) | other.get(each, none) for each in one.keys() | other.keys()}
