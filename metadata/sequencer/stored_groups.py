"""Consumer groups, as the sequencer stores them."""

from typing import NamedTuple


class GroupTakeover(NamedTuple):
    """The term of a group that this broker has taken. The broker stores the group and commits its
    offsets only under `term`.

    `revision` and `snapshot` are those that were last stored; `revision` is 0 at first.
    `open_tickets`: entries of earlier coordinators that are neither visible nor void. As long as
    `Position.open_tickets` has any of these, the group's offsets may still move."""

    term: int
    revision: int
    snapshot: bytes | None
    open_tickets: frozenset[int]


class GroupRow(NamedTuple):
    """A group as it was last stored. `owner` is the incarnation of the broker that took the group.
    `state` and `protocol_type` are '' if nothing was stored."""

    group: str
    state: str
    protocol_type: str
    owner: str
