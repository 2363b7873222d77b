"""The facts of the log: what control entries say, and how they are written.

A fact is a small pydantic model; its payload is that model as UTF-8 JSON, so that anyone with
bucket access can read it. Unknown fields are kept out (a newer writer raises `version`); an
unknown kind stops the fold unless its skip bit is set.
"""

from enum import IntEnum
from typing import Annotated, Literal, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import FactEntry, TopicId, TopicIdPartition

SKIP_BIT = 0x8000
VERSION = 1


class FactKind(IntEnum):
    TOPIC_CREATED = 1
    TOPIC_DELETED = 2
    PARTITIONS_ADDED = 3
    OFFSETS_COMMITTED = 4
    OFFSETS_FORGOTTEN = 5
    TOPIC_CONFIGURED = 6
    TIERS_SWAPPED = 7
    LOG_STARTS_MOVED = 8
    TIERS_SWEPT = 9


GROUP_KINDS = frozenset({FactKind.OFFSETS_COMMITTED, FactKind.OFFSETS_FORGOTTEN})
"""What only those read who answer for consumer groups."""


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class TopicCreated(_Fact):
    """`configs` holds only what was set at creation, as text, by Kafka's names."""

    kind: Literal[FactKind.TOPIC_CREATED] = Field(FactKind.TOPIC_CREATED, exclude=True)
    topic_id: UUID
    name: str
    partitions: Annotated[int, Field(ge=1)]
    configs: dict[str, str] = {}


class TopicDeleted(_Fact):
    kind: Literal[FactKind.TOPIC_DELETED] = Field(FactKind.TOPIC_DELETED, exclude=True)
    topic_id: UUID
    name: str


class PartitionsAdded(_Fact):
    """`partitions` is the new total."""

    kind: Literal[FactKind.PARTITIONS_ADDED] = Field(FactKind.PARTITIONS_ADDED, exclude=True)
    topic_id: UUID
    name: str
    partitions: Annotated[int, Field(ge=1)]


class TopicConfigured(_Fact):
    """What is set from now on, None for what is not any more; with `replaces_all` all else is not,
    either. Changes of different names by different brokers do not undo one another."""

    kind: Literal[FactKind.TOPIC_CONFIGURED] = Field(FactKind.TOPIC_CONFIGURED, exclude=True)
    topic_id: UUID
    name: str
    configs: dict[str, str | None]
    replaces_all: bool = False


class OffsetRow(NamedTuple):
    """`leader_epoch` is -1 where the consumer named none; `metadata` is the consumer's own text."""

    topic_id: UUID
    partition: Annotated[int, Field(ge=0)]
    offset: int
    leader_epoch: int
    metadata: str


class PartitionRow(NamedTuple):
    topic_id: UUID
    partition: Annotated[int, Field(ge=0)]


class OffsetsCommitted(_Fact):
    """One accepted OffsetCommit of a group. Whoever commits has seen the topics, so that their
    creation comes before; a deletion may come between. `expires_ms`: when the rows may be forgotten
    where the client asked for a time of its own (OffsetCommit 2 to 4)."""

    kind: Literal[FactKind.OFFSETS_COMMITTED] = Field(FactKind.OFFSETS_COMMITTED, exclude=True)
    group: str
    committed_ms: int
    expires_ms: int | None = None
    offsets: tuple[OffsetRow, ...]


class OffsetsForgotten(_Fact):
    """Committed offsets of a group that expired or were deleted; without `partitions` all."""

    kind: Literal[FactKind.OFFSETS_FORGOTTEN] = Field(FactKind.OFFSETS_FORGOTTEN, exclude=True)
    group: str
    partitions: tuple[PartitionRow, ...] | None = None


class TierRowPayload(NamedTuple):
    """An object of a partition: `TierRow`, in its order."""

    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    name: str
    manifest: bool
    size_bytes: Annotated[int, Field(ge=0)]
    batch_bytes: Annotated[int, Field(ge=0)]
    max_timestamp_ms: int
    segments: Annotated[int, Field(ge=1)]


class SwapPayload(NamedTuple):
    """A partition's part of a job: what stands in its tier from now on (`metadata.tier.Swap`).
    `removed` are segments, by start and name, which a replaced manifest listed and nothing lists
    any more."""

    topic_id: UUID
    partition: Annotated[int, Field(ge=0)]
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    replaced: tuple[str, ...]
    added: tuple[TierRowPayload, ...]
    removed: tuple[tuple[int, str], ...] = ()
    cleaned_to: int = -1


class LogStartPayload(NamedTuple):
    topic_id: UUID
    partition: Annotated[int, Field(ge=0)]
    log_start: Annotated[int, Field(ge=0)]


def partition_of(row: OffsetRow | PartitionRow | SwapPayload | LogStartPayload) -> TopicIdPartition:
    return TopicIdPartition(TopicId(row.topic_id.bytes), row.partition)


class TiersSwapped(_Fact):
    """A job's end: compaction of log segments, merging, key compaction, manifests. `planned`: the
    highest epoch and ticket that was visible when the job was planned; its objects' names have it.
    Each partition's part counts by itself, if what it was planned on still stands
    (`metadata.tier`). Of a part that does not count, the objects are nobody's."""

    kind: Literal[FactKind.TIERS_SWAPPED] = Field(FactKind.TIERS_SWAPPED, exclude=True)
    planned: tuple[int, int]
    swaps: tuple[SwapPayload, ...]


class LogStartsMoved(_Fact):
    """By retention or DeleteRecords. A log start never goes back, nor beyond what was visible to
    whoever moved it."""

    kind: Literal[FactKind.LOG_STARTS_MOVED] = Field(FactKind.LOG_STARTS_MOVED, exclude=True)
    partitions: tuple[LogStartPayload, ...]


class TiersSwept(_Fact):
    """Objects that left a tier below that epoch and ticket are deleted; jobs that were planned
    below it are over: none of their swaps counts from now on."""

    kind: Literal[FactKind.TIERS_SWEPT] = Field(FactKind.TIERS_SWEPT, exclude=True)
    below: tuple[int, int]


TopicFact: TypeAlias = TopicCreated | TopicDeleted | PartitionsAdded | TopicConfigured
GroupFact: TypeAlias = OffsetsCommitted | OffsetsForgotten
TierFact: TypeAlias = TiersSwapped | LogStartsMoved | TiersSwept
Fact: TypeAlias = TopicFact | GroupFact | TierFact

_MODELS: dict[int, type[TopicFact] | type[GroupFact] | type[TierFact]] = {
    FactKind.TOPIC_CREATED: TopicCreated,
    FactKind.TOPIC_DELETED: TopicDeleted,
    FactKind.PARTITIONS_ADDED: PartitionsAdded,
    FactKind.OFFSETS_COMMITTED: OffsetsCommitted,
    FactKind.OFFSETS_FORGOTTEN: OffsetsForgotten,
    FactKind.TOPIC_CONFIGURED: TopicConfigured,
    FactKind.TIERS_SWAPPED: TiersSwapped,
    FactKind.LOG_STARTS_MOVED: LogStartsMoved,
    FactKind.TIERS_SWEPT: TiersSwept,
}


def encode_fact(fact: Fact) -> FactEntry:
    return FactEntry(fact.kind, VERSION, fact.model_dump_json().encode())


def decode_fact(entry: FactEntry) -> Fact | None:
    """None for a kind that may be skipped. Raises `InvalidDataError`."""
    model = _MODELS.get(entry.kind)
    if model is None and entry.kind & SKIP_BIT:
        return None
    if model is None or entry.version > VERSION:
        raise InvalidDataError(
            f"the log holds a fact of kind {entry.kind} version {entry.version}",
            remedy="a newer bucketlog wrote it: upgrade this one",
        )
    try:
        return model.model_validate_json(entry.payload)
    except ValidationError as error:
        raise InvalidDataError(f"a fact {model.__name__} does not decode: {error}") from error


def topic_id_of(fact: TopicFact) -> TopicId:
    return TopicId(fact.topic_id.bytes)
