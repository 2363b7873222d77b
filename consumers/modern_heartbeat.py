"""ConsumerGroupHeartbeat: which members a group accepts, and what each member gets.

This follows Apache Kafka's GroupMetadataManager.consumerGroupHeartbeat case by case, with two
differences. Sizes are bounded, and a lost response costs a member neither time nor partitions.
Clients of librdkafka repeat a heartbeat without their partitions. So each response shows a member
its partitions until the member reports them, and a member may repeat the epoch before without its
partitions. (Kafka shows partitions once. It fences the member, or waits until the member's
rebalance timeout.) A refused request changes nothing.
"""

from dataclasses import replace
from typing import NamedTuple, TypeVar

from kio.schema.errors import ErrorCode

from bucketlog.consumers.assignor_input import Assignment
from bucketlog.consumers.assignors import ASSIGNORS
from bucketlog.consumers.group_settings import MEMBER_ID_SUFFIX_BYTES
from bucketlog.consumers.modern_member import ModernMember, contains, partition_numbers
from bucketlog.consumers.modern_messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    GroupRefusal,
    HeartbeatAnswer,
    KnownTopics,
    ModernHeartbeat,
)
from bucketlog.consumers.modern_state import ModernGroupState
from bucketlog.consumers.topic_regex import InvalidRegexError, check_regex

_T = TypeVar("_T")


class Entry(NamedTuple):
    """A member that enters the group, and the static member that it replaces."""

    member: ModernMember
    replaced: ModernMember | None = None


def heartbeat(
    group: ModernGroupState,
    request: ModernHeartbeat,
    topics: KnownTopics,
    now_ms: int,
) -> HeartbeatAnswer | GroupRefusal:
    """Handle a heartbeat of a member that joins or stays."""
    entry = _entry(group, request)
    if isinstance(entry, GroupRefusal):
        return entry
    before = entry.member
    wanted = _updated(before, request)
    refusal = _refused_size(group, entry, wanted) or _refused_regex(group, before, wanted)
    if refusal is not None:
        return refusal
    if entry.replaced is not None:
        group.replace_static(entry.replaced, before)
    changed = apply_update(group, before, wanted, topics)
    group.update_target(topics, now_ms)
    member = group.reconcile(wanted, topics, request.owned, now_ms, subscription_changed=changed)
    group.expect(member, now_ms)
    assignment = (
        partition_numbers(member.owned) if _is_told(group, request, before, member) else None
    )
    interval_ms = group.settings.heartbeat_interval_ms
    return HeartbeatAnswer(member.member_id, member.member_epoch, interval_ms, assignment)


def _is_told(
    group: ModernGroupState, request: ModernHeartbeat, before: ModernMember, member: ModernMember
) -> bool:
    """Return whether the response shows the member's partitions. `before`: the member at the
    request."""
    member_id, owned = member.member_id, partition_numbers(member.owned)
    if request.owned is not None:
        is_known = {each: numbers for each, numbers in request.owned.items() if numbers} == owned
    else:
        is_new = owned != partition_numbers(before.owned)
        is_known = not is_new and member_id not in group.unconfirmed
    (group.unconfirmed.discard if is_known else group.unconfirmed.add)(member_id)
    is_restored = member_id in group.restored
    group.restored.discard(member_id)
    is_complete = request.member_epoch == JOIN_EPOCH or request.is_full
    return is_complete or is_restored or not is_known


def apply_update(
    group: ModernGroupState, before: ModernMember, wanted: ModernMember, topics: KnownTopics
) -> bool:
    """Put the member in, and begin another epoch if the group's topics or members differ. Returns
    whether the member's subscription has changed."""
    if wanted != before or wanted.member_id not in group.members:
        group.put(wanted)
    names_changed = wanted.topics != before.topics
    regex_changed = wanted.regex != before.regex
    resolved = regex_changed and (not wanted.regex or wanted.regex in group.resolved)
    if regex_changed:
        group.drop_regexes()
    if group.epoch == 0 or names_changed or resolved:
        group.bump(topics)
    elif group.seen_version != topics.version and group.follow_topics(topics):
        group.bump(None)
    return names_changed or regex_changed


def invalid(
    group_id: str, request: ModernHeartbeat, *, member_id_required: bool
) -> GroupRefusal | None:
    """Return what is wrong with the request in any group, or None. `member_id_required`: version
    1."""
    epoch = request.member_epoch
    if not request.member_id and (member_id_required or epoch > 0 or epoch == LEAVE_EPOCH):
        return _bad("MemberId can't be empty.")
    if not group_id.strip():
        return _bad("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        return _bad("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        return _bad("RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms is None:
            return _bad("RebalanceTimeoutMs must be provided in first request.")
        if request.owned is None or request.owned:
            return _bad("TopicPartitions must be empty when (re-)joining.")
        if request.topics is None and request.regex is None:
            return _bad(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            return _bad("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        return _bad("MemberEpoch is invalid.")
    if request.assignor is not None and request.assignor not in ASSIGNORS:
        return GroupRefusal(
            ErrorCode.unsupported_assignor,
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: "
            f"{', '.join(ASSIGNORS)}.",
        )
    return None


def _bad(message: str) -> GroupRefusal:
    return GroupRefusal(ErrorCode.invalid_request, message)


def _entry(group: ModernGroupState, request: ModernHeartbeat) -> Entry | GroupRefusal:
    members, limit = group.members, group.settings.members_max
    if len(members) >= limit and request.member_id not in members:
        return GroupRefusal(
            ErrorCode.group_max_size_reached,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )
    if request.instance_id is None:
        return _dynamic(group, request)
    return _static(group, request)


def _dynamic(group: ModernGroupState, request: ModernHeartbeat) -> Entry | GroupRefusal:
    """A member may join again at any epoch, as in Apache Kafka 4.3.1."""
    member = group.members.get(request.member_id)
    if request.member_epoch == JOIN_EPOCH:
        return Entry(member or ModernMember(request.member_id))
    if member is None:
        return not_a_member(group, request.member_id)
    return refused_epoch(member, request) or Entry(member)


def _static(group: ModernGroupState, request: ModernHeartbeat) -> Entry | GroupRefusal:
    instance_id = request.instance_id
    holder = group.members.static(instance_id)
    if request.member_epoch != JOIN_EPOCH:
        if holder is None:
            return GroupRefusal(
                ErrorCode.unknown_member_id, f"Instance id {instance_id} is unknown."
            )
        fenced = fenced_instance(holder, request.member_id)
        return fenced or refused_epoch(holder, request) or Entry(holder)
    if holder is None:
        return Entry(group.members.get(request.member_id) or ModernMember(request.member_id))
    if holder.classic is None and holder.member_epoch != STATIC_LEAVE_EPOCH:
        return GroupRefusal(
            ErrorCode.unreleased_instance_id,
            f"Static member {request.member_id} with instance id {instance_id} cannot join the "
            f"group because the instance id is owned by {holder.member_id} member.",
        )
    return replacing(holder, request.member_id)


def replacing(holder: ModernMember, member_id: str) -> Entry:
    """The member is a static member's next self."""
    return Entry(
        replace(holder, member_id=member_id, member_epoch=0, previous_epoch=0), replaced=holder
    )


def not_a_member(group: ModernGroupState, member_id: str) -> GroupRefusal:
    return GroupRefusal(
        ErrorCode.unknown_member_id,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )


def fenced_instance(holder: ModernMember, member_id: str) -> GroupRefusal | None:
    if holder.member_id == member_id:
        return None
    return GroupRefusal(
        ErrorCode.fenced_instance_id,
        f"Static member {member_id} with instance id {holder.instance_id} was fenced by member "
        f"{holder.member_id}.",
    )


def refused_epoch(member: ModernMember, request: ModernHeartbeat) -> GroupRefusal | None:
    """A member that missed a response may have the epoch before, with partitions that it still
    has. Without a report, the member has no others: those that it gave up, it reported."""
    received, known = request.member_epoch, member.member_epoch
    if received == known:
        return None
    missed_response = received < known and received == member.previous_epoch
    if missed_response and (request.owned is None or _is_part(request.owned, member)):
        return None
    relation = "greater" if received > known else "smaller"
    return GroupRefusal(
        ErrorCode.fenced_member_epoch,
        f"The consumer group member has a {relation} member epoch ({received}) than the one known "
        f"by the group coordinator ({known}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _is_part(owned: Assignment, member: ModernMember) -> bool:
    return all(contains(member.owned, topic, numbers) for topic, numbers in owned.items())


def _kept(new: _T | None, old: _T) -> _T:
    return old if new is None else new


def _updated(member: ModernMember, request: ModernHeartbeat) -> ModernMember:
    return replace(
        member,
        instance_id=_kept(request.instance_id, member.instance_id),
        rack_id=_kept(request.rack_id, member.rack_id),
        rebalance_timeout_ms=_kept(request.rebalance_timeout_ms, member.rebalance_timeout_ms),
        assignor=_kept(request.assignor, member.assignor),
        topics=_kept(request.topics, member.topics),
        regex=_kept(request.regex, member.regex),
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def _refused_size(
    group: ModernGroupState, entry: Entry, wanted: ModernMember
) -> GroupRefusal | None:
    classic = group.settings.classic
    known = entry.replaced or group.members.get(wanted.member_id)
    growth = wanted.size_bytes - (known.size_bytes if known is not None else 0)
    if growth <= 0:
        return None
    ids = (wanted.member_id, wanted.instance_id, wanted.rack_id, wanted.client_id)
    too_long = any(len((each or "").encode()) > classic.id_bytes_max for each in ids)
    if too_long or wanted.size_bytes > classic.member_metadata_bytes_max + MEMBER_ID_SUFFIX_BYTES:
        return _bad("The member's ids or its subscription are too long.")
    if group.size_bytes + growth > classic.group_bytes_max:
        return GroupRefusal(
            ErrorCode.group_max_size_reached,
            f"The consumer group has reached its maximum size of {classic.group_bytes_max} bytes.",
        )
    return None


def _refused_regex(
    group: ModernGroupState, before: ModernMember, wanted: ModernMember
) -> GroupRefusal | None:
    limits, regex = group.settings, wanted.regex
    if not regex or regex == before.regex or regex in group.members.regexes:
        return None
    error = ErrorCode.invalid_regular_expression
    if len(regex.encode()) > limits.regex_bytes_max:
        return GroupRefusal(
            error, f"SubscribedTopicRegex has more than {limits.regex_bytes_max} bytes."
        )
    if len(group.members.regexes) >= limits.regexes_max:
        return GroupRefusal(
            error, f"The group has {limits.regexes_max} regular expressions, and may have no more."
        )
    try:
        check_regex(regex, memory_bytes_max=limits.regex_memory_bytes_max)
    except InvalidRegexError as reason:
        return GroupRefusal(error, reason.message)
    return None
