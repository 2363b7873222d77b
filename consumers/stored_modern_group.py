"""A group of the consumer protocol as another coordinator needs it: versioned, bounded.

A snapshot is one msgpack array (see `_StoredGroup`). What does not outlive a coordinator is left
out: deadlines, and when the target was computed. `restore_modern` gives every member a full session
timeout, and a full rebalance timeout to those that have to revoke. Members, epochs, partitions and
the target are as they were, so no partition gets a second owner.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, NamedTuple

import ormsgpack
from pydantic import Field, TypeAdapter, ValidationError

from bucketlog.consumers.group_messages import GroupProtocol
from bucketlog.consumers.member_timers import Timer
from bucketlog.consumers.modern_member import ClassicPart, MemberState, ModernMember, Owned
from bucketlog.consumers.modern_settings import ModernSettings
from bucketlog.consumers.modern_state import ModernGroupState, Resolution
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import TopicId

MODERN_VERSION = 2
"""The version of a modern group's snapshot; version 1 is a classic group's."""
NEVER_RESOLVED = -1

_NotNegative = Annotated[int, Field(ge=0, lt=2**63)]
_Epoch = Annotated[int, Field(ge=-2, lt=2**31)]
_TopicIdBytes = Annotated[bytes, Field(min_length=16, max_length=16)]
_Owned = list[tuple[_TopicIdBytes, list[tuple[_NotNegative, _Epoch]]]]
_Target = list[tuple[_TopicIdBytes, list[_NotNegative]]]


class _StoredMember(NamedTuple):
    member_id: str
    member_epoch: _Epoch
    previous_epoch: _Epoch
    state: MemberState
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    client_id: str
    client_host: str
    topics: list[str]
    regex: str
    assignor: str | None
    assigned: _Owned
    revoking: _Owned
    session_timeout_ms: _NotNegative | None
    protocols: list[tuple[str, bytes]]
    target: _Target | None


class _StoredGroup(NamedTuple):
    version: int
    group_id: str
    revision: _NotNegative
    epoch: _NotNegative
    target_epoch: _NotNegative
    topics_hash: _NotNegative
    empty_since_ms: _NotNegative | None
    members: list[_StoredMember]
    resolved: list[tuple[str, list[str]]]


_STORED = TypeAdapter(_StoredGroup)


def modern_snapshot(group: ModernGroupState) -> bytes:
    """Return the group's snapshot. A dead group has none: what is stored of it is deleted."""
    if group.is_dead:
        raise ValueError(f"group {group.group_id!r} is dead")
    stored = _StoredGroup(
        MODERN_VERSION,
        group.group_id,
        group.revision,
        group.epoch,
        group.target_epoch,
        group.topics_hash,
        group.empty_since_ms,
        [_stored_member(group, each) for each in group.members],
        [(regex, sorted(each.topics)) for regex, each in sorted(group.resolved.items())],
    )
    return ormsgpack.packb(stored, default=_plain)


def restore_modern(
    fields: object, settings_of: Callable[[str], ModernSettings], now_ms: int
) -> ModernGroupState:
    """Restore a group. `settings_of` returns the settings for a group id. Raises InvalidDataError
    if the bytes are not a snapshot of a possible group."""
    try:
        stored = _STORED.validate_python(fields)
    except ValidationError as error:
        raise InvalidDataError(f"not a group's snapshot: {error}") from error
    group = ModernGroupState(
        stored.group_id,
        settings_of(stored.group_id),
        epoch=stored.epoch,
        target_epoch=stored.target_epoch,
        topics_hash=stored.topics_hash,
        revision=stored.revision,
        empty_since_ms=stored.empty_since_ms,
    )
    for each in stored.members:
        try:
            member = _member(each)
            group.members.put(member)
        except ValueError as error:
            raise InvalidDataError(f"group {stored.group_id!r}: {error}") from error
        if each.target is not None:
            group.target[each.member_id] = {
                TopicId(topic): frozenset(numbers) for topic, numbers in each.target
            }
        group.expect(member, now_ms)
        is_stable = member.state is MemberState.STABLE
        (group.restored if is_stable else group.unconfirmed).add(member.member_id)
        if member.classic is None and member.state is MemberState.UNREVOKED:
            deadline_ms = now_ms + member.rebalance_timeout_ms
            group.timers.set(member.member_id, Timer.REBALANCE, deadline_ms)
    for regex, names in stored.resolved:
        group.resolved[regex] = Resolution(frozenset(names), NEVER_RESOLVED, now_ms)
    return group


def _stored_member(group: ModernGroupState, member: ModernMember) -> _StoredMember:
    classic, target = member.classic, group.target.get(member.member_id)
    return _StoredMember(
        member.member_id,
        member.member_epoch,
        member.previous_epoch,
        member.state,
        member.instance_id,
        member.rack_id,
        member.rebalance_timeout_ms,
        member.client_id,
        member.client_host,
        sorted(member.topics),
        member.regex,
        member.assignor,
        _stored_owned(member.owned),
        _stored_owned(member.pending_revocation),
        None if classic is None else classic.session_timeout_ms,
        [] if classic is None else [(each.name, each.metadata) for each in classic.protocols],
        None
        if target is None
        else [(bytes(topic), sorted(numbers)) for topic, numbers in sorted(target.items())],
    )


def _stored_owned(owned: Owned) -> _Owned:
    return [(bytes(topic), sorted(each.items())) for topic, each in sorted(owned.items())]


def _member(stored: _StoredMember) -> ModernMember:
    classic = None
    if stored.session_timeout_ms is not None:
        protocols = tuple(GroupProtocol(*each) for each in stored.protocols)
        if not protocols:
            raise InvalidDataError(f"member {stored.member_id} has no protocol")
        classic = ClassicPart(stored.session_timeout_ms, protocols)
    return ModernMember(
        *stored[:9],
        frozenset(stored.topics),
        stored.regex,
        stored.assignor,
        _owned(stored.assigned) or None,
        _owned(stored.revoking) or None,
        classic,
    )


def _owned(stored: _Owned) -> Mapping[TopicId, dict[int, int]]:
    return {TopicId(topic): dict(numbers) for topic, numbers in stored}


def _plain(value: object) -> object:
    match value:
        case MemberState():
            return value.value
        case tuple():
            return list(value)
    raise TypeError(f"{type(value).__name__} has no place in a snapshot")
