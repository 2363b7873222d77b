"""The answers that clients of a log got: the types of a history. `tests.models.promises` judges it.

A history is of one topic. All times are of one clock, whichever it is. The time of an answer is
taken after the client got it, the time of a request before the client sent it.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kio.schema.errors import ErrorCode


class Sent(NamedTuple):
    """A record by its producer's name and its number there; a producer sends 0, 1, 2, … to each
    partition in rising order."""

    producer: str
    number: int


class Place(NamedTuple):
    partition: int
    offset: int


Rows = Sequence[tuple[int, Sent]]
"""Offset and record, as a reader got them."""

Log = Mapping[int, Rows]
"""By partition."""


class Acknowledged(NamedTuple):
    sent: Sent
    place: Place
    at: float


class Refused(NamedTuple):
    """The answer to a record's only try, or to its last one where none before went unanswered."""

    sent: Sent
    error: ErrorCode
    at: float


class Read(NamedTuple):
    """`rows` are all that a reader was shown from offset `first` on, in its order; it asked from
    `began` on. `to_end`: it read until it was told that there is no more, and must have been shown
    what was acknowledged before; else the rows end where they end."""

    reader: str
    partition: int
    first: int
    rows: Rows
    began: float
    to_end: bool = False


class Seen(NamedTuple):
    """An offset that may not go back: a high watermark, or the position of a consumer. Those of one
    observer come in the order in which it saw them; who may begin again has another name then."""

    observer: str
    partition: int
    offset: int


class EndSeen(NamedTuple):
    """A broker's answer to a request for a partition's latest offset, sent at `began` or later."""

    observer: str
    partition: int
    offset: int
    began: float


class Commit(NamedTuple):
    """A group's offset was committed, and its member was told so."""

    group: str
    partition: int
    offset: int
    at: float


class CommittedSeen(NamedTuple):
    """A group's committed offset, -1 for none, as it was fetched from `began` to `at`."""

    group: str
    partition: int
    offset: int
    began: float
    at: float


NOTHING_APPENDED = frozenset(
    {
        ErrorCode.not_enough_replicas,
        ErrorCode.out_of_order_sequence_number,
        ErrorCode.unknown_producer_id,
        ErrorCode.invalid_producer_epoch,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.policy_violation,
        ErrorCode.corrupt_message,
        ErrorCode.message_too_large,
        ErrorCode.invalid_record,
        ErrorCode.invalid_topic_exception,
        ErrorCode.unsupported_for_message_format,
    }
)
"""Definite failures. A record of an aborted transaction will count as refused, too: if a
`read_committed` reader gets it (Adya's G1a), `Rule.ABORTED_THEN_SEEN` is broken. A timeout,
NOT_ENOUGH_REPLICAS_AFTER_APPEND, a broken connection and an unknown server error are not definite:
the record may appear, now or later."""


@dataclass(slots=True)
class History:
    """The answers that clients got. Appending is atomic, so threads may share a history. The
    producers in `not_idempotent` may have records more than once and out of order. `resets` say
    which consumer found no offset from which to continue, and where. `invoked` says when each
    record was handed to its client, by producer and number: all records of a producer, or none.
    `seals` are the times at which chains were sealed; None if the run did not look for seals."""

    acknowledged: list[Acknowledged] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    high_watermarks: list[Seen] = field(default_factory=list)
    ends: list[EndSeen] = field(default_factory=list)
    positions: list[Seen] = field(default_factory=list)
    resets: list[str] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    committed_seen: list[CommittedSeen] = field(default_factory=list)
    not_idempotent: set[str] = field(default_factory=set)
    invoked: dict[str, "array[float]"] = field(default_factory=dict)
    seals: list[float] | None = None

    def invoke(self, sent: Sent, at: float) -> None:
        """A record is handed to its client; its producer's records come in their order."""
        times = self.invoked.setdefault(sent.producer, array("d"))
        assert len(times) == sent.number, f"{sent} after {len(times)} records"
        times.append(at)
