"""The two forms of a group: by the classic protocol, and by the consumer protocol (KIP-848).

A group has one form at a time. `GroupForms` makes groups, stores and restores them, and changes
their form. An empty group takes the form of the first member that joins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import ormsgpack
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_messages import CallerIdentity, GroupResponse, GroupState
from bucketlog.consumers.group_settings import GroupSettings
from bucketlog.consumers.join import NewUuid
from bucketlog.consumers.migration import take_waiting_joins, upgraded
from bucketlog.consumers.modern_group import ModernGroup
from bucketlog.consumers.modern_messages import (
    JOIN_EPOCH,
    GroupRefusal,
    HeartbeatAnswer,
    KnownTopics,
    ModernHeartbeat,
    ModernState,
)
from bucketlog.consumers.modern_settings import ModernSettings
from bucketlog.consumers.snapshot import restore, snapshot
from bucketlog.consumers.stored_modern_group import (
    MODERN_VERSION,
    modern_snapshot,
    restore_modern,
)
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import TopicIdPartition

AnyGroup: TypeAlias = Group | ModernGroup
AnyState: TypeAlias = GroupState | ModernState
CLASSIC, CONSUMER = "classic", "consumer"
"""The types of groups, as ListGroups has them."""
_MODERN_SUFFIX = " (consumer)"
"""The mark of a modern group in the state that the sequencer keeps beside a snapshot."""


class FetchingMember(NamedTuple):
    """Member that fetches offsets (OffsetFetch 9 and up)."""

    member_id: str | None
    epoch: int


ADMINISTRATOR = FetchingMember(None, -1)
"""A client that does not claim to be a member."""


class Heard(NamedTuple):
    """The answer to a member's heartbeat, the group as it is then, and the answers to others."""

    answer: HeartbeatAnswer | GroupRefusal
    group: AnyGroup
    others: Sequence[GroupResponse] = ()


ConfigsOf: TypeAlias = Callable[[str], Mapping[str, str]]
"""The configs of a group, by its id (KIP-848: resource type GROUP)."""


@dataclass(frozen=True, slots=True)
class GroupForms:
    settings: ModernSettings
    topics: KnownTopics
    new_uuid: NewUuid
    configs_of: ConfigsOf

    @property
    def classic_settings(self) -> GroupSettings:
        return self.settings.classic

    def _settings_of(self, group_id: str) -> ModernSettings:
        """Read at each request, so that changed configs apply to members at once."""
        return self.settings.configured(self.configs_of(group_id))

    def new(self, group_id: str, revision: int = 0) -> Group:
        """An empty group."""
        group = Group(group_id, self.classic_settings, self.new_uuid)
        group.machine.revision = revision
        return group

    def restored(self, blob: bytes, now_ms: int) -> AnyGroup:
        """Restore a group. Raises `InvalidDataError` for bytes that are not a snapshot of a
        possible group."""
        classic = self.classic_settings
        if len(blob) > classic.snapshot_bytes_max:
            raise InvalidDataError(
                f"a group's snapshot of {len(blob)} bytes",
                remedy="raise group_bytes_max to what it was when the snapshot was made",
            )
        try:
            fields = ormsgpack.unpackb(blob)
        except ormsgpack.MsgpackDecodeError as error:
            raise InvalidDataError(f"not a group's snapshot: {error}") from error
        if isinstance(fields, list) and fields[:1] == [MODERN_VERSION]:
            state = restore_modern(fields, self._settings_of, now_ms)
            return ModernGroup(state, self.topics, self.new_uuid)
        return restore(blob, classic, self.new_uuid, now_ms)

    def to_join(self, group: AnyGroup) -> AnyGroup:
        """The group that a JoinGroup is for: an empty group becomes a classic one."""
        if not isinstance(group, ModernGroup):
            return group
        if group.is_empty:
            return self.new(group.group_id, group.revision + 1)
        group.machine.settings = self._settings_of(group.group_id)
        return group

    def heartbeat(self, group: AnyGroup, request: ModernHeartbeat, now_ms: int) -> Heard:
        """A member's heartbeat, for which a classic group changes its form. A refused one changes
        nothing."""
        settings = self._settings_of(group.group_id)
        if isinstance(group, ModernGroup):
            group.machine.settings = settings
            answer = group.consumer_heartbeat(request, now_ms)
            return Heard(answer, group)
        if request.member_epoch != JOIN_EPOCH:
            text = f"Member {request.member_id} is not a member of group {group.group_id}."
            return Heard(GroupRefusal(ErrorCode.unknown_member_id, text), group)
        state = upgraded(group, self.topics, settings, now_ms)
        if isinstance(state, GroupRefusal):
            return Heard(state, group)
        modern = ModernGroup(state, self.topics, self.new_uuid)
        answer = modern.consumer_heartbeat(request, now_ms)
        if isinstance(answer, GroupRefusal):
            return Heard(answer, group)
        joins = take_waiting_joins(group)
        group.machine.end(ErrorCode.rebalance_in_progress)
        others = group.machine.drain()
        for waiting, token in joins:
            others += modern.join(waiting, token, now_ms)
        return Heard(answer, modern, others)


def converted(group: AnyGroup) -> AnyGroup:
    """The classic group that a group of the consumer protocol has become, if it has."""
    return group.converted or group if isinstance(group, ModernGroup) else group


def stored(group: AnyGroup) -> bytes:
    """Return the group's snapshot. A dead group has none: what is stored of it is deleted."""
    return modern_snapshot(group.machine) if isinstance(group, ModernGroup) else snapshot(group)


def stored_state(group: AnyGroup) -> str:
    return f"{group.state}{_MODERN_SUFFIX if isinstance(group, ModernGroup) else ''}"


def read_state(stored_as: str) -> tuple[AnyState, str]:
    """The state and the type of a group."""
    if stored_as.endswith(_MODERN_SUFFIX):
        return ModernState(stored_as.removesuffix(_MODERN_SUFFIX)), CONSUMER
    return GroupState(stored_as), CLASSIC


def commit_refusal(
    group: AnyGroup,
    identity: CallerIdentity,
    partitions: Sequence[TopicIdPartition],
    now_ms: int,
    *,
    transactional: bool = False,
    knows_epochs: bool = True,
) -> ErrorCode:
    """Why the offsets may not be committed, or `none`. `knows_epochs`: OffsetCommit 9 and up."""
    if isinstance(group, Group):
        return group.check_commit(identity, now_ms, transactional=transactional)
    error = group.check_commit(identity, partitions, transactional=transactional)
    is_epoch_read = error in (ErrorCode.none, ErrorCode.stale_member_epoch)
    if is_epoch_read and not (transactional or knows_epochs):
        is_old = group.is_consumer_member(identity.member_id)
        return ErrorCode.unsupported_version if is_old else error
    return error


def fetch_refusal(group: AnyGroup, by: FetchingMember) -> ErrorCode:
    """Why the member may not fetch offsets, or `none`."""
    return group.check_fetch(*by) if isinstance(group, ModernGroup) else ErrorCode.none
