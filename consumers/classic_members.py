"""Members that use the classic protocol in a group of the consumer protocol (live migration).

Each member gets its part of the target assignment: nobody leads, and a join waits for no other
member. If a member must revoke partitions or may get more, its heartbeats get
REBALANCE_IN_PROGRESS. Source: Kafka's GroupMetadataManager.classicGroupJoinToConsumerGroup, and the
same for SyncGroup and Heartbeat.
"""

from dataclasses import replace
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.consumers.embedded_protocol import (
    Subscription,
    by_id,
    read_subscription,
    write_assignment,
)
from bucketlog.consumers.group import Group
from bucketlog.consumers.group_messages import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    CallerIdentity,
    JoinRequest,
    JoinResponse,
    SyncRequest,
    SyncResponse,
)
from bucketlog.consumers.join import NewUuid, invalid_join
from bucketlog.consumers.member_timers import Timer
from bucketlog.consumers.migration import downgraded, may_downgrade
from bucketlog.consumers.modern_heartbeat import Entry, apply_update, replacing
from bucketlog.consumers.modern_member import (
    ClassicPart,
    MemberState,
    ModernMember,
    partition_numbers,
)
from bucketlog.consumers.modern_messages import KnownTopics
from bucketlog.consumers.modern_state import ModernGroupState
from bucketlog.log_format.errors import InvalidDataError


class JoinOutcome(NamedTuple):
    """The outcome of a join. `downgrade`: the classic group that has taken the place of this
    one."""

    response: JoinResponse
    downgrade: Group | None = None


def join(
    group: ModernGroupState,
    request: JoinRequest,
    topics: KnownTopics,
    new_uuid: NewUuid,
    now_ms: int,
) -> JoinOutcome:
    error = _refused(group, request)
    if error is not None:
        return JoinOutcome(JoinResponse(error, request.member_id))
    is_new = request.member_id == UNKNOWN_MEMBER_ID
    member_id = new_uuid() if is_new else request.member_id
    if is_new and request.instance_id is None and request.member_id_required:
        return JoinOutcome(JoinResponse(ErrorCode.member_id_required, member_id))
    entry = _entry(group, request, member_id, is_new)
    subscription = _subscription(group, request)
    if isinstance(entry, ErrorCode):
        return JoinOutcome(JoinResponse(entry, request.member_id))
    if isinstance(subscription, ErrorCode):
        return JoinOutcome(JoinResponse(subscription, request.member_id))
    holder = group.members.static(request.instance_id)
    is_downgrade = (
        holder is not None
        and holder.classic is None
        and len(group.members) > 1
        and may_downgrade(group, [holder.member_id])
        and len(group.members) <= group.settings.classic.members_max
    )
    if entry.replaced is not None:
        group.replace_static(entry.replaced, entry.member)
    wanted = _updated(entry.member, request, subscription)
    changed = apply_update(group, entry.member, wanted, topics)
    if not is_downgrade:
        group.update_target(topics, now_ms)
    member = wanted
    if not (is_downgrade and changed):
        owned = by_id(subscription.owned, topics)
        member = group.reconcile(wanted, topics, owned, now_ms, subscription_changed=changed)
    protocol = request.protocols[0].name
    response = JoinResponse(
        ErrorCode.none, member.member_id, member.member_epoch, CONSUMER_PROTOCOL_TYPE, protocol
    )
    if is_downgrade:
        classic = downgraded(group, (), topics, new_uuid, now_ms)
        if changed or not all(each.is_reconciled_to(group.epoch) for each in group.members):
            classic.machine.prepare(now_ms)
        return JoinOutcome(response, classic)
    group.timers.cancel(member.member_id, Timer.JOIN, Timer.REBALANCE)
    group.timers.set(member.member_id, Timer.SYNC, now_ms + member.rebalance_timeout_ms)
    group.expect(member, now_ms)
    return JoinOutcome(response)


def sync(
    group: ModernGroupState, request: SyncRequest, topics: KnownTopics, now_ms: int
) -> SyncResponse:
    member = _classic_member(group, request.identity)
    if isinstance(member, ErrorCode):
        return SyncResponse(member)
    assert member.classic is not None
    name = member.classic.protocols[0].name
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
        return SyncResponse(ErrorCode.inconsistent_group_protocol)
    if request.protocol_name not in (None, name):
        return SyncResponse(ErrorCode.inconsistent_group_protocol)
    if group.epoch > member.member_epoch and member.state is not MemberState.UNREVOKED:
        _expect_join(group, member, now_ms)
        return SyncResponse(ErrorCode.rebalance_in_progress)
    group.timers.cancel(member.member_id, Timer.SYNC)
    group.expect(member, now_ms)
    limit = group.settings.classic.subscribed_topics_max
    version = read_subscription(member.classic.protocols[0].metadata, items_max=limit).version
    assignment = write_assignment(partition_numbers(member.owned), topics, version)
    return SyncResponse(ErrorCode.none, assignment, request.protocol_type, request.protocol_name)


def heartbeat(group: ModernGroupState, identity: CallerIdentity, now_ms: int) -> ErrorCode:
    member = _classic_member(group, identity)
    if isinstance(member, ErrorCode):
        return member
    group.expect(member, now_ms)
    may_get_more = member.state is MemberState.UNRELEASED and not _waits(group, member)
    if member.member_epoch < group.epoch or member.state is MemberState.UNREVOKED or may_get_more:
        _expect_join(group, member, now_ms)
        return ErrorCode.rebalance_in_progress
    return ErrorCode.none


def _waits(group: ModernGroupState, member: ModernMember) -> bool:
    """Return whether a partition of the member's target still belongs to another member."""
    return any(
        number not in member.owned.get(topic, {}) and not group.members.is_free(topic, number)
        for topic, numbers in group.targets(member.member_id).items()
        for number in numbers
    )


def _expect_join(group: ModernGroupState, member: ModernMember, now_ms: int) -> None:
    deadline_ms = now_ms + member.rebalance_timeout_ms
    group.timers.set_if_absent(member.member_id, Timer.JOIN, deadline_ms)


def _classic_member(group: ModernGroupState, identity: CallerIdentity) -> ModernMember | ErrorCode:
    if group.is_dead:
        return ErrorCode.coordinator_not_available
    member = group.members.get(identity.member_id)
    if identity.instance_id is not None:
        member = group.members.static(identity.instance_id)
        if member is not None and member.member_id != identity.member_id:
            return ErrorCode.fenced_instance_id
    if member is None or member.classic is None:
        return ErrorCode.unknown_member_id
    if member.member_epoch != identity.generation:
        return ErrorCode.illegal_generation
    return member


def _refused(group: ModernGroupState, request: JoinRequest) -> ErrorCode | None:
    error = invalid_join(group.settings.classic, request)
    if error is not None:
        return error
    if group.is_dead:
        return ErrorCode.coordinator_not_available
    is_member = request.member_id in group.members
    if len(group.members) >= group.settings.members_max and not is_member:
        return ErrorCode.group_max_size_reached
    names = [each.name for each in request.protocols]
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not group.members.supports(names):
        return ErrorCode.inconsistent_group_protocol
    return None


def _entry(
    group: ModernGroupState, request: JoinRequest, member_id: str, is_new: bool
) -> Entry | ErrorCode:
    holder = group.members.static(request.instance_id)
    if request.instance_id is None or (is_new and holder is None):
        return Entry(group.members.get(member_id) or ModernMember(member_id))
    if holder is None:
        return ErrorCode.unknown_member_id
    if is_new:
        return replacing(holder, member_id)
    if holder.member_id != member_id:
        return ErrorCode.fenced_instance_id
    return Entry(holder)


def _subscription(group: ModernGroupState, request: JoinRequest) -> Subscription | ErrorCode:
    limits = group.settings.classic
    size = sum(len(each.metadata) for each in request.protocols)
    if group.size_bytes + size > limits.group_bytes_max:
        return ErrorCode.group_max_size_reached
    metadata = request.protocols[0].metadata
    found = _read(metadata, items_max=limits.subscribed_topics_max)
    return ErrorCode.inconsistent_group_protocol if found is None else found


def _read(metadata: bytes, *, items_max: int) -> Subscription | None:
    try:
        return read_subscription(metadata, items_max=items_max)
    except InvalidDataError:
        return None


def _updated(
    member: ModernMember, request: JoinRequest, subscription: Subscription
) -> ModernMember:
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=subscription.topics,
        regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicPart(request.session_timeout_ms, request.protocols),
    )
