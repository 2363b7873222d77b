"""The sequencer's verbs for consumer groups: the coordinator of a group, and its stored state.

Invariant: a group has one coordinator at a time, the one that took it last. Each taking gives a
term that was never given before in the epoch. A coordinator with an earlier term can no longer
store or commit anything. All of this ends with the epoch: members then join anew.
"""

import ormsgpack

from bucketlog.log_format.errors import (
    SequencerError,
    SequencerLostError,
    TooManyGroupsError,
)
from bucketlog.metadata.sequencer.redis_errors import LOST_REMEDY, raise_lost
from bucketlog.metadata.sequencer.redis_server import ScriptRunner
from bucketlog.metadata.sequencer.scripts import SequencerVerb
from bucketlog.metadata.sequencer.stored_groups import GroupRow, GroupTakeover

NO_TERM = 0
"""The term of a group that was forgotten while entries of it were open."""


class GroupVerbs(ScriptRunner):
    async def take_group(
        self, epoch: int, group: str, incarnation: str, *, groups_max: int | None = None
    ) -> GroupTakeover:
        """Become the group's coordinator. A repeated call, after a lost answer, returns a new term.

        Raises `TooManyGroupsError` for a new group if `groups_max` groups exist. None: no limit."""
        limit = "" if groups_max is None else groups_max
        status, *rest = await self._run(SequencerVerb.TAKE_GROUP, epoch, group, incarnation, limit)
        if status == "full":
            raise TooManyGroupsError(
                f"the cluster has reached its limit of consumer groups: it has {rest[0]} or more",
                remedy="delete groups, or raise BUCKETLOG_GROUPS_MAX",
            )
        if status != "ok":
            raise_lost(status, rest)
        term, revision, open_tickets, snapshot = rest
        if not isinstance(snapshot, bytes | None):
            raise SequencerLostError(
                f"the snapshot of group {group!r} is damaged", remedy=LOST_REMEDY
            )
        return GroupTakeover(term, revision, snapshot, frozenset(open_tickets))

    async def store_group(
        self,
        epoch: int,
        group: str,
        term: int,
        revision: int,
        state: str,
        protocol_type: str,
        snapshot: bytes,
    ) -> bool:
        """Keep the group for its next coordinator; may be repeated. Returns False if another
        coordinator has taken the group since.

        Raises `SequencerError` if a later revision is stored already.
        """
        status, *rest = await self._run(
            SequencerVerb.STORE_GROUP,
            epoch,
            group,
            term,
            revision,
            state,
            protocol_type,
            ormsgpack.packb(snapshot),
        )
        if status == "older":
            raise SequencerError(
                f"revision {revision} of group {group!r} comes after revision {rest[0]}"
            )
        return self._is_owned(status, rest)

    async def forget_group(self, epoch: int, group: str, term: int) -> bool:
        """Delete everything that is stored of the group, and its term; may be repeated. Returns
        False if another coordinator has taken the group since."""
        status, *rest = await self._run(SequencerVerb.FORGET_GROUP, epoch, group, term)
        return self._is_owned(status, rest)

    def _is_owned(self, status: str, rest: list[str]) -> bool:
        if status not in ("ok", "not_coordinator"):
            raise_lost(status, rest)
        return bool(status == "ok")

    async def list_groups(self, epoch: int) -> list[GroupRow]:
        """The groups that were taken and not forgotten, sorted by id."""
        status, *rest = await self._run(SequencerVerb.LIST_GROUPS, epoch)
        if status != "ok":
            raise_lost(status, rest)
        (parts,) = rest
        return sorted(
            GroupRow(group, record["state"], record["protocol_type"], record["owner"])
            for group, record in zip(parts[::2], parts[1::2], strict=True)
            if record["term"] != NO_TERM
        )
