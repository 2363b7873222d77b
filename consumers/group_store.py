"""What is stored of groups, as the coordinator asks for it and tells of it."""

from typing import NamedTuple, Protocol

from consumers.group_messages import GroupState
from metadata.sequencer.requests import GroupRow, TakenGroup


class GroupStore(Protocol):
    """The sequencer's verbs for groups (metadata/sequencer/group_verbs.py)."""

    async def take_group(self, epoch: int, group: str, incarnation: str) -> TakenGroup: ...

    async def store_group(
        self,
        epoch: int,
        group: str,
        term: int,
        revision: int,
        state: str,
        protocol_type: str,
        snapshot: bytes,
    ) -> bool: ...

    async def forget_group(self, epoch: int, group: str, term: int) -> bool: ...

    async def list_groups(self, epoch: int) -> list[GroupRow]: ...


class ListedGroup(NamedTuple):
    """`protocol_type` is '' for a group that only keeps offsets."""

    group_id: str
    protocol_type: str
    state: GroupState
