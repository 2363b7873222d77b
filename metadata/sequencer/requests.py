"""What the sequencer is asked and what it answers, as values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from bucketlog.model import SegmentId, Ticket, TopicId
from metadata.fold import LogState


class BatchStatus(StrEnum):
    """OK and DUPLICATE carry the base offset. OPEN: a duplicate of a batch whose outcome is not
    known yet; WAIT: built on another writer's pending one. Both are asked again."""

    OK = "ok"
    DUPLICATE = "duplicate"
    OPEN = "open"
    WAIT = "wait"
    OUT_OF_ORDER = "out_of_order"
    UNKNOWN_PRODUCER = "unknown_producer"
    FENCED = "fenced"
    UNKNOWN_TOPIC = "unknown_topic"
    OFFSET_LIMIT = "offset_limit"


class ControlStatus(StrEnum):
    OK = "ok"
    WAIT = "wait"
    EXISTS = "exists"
    UNKNOWN_TOPIC = "unknown_topic"
    INVALID_PARTITIONS = "invalid_partitions"


class PublishStatus(StrEnum):
    VISIBLE = "visible"
    DECIDED = "decided"
    ALREADY = "already"
    VOID = "void"


class WantedBatch(NamedTuple):
    """`producer_id` is decimal text, '' without idempotence: Lua's numbers are doubles."""

    record_count: int
    producer_id: str
    producer_epoch: int
    base_sequence: int


@dataclass(slots=True)
class WantedPartition:
    topic_name: str
    topic_id: TopicId
    partition: int
    batches: list[WantedBatch] = field(default_factory=list)


class WantedControl(NamedTuple):
    """`verb`: create, delete or grow; `partitions` is the new total (0 for delete)."""

    verb: str
    topic_name: str
    topic_id: TopicId
    partitions: int


class BatchAnswer(NamedTuple):
    status: BatchStatus
    base_offset: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """Answers stand in the order of the request. `ticket` is None where nothing was accepted:
    the writer's seq is then not used. `hw_stamps`: -1 where a partition got nothing."""

    ticket: Ticket | None
    low_ticket: int
    hw_stamps: Sequence[int]
    batches: Sequence[Sequence[BatchAnswer]]
    control: Sequence[ControlStatus]


class Identity(NamedTuple):
    """Which server, with which data. `run_id` alone is not enough (commit protocol, "Words")."""

    run_id: str
    master_replid: str
    role: str


class VisibleSegment(NamedTuple):
    """One entry of the stream; its number is dense within an epoch. `footer` has the trailer."""

    epoch: int
    number: int
    segment: SegmentId
    ticket: Ticket
    footer: bytes
    object_size_bytes: int


class OtherBroker(NamedTuple):
    incarnation: str
    heartbeat_age_ms: int


@dataclass(frozen=True, slots=True)
class Activation:
    """A claimed epoch, ready to be loaded: the fold of everything committed before it."""

    epoch: int
    nonce: str
    identity: Identity
    state: LogState
