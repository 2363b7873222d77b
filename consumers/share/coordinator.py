"""The share groups of which this broker is the coordinator: members and assignments, in memory.

What a share group has beyond its members is in the log (metadata/share_groups.py). Invariant: a
broker that is no longer the group's coordinator forgets the members; the next coordinator does not
know them, and they join again. Meanwhile they keep their records.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.group import (
    JOIN,
    LEAVE,
    HeartbeatOutcome,
    ShareGroup,
    ShareHeartbeat,
    TopicByName,
)
from bucketlog.consumers.share.settings import ShareMemberLimits

EMPTY, STABLE = "Empty", "Stable"
SHARE = "share"
"""The protocol type, and the type of the group."""
CHECK_INTERVAL_S = 0.5


class ShareGroupRow(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    group_type: str = SHARE


class ShareCoordinator:
    """Coordinates share groups. `owns` returns `none` if this broker is the coordinator of a group.
    `stored` are the groups with share-partitions in the log; `is_other` returns whether a consumer
    group has the name."""

    def __init__(
        self,
        *,
        owns: Callable[[str], ErrorCode],
        stored: Callable[[], Collection[str]],
        is_other: Callable[[str], bool],
        topic: TopicByName,
        limits: ShareMemberLimits,
        configs_of: Callable[[str], Mapping[str, str]],
        now_ms: Callable[[], int],
    ) -> None:
        self._owns = owns
        self._stored = stored
        self._is_other = is_other
        self._topic = topic
        self._limits = limits
        self._configs_of = configs_of
        self._now_ms = now_ms
        self._groups: dict[str, ShareGroup] = {}
        self._members = 0

    def heartbeat(self, group_id: str, request: ShareHeartbeat) -> HeartbeatOutcome:
        problem = self._problem(group_id, request)
        if problem is not None:
            return HeartbeatOutcome(ErrorCode.invalid_request, problem)
        error = self.refusal(group_id)
        if error is not ErrorCode.none:
            return HeartbeatOutcome(error)
        group = self._groups.get(group_id)
        if group is None and (request.epoch != JOIN or self._is_other(group_id)):
            return self._no_group(group_id)
        is_new = group is None or request.member_id not in group.members
        if request.epoch == JOIN and is_new and self._members >= self._limits.members_total_max:
            return HeartbeatOutcome(
                ErrorCode.coordinator_not_available, "the broker has too many share members"
            )
        if group is None:
            group = self._groups[group_id] = ShareGroup(group_id)
        before = len(group.members)
        limits = self.limits_of(group_id)
        outcome = group.heartbeat(request, self._topic, limits, now_ms=self._now_ms())
        self._members += len(group.members) - before
        if not group.members:
            del self._groups[group_id]
        return outcome

    def limits_of(self, group_id: str) -> ShareMemberLimits:
        """Return the limits of a group's members, with the group's own configs."""
        return self._limits.configured(self._configs_of(group_id))

    def _no_group(self, group_id: str) -> HeartbeatOutcome:
        if self._is_other(group_id):
            text = f"Group {group_id} is not a share group."
            return HeartbeatOutcome(ErrorCode.group_id_not_found, text)
        text = f"Group {group_id} has no such member."  # of an earlier coordinator: it joins again
        return HeartbeatOutcome(ErrorCode.unknown_member_id, text)

    def _problem(self, group_id: str, request: ShareHeartbeat) -> str | None:
        limits, names = self._limits, request.topics or ()
        if not group_id.strip():
            return "GroupId can't be empty."
        if not request.member_id.strip():
            return "MemberId can't be empty."
        if request.epoch < LEAVE:
            return "MemberEpoch is invalid."
        if request.epoch == JOIN and not names:
            return "SubscribedTopicNames must be set in first request."
        if request.rack is not None and not request.rack.strip():
            return "RackId can't be empty."
        texts = (request.member_id, request.rack or "", *names)
        if any(len(text.encode()) > limits.id_bytes_max for text in texts):
            return f"Ids and names may have {limits.id_bytes_max} bytes."
        if len(names) > limits.topics_max:
            return f"A member may subscribe to {limits.topics_max} topics."
        return None

    def refusal(self, group_id: str) -> ErrorCode:
        """Return why the group must not be asked for here; `none` if it may."""
        if not group_id or len(group_id.encode()) > self._limits.id_bytes_max:
            return ErrorCode.invalid_group_id
        return self._owns(group_id)

    def find(self, group_id: str) -> ShareGroup | None:
        """The group, if it has members here."""
        return self._groups.get(group_id)

    def exists(self, group_id: str) -> bool:
        return group_id in self._groups or group_id in self._stored()

    def may_exist(self, group_id: str) -> bool:
        """Return whether the group exists or can be created: no group of another type has its
        name."""
        return self.exists(group_id) or not self._is_other(group_id)

    def list(self) -> list[ShareGroupRow]:
        """The share groups of which this broker is the coordinator."""
        rows = [ShareGroupRow(group_id, SHARE, STABLE) for group_id in self._groups]
        rows += [
            ShareGroupRow(group_id, SHARE, EMPTY)
            for group_id in self._stored()
            if group_id not in self._groups and self._owns(group_id) is ErrorCode.none
        ]
        return rows

    def check_ownership(self) -> None:
        """The cluster's brokers have changed: forget groups of other coordinators."""
        for group_id in list(self._groups):
            if self._owns(group_id) is not ErrorCode.none:
                self._forget(group_id)

    def resign_all(self) -> None:
        self._groups.clear()
        self._members = 0

    def _forget(self, group_id: str) -> None:
        self._members -= len(self._groups.pop(group_id).members)

    def expire(self) -> None:
        now_ms = self._now_ms()
        for group_id, group in list(self._groups.items()):
            self._members -= len(group.expire(self._topic, now_ms=now_ms))
            if not group.members:
                del self._groups[group_id]

    async def run(self) -> None:
        """Ends the sessions of silent members, for ever."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            self.expire()
