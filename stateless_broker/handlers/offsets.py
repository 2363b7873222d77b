"""OffsetCommit, OffsetFetch, OffsetDelete.

Translators between Kafka's messages and committed offsets. Source: Kafka's messages of these
names, OffsetMetadataManager and KafkaApis; KIP-447 (stable offsets), KIP-496 (OffsetDelete),
KIP-709 (many groups at once), KIP-1188 (topic ids).

Invariant: a fetch shows the commits that its connection asked for before, as in Kafka, which takes
a connection's requests one after another; here later ones do not wait for a commit to be durable.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.model import TopicId, TopicPartition
from consumers.group_messages import Identity
from consumers.offsets import GroupOffsets
from metadata.facts import OffsetRow
from metadata.fold import CommittedOffset, Topic
from metadata.view import View
from stateless_broker.network.connection import Connection
from stateless_broker.network.dispatch import Request
from stateless_broker.network.in_turn import each_in_turn
from stateless_broker.network.messages import Values

NOTHING_COMMITTED = -1
TOPIC_IDS_FROM = 10
MANY_GROUPS_FROM = 8
ONE_ERROR_FROM = 2
GROUP_NOT_FOUND_FROM = 9
Offsets = Mapping[TopicPartition, CommittedOffset]


class OffsetsHandler:
    def __init__(self, *, offsets: GroupOffsets, view: View, metadata_bytes_max: int) -> None:
        self._offsets = offsets
        self._view = view
        self._metadata_bytes_max = metadata_bytes_max
        self._committing: dict[Connection, set[asyncio.Future[None]]] = {}
        """Commits under way, by who asked."""

    def _topic(self, entry: Any) -> tuple[Topic | None, ErrorCode]:
        """By id where the request goes by ids; the error for where it does not exist."""
        topic_id: UUID | None = getattr(entry, "topic_id", None)
        if topic_id is not None:
            found = self._view.topic_by_id(TopicId(topic_id.bytes))
            return found, ErrorCode.unknown_topic_id
        if not hasattr(entry, "name"):
            return None, ErrorCode.unknown_topic_id
        return self._view.topic(entry.name), ErrorCode.unknown_topic_or_partition

    # OffsetCommit ----------------------------------------------------------------------------

    async def commit(self, request: Request, message: Any) -> Values:
        version = request.header.api_version
        rows: list[OffsetRow] = []
        errors = [
            [self._check(entry, each, rows) for each in entry.partitions]
            for entry in message.topics
        ]
        outcome = ErrorCode.none
        if rows:
            with self._under_way(request.connection):
                outcome = await self._commit(message, rows, version)
        return {
            "topics": [
                {
                    **_name_of(entry),
                    "partitions": [
                        {
                            "partition_index": each.partition_index,
                            "error_code": outcome if error is ErrorCode.none else error,
                        }
                        for each, error in zip(entry.partitions, found, strict=True)
                    ],
                }
                for entry, found in zip(message.topics, errors, strict=True)
            ]
        }

    @contextmanager
    def _under_way(self, connection: Connection) -> Iterator[None]:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mine = self._committing.setdefault(connection, set())
        mine.add(over)
        try:
            yield
        finally:
            over.set_result(None)
            mine.discard(over)
            if not mine:
                del self._committing[connection]

    def _check(self, entry: Any, wanted: Any, rows: list[OffsetRow]) -> ErrorCode:
        """Adds a row where the partition and the metadata are as they have to be."""
        topic, missing = self._topic(entry)
        if topic is None:
            return missing
        if not 0 <= wanted.partition_index < topic.partitions:
            return ErrorCode.unknown_topic_or_partition
        text = wanted.committed_metadata or ""
        if len(text.encode()) > self._metadata_bytes_max:
            return ErrorCode.offset_metadata_too_large
        leader_epoch = getattr(wanted, "committed_leader_epoch", -1)
        topic_id = UUID(bytes=topic.topic_id)
        rows.append(
            OffsetRow(topic_id, wanted.partition_index, wanted.committed_offset, leader_epoch, text)
        )
        return ErrorCode.none

    async def _commit(self, message: Any, rows: Sequence[OffsetRow], version: int) -> ErrorCode:
        identity = Identity(
            message.member_id,
            message.generation_id_or_member_epoch,
            getattr(message, "group_instance_id", None),
        )
        retention = getattr(message, "retention_time", None)
        retention_ms = None if retention is None else round(retention.total_seconds() * 1000)
        if retention_ms is not None and retention_ms < 0:
            retention_ms = None
        error = await self._offsets.commit(
            message.group_id, identity, rows, retention_ms=retention_ms
        )
        if error is ErrorCode.group_id_not_found and version < GROUP_NOT_FOUND_FROM:
            return ErrorCode.illegal_generation
        return error

    # OffsetFetch -----------------------------------------------------------------------------

    async def fetch(self, request: Request, message: Any) -> Values:
        stable = getattr(message, "require_stable", False)
        if before := self._committing.get(request.connection):
            await asyncio.wait(set(before))
        if request.header.api_version >= MANY_GROUPS_FROM:
            first = {each.group_id: each for each in reversed(message.groups)}
            found = await each_in_turn(
                lambda each: (
                    self._fetch(each, stable)
                    if first[each.group_id] is each
                    else _refused_again(each.group_id)
                ),
                message.groups,
            )
            return {"groups": found}
        found_here = await self._fetch(message, stable)
        error = found_here["error_code"]
        if error is not ErrorCode.none and request.header.api_version < ONE_ERROR_FROM:
            return {"topics": _all_failed(message.topics or (), error)}
        return found_here

    async def _fetch(self, wanted: Any, stable: bool) -> Values:
        """An answer for one group; its fields fit both forms of the response."""
        found = await self._offsets.fetch(wanted.group_id, require_stable=stable)
        if isinstance(found, ErrorCode):
            return {"group_id": wanted.group_id, "error_code": found, "topics": ()}
        if wanted.topics is None:
            topics = self._all(found)
        else:
            topics = [self._of_topic(entry, found) for entry in wanted.topics]
        return {"group_id": wanted.group_id, "error_code": ErrorCode.none, "topics": topics}

    def _all(self, found: Offsets) -> list[Values]:
        by_topic: dict[TopicId, list[Values]] = {}
        for (topic_id, number), row in sorted(found.items()):
            by_topic.setdefault(topic_id, []).append(_fetched(number, row))
        return [
            {"name": name, "topic_id": UUID(bytes=topic_id), "partitions": rows}
            for topic_id, rows in by_topic.items()
            if (name := self._view.topic_name(topic_id)) is not None
        ]

    def _of_topic(self, entry: Any, found: Offsets) -> Values:
        topic, missing = self._topic(entry)
        error = ErrorCode.none
        if topic is None and missing is ErrorCode.unknown_topic_id:
            error = missing
        rows = [
            _fetched(
                number,
                found.get(TopicPartition(topic.topic_id, number)) if topic is not None else None,
                error,
            )
            for number in entry.partition_indexes
        ]
        return {**_name_of(entry), "partitions": rows}

    # OffsetDelete ----------------------------------------------------------------------------

    async def delete(self, request: Request, message: Any) -> Values:
        if not message.group_id:
            return {"error_code": ErrorCode.invalid_group_id, "topics": ()}
        wanted = [
            TopicPartition(topic.topic_id, each.partition_index)
            for entry in message.topics
            if (topic := self._view.topic(entry.name)) is not None
            for each in entry.partitions
            if 0 <= each.partition_index < topic.partitions
        ]
        outcome = await self._offsets.delete(message.group_id, wanted)
        if isinstance(outcome, ErrorCode):
            return {"error_code": outcome, "topics": ()}
        errors = dict(zip(wanted, outcome, strict=True))
        return {
            "error_code": ErrorCode.none,
            "topics": [
                {"name": entry.name, "partitions": self._deleted(entry, errors)}
                for entry in message.topics
            ],
        }

    def _deleted(self, entry: Any, errors: Mapping[TopicPartition, ErrorCode]) -> list[Values]:
        topic, missing = self._topic(entry)
        topic_id = TopicId(b"") if topic is None else topic.topic_id
        return [
            {
                "partition_index": each.partition_index,
                "error_code": errors.get(TopicPartition(topic_id, each.partition_index), missing),
            }
            for each in entry.partitions
        ]


async def _refused_again(group_id: str) -> Values:
    """A group that the request has named before: a small request could ask for a vast answer."""
    return {"group_id": group_id, "error_code": ErrorCode.invalid_request, "topics": ()}


def _name_of(entry: Any) -> Values:
    """As the topic is named in the request."""
    if hasattr(entry, "name"):
        return {"name": entry.name}
    return {"topic_id": entry.topic_id}


def _fetched(number: int, row: CommittedOffset | None, error: ErrorCode = ErrorCode.none) -> Values:
    return {
        "partition_index": number,
        "committed_offset": NOTHING_COMMITTED if row is None else row.offset,
        "committed_leader_epoch": -1 if row is None else row.leader_epoch,
        "metadata": "" if row is None else row.metadata,
        "error_code": error,
    }


def _all_failed(topics: Iterable[Any], error: ErrorCode) -> list[Values]:
    """Version 1 has an error for each partition alone."""
    return [
        {
            **_name_of(entry),
            "partitions": [_fetched(number, None, error) for number in entry.partition_indexes],
        }
        for entry in topics
    ]
