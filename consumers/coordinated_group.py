"""A group that this broker coordinates, until another broker takes it.

Invariant: no answer contains what is not stored. Whatever is answered after a change waits until a
revision that has the change is stored, or until the group is lost: then it is never sent.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_forms import CLASSIC, CONSUMER, AnyGroup
from bucketlog.consumers.group_store import GroupSummary
from bucketlog.consumers.modern_group import ModernGroup
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.committed_offset import CommittedOffset

OnStored = Callable[[bool], None]
"""Called with True as soon as the answer may be sent, and with False if it may never be sent."""


class CoordinatedGroup:
    """A group that this broker holds. `term` is the number of its taking. `unsettled`: open tickets
    of earlier coordinators' offsets when the group was taken."""

    def __init__(self, group: AnyGroup, term: int, unsettled: frozenset[int] = frozenset()) -> None:
        self.group = group
        self.term = term
        self.unsettled = unsettled
        self.stored_revision = group.revision
        self.lost = False
        self.storing = False
        self.resolving = False
        """Whether the topics of regular expressions are being looked up."""
        self.users = 0
        """Number of requests that work with the group."""
        self.on_their_way: set[asyncio.Future[ErrorCode]] = set()
        """Commits that were let in and are not in the log yet, as far as is known."""
        self.promised: dict[TopicIdPartition, CommittedOffset] = {}
        """Offsets that were acknowledged before they were visible."""
        self._withheld: deque[tuple[int, OnStored]] = deque()
        self._listed: tuple[int, GroupSummary] | None = None

    def listed(self) -> GroupSummary:
        """Made once for each revision: thousands are asked for at once."""
        group = self.group
        if self._listed is None or self._listed[0] != group.revision:
            kind = CONSUMER if isinstance(group, ModernGroup) else CLASSIC
            row = GroupSummary(self.group_id, group.protocol_type or "", group.state, kind)
            self._listed = group.revision, row
        return self._listed[1]

    @property
    def group_id(self) -> str:
        return self.group.group_id

    @property
    def is_stored(self) -> bool:
        return self.stored_revision == self.group.revision

    @property
    def needs_storing(self) -> bool:
        """A dead group is forgotten instead."""
        return not (self.is_stored or self.lost or self.group.is_dead)

    @property
    def has_group_state(self) -> bool:
        """Whether the group has state besides committed offsets: it has members, or had some."""
        return (
            not self.group.is_empty
            or self.group.revision > 0
            or (isinstance(self.group, Group) and bool(self.group.machine.pending_joins))
            or bool(self.on_their_way)
        )

    def call_when_stored(self, tell: OnStored) -> None:
        if self.lost or (self.is_stored and not self._withheld):
            tell(not self.lost)
        else:
            self._withheld.append((self.group.revision, tell))

    def note_stored(self, revision: int) -> None:
        self.stored_revision = revision
        while self._withheld and self._withheld[0][0] <= revision:
            self._withheld.popleft()[1](True)

    def lose(self) -> None:
        """Note that another coordinator, or nobody, has the group."""
        self.lost = True
        while self._withheld:
            self._withheld.popleft()[1](False)

    async def stored(self) -> bool:
        """Wait until everything that the group is now is stored. Returns False if the group is lost
        before."""
        if self.is_stored and not self._withheld:
            return not self.lost
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.call_when_stored(lambda kept: None if done.done() else done.set_result(kept))
        return await done

    def show_promised(
        self, offsets: Mapping[TopicIdPartition, CommittedOffset]
    ) -> Mapping[TopicIdPartition, CommittedOffset]:
        """Return the `offsets` of the view, with those that were acknowledged and are not in the
        view yet."""
        for partition in [key for key, row in self.promised.items() if offsets.get(key) == row]:
            del self.promised[partition]
        return {**offsets, **self.promised} if self.promised else offsets
