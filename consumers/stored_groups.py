"""What is stored of groups that this broker does not hold, for listings.

Invariant: it is asked for once and stays as long as no group is let go or lost and the cluster's
members are the same: only this broker changes its groups meanwhile, and it takes them to do so.
"""

from collections.abc import Container, Mapping

from consumers.group_messages import GroupState
from consumers.group_store import GroupStore, ListedGroup


class StoredGroups:
    def __init__(self, store: GroupStore, epoch: int) -> None:
        self._store = store
        self._epoch = epoch
        self._rows: dict[str, ListedGroup] | None = None
        self._changes = 0

    def taken(self, group_id: str) -> None:
        self._changes += 1
        if self._rows is not None:
            self._rows.pop(group_id, None)

    def forget(self) -> None:
        self._changes += 1
        self._rows = None

    async def rows(self, held: Container[str]) -> Mapping[str, ListedGroup]:
        """Raises `SequencerError`."""
        if self._rows is not None:
            return self._rows
        changes = self._changes
        listed = await self._store.list_groups(self._epoch)
        rows = {
            row.group: ListedGroup(row.group, row.protocol_type, GroupState(row.state))
            for row in listed
            if row.state and row.group not in held
        }
        if changes == self._changes:
            self._rows = rows
        return rows
