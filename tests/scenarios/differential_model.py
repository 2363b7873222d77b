"""Steps of a sequence, and what they refer to. Pure.

Invariant: a step has nothing that only one broker knows. Producer ids, member ids, generations and
topic ids are references, which each broker's side resolves.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bucketlog.log_format.wire.api_keys import ApiKey

LOGGED_IN = "ann"
"""Sends as a user that has the rights of ACLs."""
PLAIN = "None"
"""Owns the producer id that InitProducerId without a transactional id gives."""


class Batch(NamedTuple):
    """Records to produce. `owner`: the transactional id whose producer sends them; None: no
    producer id."""

    values: tuple[str, ...]
    has_keys: bool
    owner: str | None = None
    sequence: int = 0
    is_transactional: bool = True


class OwnedBy(NamedTuple):
    """The producer id or epoch of a transactional id, `part` 0 or 1."""

    owner: str
    part: int


class TopicId(NamedTuple):
    topic: str


class MemberId(NamedTuple):
    """The id that the broker chose for a classic member."""

    group: str
    alias: str


class Generation(NamedTuple):
    group: str


class MemberEpoch(NamedTuple):
    """Of a member of the consumer protocol, which chooses its id."""

    group: str
    member: str


Reference = OwnedBy | TopicId | MemberId | Generation | MemberEpoch


class Step(NamedTuple):
    """`by`: the sender; each has a connection. `others`: requests without which this one is not
    answered, such as the JoinGroup requests of the other members."""

    api: ApiKey
    version: int
    values: Mapping[str, Any]
    by: str = ""
    others: tuple["Step", ...] = ()
