"""The facts of the log: what control entries say, and how they are written.

A fact is a small pydantic model; its payload is that model as UTF-8 JSON, so that anyone with
bucket access can read it. Unknown fields are kept out (a newer writer raises `version`); an
unknown kind stops the fold unless its skip bit is set.
"""

from enum import IntEnum
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bucketlog.errors import InvalidDataError
from bucketlog.model import ControlEntry, TopicId

SKIP_BIT = 0x8000
VERSION = 1


class FactKind(IntEnum):
    TOPIC_CREATED = 1
    TOPIC_DELETED = 2
    PARTITIONS_ADDED = 3


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


Fact: TypeAlias = TopicCreated | TopicDeleted | PartitionsAdded

_MODELS: dict[int, type[TopicCreated] | type[TopicDeleted] | type[PartitionsAdded]] = {
    FactKind.TOPIC_CREATED: TopicCreated,
    FactKind.TOPIC_DELETED: TopicDeleted,
    FactKind.PARTITIONS_ADDED: PartitionsAdded,
}


def encode_fact(fact: Fact) -> ControlEntry:
    return ControlEntry(fact.kind, VERSION, fact.model_dump_json().encode())


def decode_fact(entry: ControlEntry) -> Fact | None:
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
        raise InvalidDataError(f"a {model.__name__} fact does not decode: {error}") from error


def topic_id_of(fact: Fact) -> TopicId:
    return TopicId(fact.topic_id.bytes)
