"""Consumer groups, as the sequencer stores them."""

from typing import NamedTuple


class GroupTakeover(NamedTuple):
    """The term of a group that this broker has taken. Only under `term` can the group be stored and
    its offsets committed.

    `revision` (0 at first) and `snapshot` are what was last stored. `open_tickets`: entries of
    earlier coordinators that are neither visible nor void; until `Position.open_tickets` has none
    of them, the group's offsets may still move."""

    term: int
    revision: int
    snapshot: bytes | None
    open_tickets: frozenset[int]


class GroupRow(NamedTuple):
    """A group as it was last stored; `owner` is the incarnation that took it. State and protocol
    type are '' where nothing was stored."""

    group: str
    state: str
    protocol_type: str
    owner: str
