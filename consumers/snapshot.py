"""A group as another coordinator needs it: versioned, bounded, the same bytes for the same group.

A snapshot is one msgpack array (see `_StoredGroup`): identity, state, generation, members in order
with metadata and assignments, ids given out. It leaves out what does not outlive a coordinator:
deadlines, and requests that wait (their connections end with it). `restore` gives every member a
full session timeout to show that it lives, and every phase its full time. A stable group continues
without a rebalance, and does not wait for members that have not asked for their assignment by then.

A `revision` is in it, so that a store can refuse an older snapshot for a newer one. Version 3 also
has members with a former generation; other groups are written as version 1. (Version 2 is a group
of the consumer protocol.)
"""

from typing import Annotated, NamedTuple

import ormsgpack
from pydantic import Field, TypeAdapter, ValidationError

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_messages import GroupProtocol, GroupState
from bucketlog.consumers.group_settings import GroupSettings
from bucketlog.consumers.join import NewUuid
from bucketlog.consumers.rebalance import PendingMember, Rebalance, expect
from bucketlog.consumers.roster import GroupMember, Roster
from bucketlog.log_format.errors import InvalidDataError

VERSION = 1
WITH_FORMER_GENERATIONS = 3
_VERSIONS = (VERSION, WITH_FORMER_GENERATIONS)

_NotNegative = Annotated[int, Field(ge=0, lt=2**63)]


class _StoredMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: _NotNegative
    rebalance_timeout_ms: _NotNegative
    protocols: list[tuple[str, bytes]]
    assignment: bytes
    former_generation: _NotNegative | None = None


class _StoredGroup(NamedTuple):
    version: int
    group_id: str
    revision: _NotNegative
    state: GroupState
    generation: _NotNegative
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    is_initial: bool
    empty_since_ms: _NotNegative | None
    members: list[_StoredMember]
    pending_joins: list[tuple[str, _NotNegative]]


_STORED = TypeAdapter(_StoredGroup)


def snapshot(group: Group) -> bytes:
    """Return the group's snapshot. A dead group has none: what is stored of it is deleted."""
    machine = group.machine
    if machine.state is GroupState.DEAD:
        raise ValueError(f"group {group.group_id!r} is dead")
    members = [
        _StoredMember(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            each.session_timeout_ms,
            each.rebalance_timeout_ms,
            [(protocol.name, protocol.metadata) for protocol in each.protocols],
            each.assignment,
            each.former_generation,
        )
        for each in machine.roster
    ]
    has_former = any(each.former_generation is not None for each in members)
    stored = _StoredGroup(
        WITH_FORMER_GENERATIONS if has_former else VERSION,
        group.group_id,
        machine.revision,
        machine.state,
        machine.generation,
        machine.protocol_type,
        machine.protocol_name,
        machine.roster.leader_id,
        machine.initial is not None,
        machine.empty_since_ms,
        members,
        [(id_, each.session_timeout_ms) for id_, each in machine.pending_joins.items()],
    )
    return ormsgpack.packb(stored, default=_plain)


def restore(blob: bytes, settings: GroupSettings, new_uuid: NewUuid, now_ms: int) -> Group:
    """Restore a group. Raises InvalidDataError for bytes that are not a snapshot of a possible
    group."""
    stored = _decode(blob, settings)
    machine = Rebalance(
        settings,
        state=stored.state,
        generation=stored.generation,
        protocol_type=stored.protocol_type,
        protocol_name=stored.protocol_name,
        revision=stored.revision,
        empty_since_ms=stored.empty_since_ms,
        roster=_roster(stored),
    )
    for member in machine.roster:
        expect(member, now_ms)
    for member_id, timeout_ms in stored.pending_joins:
        machine.pending_joins[member_id] = PendingMember(timeout_ms, now_ms + timeout_ms)
    _check(machine)
    if stored.state is GroupState.PREPARING_REBALANCE:
        if stored.is_initial:
            machine.start_initial_delay(now_ms)
        else:
            machine.join_deadline_ms = now_ms + machine.roster.rebalance_timeout_ms
    elif stored.state is GroupState.COMPLETING_REBALANCE:
        machine.expect_syncs(now_ms)
    machine.topics = machine.find_topics()
    return Group(stored.group_id, settings, new_uuid, machine)


def _plain(value: object) -> object:
    match value:
        case GroupState():
            return value.value
        case _StoredMember(former_generation=None):
            return list(value[:-1])
        case tuple():
            return list(value)
    raise TypeError(f"{type(value).__name__} has no place in a snapshot")


def _decode(blob: bytes, settings: GroupSettings) -> _StoredGroup:
    if len(blob) > settings.snapshot_bytes_max:
        raise InvalidDataError(
            f"a group's snapshot of {len(blob)} bytes",
            remedy="raise group_bytes_max to what it was when the snapshot was made",
        )
    try:
        fields = ormsgpack.unpackb(blob)
        if not isinstance(fields, list) or not fields or fields[0] not in _VERSIONS:
            raise InvalidDataError(
                "a group's snapshot of an unknown version", remedy="run the version that wrote it"
            )
        return _STORED.validate_python(fields)
    except (ormsgpack.MsgpackDecodeError, ValidationError) as error:
        raise InvalidDataError(f"not a group's snapshot: {error}") from error


def _roster(stored: _StoredGroup) -> Roster:
    roster = Roster()
    for each in stored.members:
        protocols = tuple(GroupProtocol(*protocol) for protocol in each.protocols)
        try:
            member = GroupMember(*each[:6], protocols, each.assignment)
            member.former_generation = each.former_generation
            roster.add(member)
        except ValueError as error:
            raise InvalidDataError(f"group {stored.group_id!r}: {error}") from error
    if stored.leader_id is not None and stored.leader_id not in roster:
        raise InvalidDataError(f"group {stored.group_id!r} is led by no member of it")
    if len(roster) and stored.leader_id is None:
        raise InvalidDataError(f"group {stored.group_id!r} has members and no leader")
    roster.leader_id = stored.leader_id
    return roster


def _check(machine: Rebalance) -> None:
    """Check what later code relies on: the properties that every group in its state has."""
    named = machine.protocol_name
    match machine.state:
        case GroupState.EMPTY:
            possible = len(machine.roster) == 0
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            possible = len(machine.roster) > 0 and named is not None
            possible = possible and machine.roster.all_support(named or "")
        case GroupState.PREPARING_REBALANCE:
            possible = True
        case GroupState.DEAD:
            possible = False
    if not possible:
        raise InvalidDataError(f"no group in state {machine.state} has these members")
