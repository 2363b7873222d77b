"""JoinGroup: which members a group accepts, which it knows, and when that starts a rebalance.

This follows Apache Kafka's classicGroupJoin case by case, with four differences. Sizes are bounded.
If a member repeats a join or a sync, the earlier request is answered (REBALANCE_IN_PROGRESS)
instead of forgotten. A join phase continues when the member for which it waited is refused. A full
group takes a static member back.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import (
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    CallerIdentity,
    GroupProtocol,
    GroupState,
    JoinRequest,
    JoinResponse,
    SyncResponse,
    Token,
)
from bucketlog.consumers.group_settings import MEMBER_ID_SUFFIX_BYTES, GroupSettings
from bucketlog.consumers.rebalance import PendingMember, Rebalance, expect
from bucketlog.consumers.roster import (
    ENTRY_BYTES,
    PENDING_OBJECT_BYTES,
    GroupMember,
    member_bytes,
    object_bytes,
    text_bytes,
)

NewUuid = Callable[[], str]
"""A fresh random UUID as text: member ids end with it."""


def join(
    group: Rebalance, request: JoinRequest, token: Token, now_ms: int, new_uuid: NewUuid
) -> None:
    error = _refusal(group, request)
    if error is ErrorCode.group_max_size_reached:
        _turn_away(group, request.member_id, now_ms)
        group.answer(token, JoinResponse(error, UNKNOWN_MEMBER_ID))
    elif error is not None:
        group.answer(token, JoinResponse(error, request.member_id))
    elif request.member_id == UNKNOWN_MEMBER_ID:
        _join_new(group, request, token, now_ms, new_uuid)
    else:
        _join_known(group, request, token, now_ms)


def _refusal(group: Rebalance, request: JoinRequest) -> ErrorCode | None:
    """Why the group does not take the member, whether or not it knows the member."""
    error = invalid_join(group.settings, request)
    if error is not None:
        return error
    if not _has_room(group, request):
        return ErrorCode.group_max_size_reached
    if group.state is GroupState.DEAD:
        return ErrorCode.coordinator_not_available
    return None if _supports(group, request) else ErrorCode.inconsistent_group_protocol


def invalid_join(limits: GroupSettings, request: JoinRequest) -> ErrorCode | None:
    """Return what is wrong with the request in any group, or None."""
    if not limits.session_timeout_ms_min <= request.session_timeout_ms:
        return ErrorCode.invalid_session_timeout
    if request.session_timeout_ms > limits.session_timeout_ms_max:
        return ErrorCode.invalid_session_timeout
    texts = [request.client_id, request.client_host, request.protocol_type]
    texts += [request.instance_id or "", *(each.name for each in request.protocols)]
    metadata_bytes = sum(len(each.metadata) for each in request.protocols)
    if (
        len(request.protocols) > limits.protocols_max
        or any(len(text.encode()) > limits.id_bytes_max for text in texts)
        or metadata_bytes > limits.member_metadata_bytes_max
    ):
        return ErrorCode.invalid_request
    return None


def _has_room(group: Rebalance, request: JoinRequest) -> bool:
    """Return whether the group has room for the member. As in Kafka, members that have joined count
    while a rebalance is prepared: if there are too many, the last to rejoin are refused."""
    roster, limit = group.roster, group.settings.members_max
    known = roster.find(request.member_id, request.instance_id)
    cost = _cost_bytes(request) - (known.size_bytes if known is not None else 0)
    if group.size_bytes + cost > group.settings.group_bytes_max:
        return False
    if group.state is GroupState.PREPARING_REBALANCE:
        rejoined = known is not None and known.join_token is not None
        return rejoined or roster.joins_waiting < limit
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return known is not None or len(roster) < limit
    return True


def growth_bytes(group: Rebalance, request: JoinRequest) -> int:
    """An upper bound of the memory that the request would add; at most 0 for a request that the
    group refuses. A pending member needs the memory of the member from the first step on."""
    if _refusal(group, request) is not None:
        return 0
    member_id, roster = request.member_id, group.roster
    needed = _cost_bytes(request) + object_bytes(request.protocols)
    if member_id in group.pending_joins:
        return needed - ENTRY_BYTES - text_bytes((member_id,)) - PENDING_OBJECT_BYTES
    if member_id != UNKNOWN_MEMBER_ID:
        identity = CallerIdentity(member_id, NO_GENERATION, request.instance_id)
        if roster.refusal(identity) is not None:
            return 0
    known = roster.find(member_id, request.instance_id)
    if known is None:
        return needed
    return _protocols_bytes(request.protocols) - _protocols_bytes(known.protocols)


def _protocols_bytes(protocols: Sequence[GroupProtocol]) -> int:
    return member_bytes((), protocols) + object_bytes(protocols)


def _cost_bytes(request: JoinRequest) -> int:
    """Return the cost of the member that would join by the request, whatever its id."""
    ids = (request.member_id, request.instance_id, request.client_id, request.client_host)
    prefix_bytes = text_bytes((request.instance_id or request.client_id,))
    return member_bytes(ids, request.protocols) + prefix_bytes + MEMBER_ID_SUFFIX_BYTES


def _turn_away(group: Rebalance, member_id: str, now_ms: int) -> None:
    group.pending_joins.pop(member_id, None)
    if member_id in group.roster:
        group.remove(member_id)
        group.prepare_or_complete(now_ms)
    else:
        group.complete_if_all_joined(now_ms)


def _supports(group: Rebalance, request: JoinRequest) -> bool:
    if group.state is GroupState.EMPTY:
        return bool(request.protocol_type and request.protocols)
    same_type = request.protocol_type == group.protocol_type
    return same_type and group.roster.supports(request.protocols)


# a member without an id


def _join_new(
    group: Rebalance, request: JoinRequest, token: Token, now_ms: int, new_uuid: NewUuid
) -> None:
    prefix = request.client_id if request.instance_id is None else request.instance_id
    member_id = f"{prefix}-{new_uuid()}"
    if request.instance_id is not None:
        holder = group.roster.static_member_id(request.instance_id)
        if holder is not None:
            _return_static(group, request, token, now_ms, (holder, member_id))
        else:
            _add(group, replace(request, member_id=member_id), token, now_ms)
    elif not request.member_id_required:
        _add(group, replace(request, member_id=member_id), token, now_ms)
    elif len(group.pending_joins) >= group.settings.pending_members_max:
        error = ErrorCode.coordinator_not_available
        group.answer(token, JoinResponse(error, UNKNOWN_MEMBER_ID))
    else:
        deadline_ms = now_ms + request.session_timeout_ms
        group.pending_joins[member_id] = PendingMember(request.session_timeout_ms, deadline_ms)
        group.answer(token, JoinResponse(ErrorCode.member_id_required, member_id))


def _add(group: Rebalance, request: JoinRequest, token: Token, now_ms: int) -> None:
    """A new member cannot send heartbeats yet: its join expires instead, that one who gave up and
    came back under another id is not waited for without end."""
    group.pending_joins.pop(request.member_id, None)
    if not len(group.roster):
        group.protocol_type = request.protocol_type
    if group.initial is not None:
        group.initial = group.initial._replace(somebody_came=True)
    member = GroupMember(
        request.member_id,
        request.instance_id,
        request.client_id,
        request.client_host,
        request.session_timeout_ms,
        _rebalance_timeout_ms(group, request),
        request.protocols,
        is_new=True,
        deadline_ms=now_ms + group.settings.new_member_join_timeout_ms,
        join_token=token,
    )
    group.roster.add(member)
    group.prepare_or_complete(now_ms)


def _return_static(
    group: Rebalance, request: JoinRequest, token: Token, now_ms: int, ids: tuple[str, str]
) -> None:
    """A static member was started anew (KIP-345): the same place, another member id. Its former
    self is fenced. In a stable group nothing else happens as long as the protocol stays."""
    old_id, new_id = ids
    old_leader = group.roster.leader_id
    group.refuse(group.roster[old_id], ErrorCode.fenced_instance_id, old_id)
    member = group.roster.rename(old_id, new_id)
    group.pending_syncs = {new_id if each == old_id else each for each in group.pending_syncs}
    member.is_new = False
    _update(group, member, request)
    expect(member, now_ms)
    group.note_change()
    if group.state is GroupState.STABLE and group.roster.vote() == group.protocol_name:
        group.answer(token, _resumed(group, member, request, old_leader))
        return
    member.join_token = token
    # in the sync phase the leader may have assigned to the old id already: assign anew
    group.prepare_or_complete(now_ms)


def _resumed(
    group: Rebalance, member: GroupMember, request: JoinRequest, old_leader: str | None
) -> JoinResponse:
    """A leader that cannot skip the assignment gets the answer that its former self leads."""
    response = group.joined(member)
    if request.may_skip_assignment:
        leads = member.member_id == group.roster.leader_id
        return replace(response, skip_assignment=leads)
    return replace(response, leader=old_leader or UNKNOWN_MEMBER_ID, members=())


# a member with an id


def _join_known(group: Rebalance, request: JoinRequest, token: Token, now_ms: int) -> None:
    if request.member_id in group.pending_joins:
        if request.instance_id is None:
            _add(group, request, token, now_ms)
        else:  # a pending member is dynamic
            group.answer(token, JoinResponse(ErrorCode.invalid_request, request.member_id))
        return
    identity = CallerIdentity(request.member_id, NO_GENERATION, request.instance_id)
    error = group.roster.refusal(identity)
    if error is not None:
        group.answer(token, JoinResponse(error, request.member_id))
        return
    member = group.roster[request.member_id]
    same = member.protocols == request.protocols
    leads = group.roster.leader_id == member.member_id
    # the same metadata: it missed the answer. A stable group's leader asks for a rebalance so.
    if same and (
        group.state is GroupState.COMPLETING_REBALANCE
        or (group.state is GroupState.STABLE and not leads)
    ):
        group.answer(token, group.joined(member))
        return
    superseded = JoinResponse(ErrorCode.rebalance_in_progress, member.member_id)
    group.answer_join(member, superseded)
    member.join_token = token
    _update(group, member, request)
    group.prepare_or_complete(now_ms)


def _update(group: Rebalance, member: GroupMember, request: JoinRequest) -> None:
    group.roster.set_protocols(member, request.protocols)
    member.session_timeout_ms = request.session_timeout_ms
    member.rebalance_timeout_ms = _rebalance_timeout_ms(group, request)


def _rebalance_timeout_ms(group: Rebalance, request: JoinRequest) -> int:
    return max(request.rebalance_timeout_ms, group.settings.rebalance_timeout_ms_min)


def supersede_sync(group: Rebalance, member: GroupMember, token: Token) -> None:
    """Replace the member's earlier request for its assignment, which is answered with an error."""
    group.answer_sync(member, SyncResponse(ErrorCode.rebalance_in_progress))
    member.sync_token = token
