"""Groups of this broker: those that it holds, those that it would take, those that keep offsets.

Invariant: the sequencer is asked once for the stored groups that are not held. Its answer stays
valid as long as no group is let go or lost, and the cluster's members are the same. Meanwhile, only
this broker changes its groups, and it takes them to do so.
"""

from collections.abc import Callable, Container, Iterable, Mapping

from kio.schema.errors import ErrorCode

from bucketlog.consumers.coordinated_group import CoordinatedGroup
from bucketlog.consumers.group_forms import CLASSIC, read_state
from bucketlog.consumers.group_messages import GroupState
from bucketlog.consumers.group_store import GroupStore, GroupSummary


class GroupListing:
    """`held` is the coordinator's own, as it is at each moment; `owns` as the coordinator's."""

    def __init__(
        self,
        store: GroupStore,
        epoch: int,
        held: Mapping[str, CoordinatedGroup],
        owns: Callable[[str], ErrorCode],
    ) -> None:
        self._store = store
        self._epoch = epoch
        self._held = held
        self._owns = owns
        self._stored: dict[str, GroupSummary] | None = None
        self._changes = 0

    def taken(self, group_id: str) -> None:
        self._changes += 1
        if self._stored is not None:
            self._stored.pop(group_id, None)

    def forget_stored(self) -> None:
        self._changes += 1
        self._stored = None

    async def rows(self, with_offsets: Iterable[str]) -> list[GroupSummary]:
        """Return a row for each group of this broker. Raises `SequencerError`."""
        stored = await self._others()
        simple = set(with_offsets)
        rows = [  # what is held is this broker's until it is resigned
            held.listed()
            for group_id, held in self._held.items()
            if group_id in simple or held.has_group_state
        ]
        others = [row for group_id, row in stored.items() if group_id not in self._held]
        simple.difference_update(self._held, stored)
        others += [
            GroupSummary(group_id, "", GroupState.EMPTY, CLASSIC) for group_id in sorted(simple)
        ]
        return rows + [row for row in others if self._owns(row.group_id) is ErrorCode.none]

    async def finder(
        self,
        refusal: Callable[[str], ErrorCode],
        has_offsets: Callable[[str], bool],
        being_taken: Container[str],
    ) -> Callable[[str], bool]:
        """A function that returns whether a group may exist, or is refused. The function reads only
        memory, because a request may name very many groups. Raises `SequencerError`."""
        stored = await self._others()
        return lambda group_id: (
            group_id in self._held
            or group_id in being_taken
            or group_id in stored
            or has_offsets(group_id)
            or refusal(group_id) is not ErrorCode.none
        )

    async def _others(self) -> dict[str, GroupSummary]:
        if self._stored is not None:
            return self._stored
        changes = self._changes
        listed = await self._store.list_groups(self._epoch)
        stored = {
            row.group: GroupSummary(row.group, row.protocol_type, *read_state(row.state))
            for row in listed
            if row.state and row.group not in self._held
        }
        if changes == self._changes:
            self._stored = stored
        return stored
