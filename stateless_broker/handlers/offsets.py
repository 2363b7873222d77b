"""OffsetCommit, OffsetFetch, OffsetDelete.

Translators between Kafka's messages and committed offsets. Source: Kafka's messages of these
names, OffsetMetadataManager and KafkaApis; KIP-447 (stable offsets), KIP-496 (OffsetDelete),
KIP-709 (many groups at once), KIP-1188 (topic ids).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_forms import ADMINISTRATOR, FetchingMember
from bucketlog.consumers.group_messages import CallerIdentity, FetchedOffsets
from bucketlog.consumers.offsets import GroupOffsets
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from bucketlog.log_format.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
)
from bucketlog.log_format.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from bucketlog.log_format.wire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.committed_offset import CommittedOffset
from bucketlog.metadata.facts import OffsetRow
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.bounded_gather import each_in_turn
from bucketlog.stateless_broker.network.turns import Turns

NOTHING_COMMITTED = -1
UNITS_A_ROW = 2
TOPIC_IDS_FROM = 10
MANY_GROUPS_FROM = 8
ONE_ERROR_FROM = 2
GROUP_NOT_FOUND_FROM = 9
_Wanted: TypeAlias = OffsetFetchRequestTopic | OffsetFetchRequestTopics
"""The topic's entry in a request: the first type is before version 8, the second from version 8
on."""
_Named: TypeAlias = str | UUID | None
"""A topic by name, or by id in requests that go by ids (None: the id that is all zeros)."""


class OffsetsHandler:
    def __init__(
        self, *, offsets: GroupOffsets, view: View, metadata_bytes_max: int, turns: Turns
    ) -> None:
        self._turns = turns
        self._offsets = offsets
        self._view = view
        self._metadata_bytes_max = metadata_bytes_max

    def _topic(self, named: _Named) -> tuple[TopicState | None, ErrorCode]:
        """Return the topic. `error` is for a topic that does not exist."""
        if isinstance(named, str):
            return self._view.topic(named), ErrorCode.unknown_topic_or_partition
        topic = None if named is None else self._view.topic_by_id(TopicId(named.bytes))
        return topic, ErrorCode.unknown_topic_id

    # OffsetCommit ----------------------------------------------------------------------------

    async def commit(self, request: Request, message: OffsetCommitRequest) -> OffsetCommitResponse:
        version = request.header.api_version
        rows: dict[TopicIdPartition, OffsetRow] = {}
        errors: list[list[ErrorCode]] = []
        await self._turns.work(self._check_all(message, version, rows, errors, request.access))
        outcome = ErrorCode.none
        if rows:
            outcome = await self._commit(message, list(rows.values()), version)
        topics: list[OffsetCommitResponseTopic] = []

        def steps() -> Iterator[int]:
            for entry, found in zip(message.topics, errors, strict=True):
                partitions: list[OffsetCommitResponsePartition] = []
                topics.append(
                    {"name": entry.name, "topic_id": entry.topic_id, "partitions": partitions}
                )
                for each, error in zip(entry.partitions, found, strict=True):
                    code = outcome if error is ErrorCode.none else error
                    partitions.append({"partition_index": each.partition_index, "error_code": code})
                    yield 1

        await self._turns.work(steps())
        return {"topics": topics}

    def _check_all(
        self,
        message: OffsetCommitRequest,
        version: int,
        rows: dict[TopicIdPartition, OffsetRow],
        errors: list[list[ErrorCode]],
        access: Access,
    ) -> Iterator[int]:
        """Fill `rows` and `errors`, step by step."""
        may_commit = access.may_group(AclOperation.READ, message.group_id)
        for entry in message.topics:
            named, found = _named(entry, version), list[ErrorCode]()
            errors.append(found)
            denied = None if may_commit else ErrorCode.group_authorization_failed
            if may_commit and not self._may(AclOperation.READ, named, access):
                denied = ErrorCode.topic_authorization_failed
            for each in entry.partitions:
                found.append(denied or self._check(named, each, rows))
                yield UNITS_A_ROW

    def _may(self, operation: AclOperation, named: _Named, access: Access) -> bool:
        """Return whether the requester may do the operation on the topic. True for an id that no
        topic has: there is no name that a rule could be about."""
        if not isinstance(named, str):
            topic, _ = self._topic(named)
            if topic is None:
                return True
            named = topic.name
        return access.may_topic(operation, named)

    def _check(
        self,
        named: _Named,
        wanted: OffsetCommitRequestPartition,
        rows: dict[TopicIdPartition, OffsetRow],
    ) -> ErrorCode:
        """Add a row if the partition and the metadata are valid. If a request names a partition
        twice, only the last offset counts, as in Kafka."""
        topic, missing = self._topic(named)
        row = checked_row(
            topic, wanted, missing=missing, metadata_bytes_max=self._metadata_bytes_max
        )
        if topic is None or isinstance(row, ErrorCode):
            return row if isinstance(row, ErrorCode) else missing
        rows[TopicIdPartition(topic.topic_id, wanted.partition_index)] = row
        return ErrorCode.none

    async def _commit(
        self, message: OffsetCommitRequest, rows: Sequence[OffsetRow], version: int
    ) -> ErrorCode:
        epoch = message.generation_id_or_member_epoch
        identity = CallerIdentity(message.member_id, epoch, message.group_instance_id)
        retention_ms = round(message.retention_time.total_seconds() * 1000)
        error = await self._offsets.commit(
            message.group_id,
            identity,
            rows,
            retention_ms=None if retention_ms < 0 else retention_ms,
            knows_epochs=version >= GROUP_NOT_FOUND_FROM,
        )
        if error is ErrorCode.group_id_not_found and version < GROUP_NOT_FOUND_FROM:
            return ErrorCode.illegal_generation
        return error

    # OffsetFetch -----------------------------------------------------------------------------

    async def fetch(self, request: Request, message: OffsetFetchRequest) -> OffsetFetchResponse:
        version, stable = request.header.api_version, message.require_stable
        access = request.access
        if version >= MANY_GROUPS_FROM:
            first = {each.group_id: each for each in reversed(message.groups)}
            found = await each_in_turn(
                lambda each: (
                    self._fetch(each.group_id, each.topics, version, stable, access, _by(each))
                    if first[each.group_id] is each
                    else _refused_again(each.group_id)
                ),
                message.groups,
            )
            return {"groups": found}
        group = await self._fetch(message.group_id, message.topics, version, stable, access)
        error = group["error_code"]
        if error is not ErrorCode.none and version < ONE_ERROR_FROM:
            return {"topics": _all_failed(message.topics or (), error)}
        return {
            "error_code": error,
            "topics": [
                {"name": topic["name"], "partitions": topic["partitions"]}
                for topic in group["topics"]
            ],
        }

    async def _fetch(
        self,
        group_id: str,
        wanted: Sequence[_Wanted] | None,
        version: int,
        stable: bool,
        access: Access,
        by: FetchingMember = ADMINISTRATOR,
    ) -> OffsetFetchResponseGroup:
        """Fetch the group's offsets; None as `wanted` means all topics that have offsets."""
        if not access.may_group(AclOperation.DESCRIBE, group_id):
            denied = ErrorCode.group_authorization_failed
            return {"group_id": group_id, "error_code": denied, "topics": ()}
        found = await self._offsets.fetch(group_id, require_stable=stable, by=by)
        if isinstance(found, ErrorCode):
            return {"group_id": group_id, "error_code": found, "topics": ()}
        if wanted is None:
            topics = self._all(found, access)
        else:
            topics = [self._of_topic(entry, version, found, access) for entry in wanted]
        return {"group_id": group_id, "error_code": ErrorCode.none, "topics": topics}

    def _all(self, found: FetchedOffsets, access: Access) -> list[OffsetFetchResponseTopics]:
        by_topic, quiet = dict[TopicId, list[OffsetFetchResponsePartitions]](), access.quiet
        for partition, row in sorted(found.committed.items()):
            rows = by_topic.setdefault(partition.topic_id, [])
            rows.append(_stable(partition, row, found.pending))
        return [
            {"name": name, "topic_id": UUID(bytes=topic_id), "partitions": rows}
            for topic_id, rows in by_topic.items()
            if (name := self._view.topic_name(topic_id)) is not None
            and quiet.may_topic(AclOperation.DESCRIBE, name)
        ]

    def _of_topic(
        self, entry: _Wanted, version: int, found: FetchedOffsets, access: Access
    ) -> OffsetFetchResponseTopics:
        named = _named(entry, version)
        topic, missing = self._topic(named)
        if not self._may(AclOperation.DESCRIBE, named, access):
            denied = ErrorCode.topic_authorization_failed
            rows = [_fetched(number, None, denied) for number in entry.partition_indexes]
        elif topic is None:
            error = missing if missing is ErrorCode.unknown_topic_id else ErrorCode.none
            rows = [_fetched(number, None, error) for number in entry.partition_indexes]
        else:
            here = (TopicIdPartition(topic.topic_id, each) for each in entry.partition_indexes)
            rows = [_stable(each, found.committed.get(each), found.pending) for each in here]
        return {"name": entry.name, "topic_id": _topic_id(entry), "partitions": rows}

    # OffsetDelete ----------------------------------------------------------------------------

    async def delete(self, request: Request, message: OffsetDeleteRequest) -> OffsetDeleteResponse:
        access = request.access
        if not access.may_group(AclOperation.DELETE, message.group_id):
            return {"error_code": ErrorCode.group_authorization_failed, "topics": ()}
        if not message.group_id:
            return {"error_code": ErrorCode.invalid_group_id, "topics": ()}
        readable = {
            entry.name
            for entry in message.topics
            if access.may_topic(AclOperation.READ, entry.name)
        }
        wanted = [
            TopicIdPartition(topic.topic_id, each.partition_index)
            for entry in message.topics
            if entry.name in readable and (topic := self._view.topic(entry.name)) is not None
            for each in entry.partitions
            if 0 <= each.partition_index < topic.partitions
        ]
        outcome = await self._offsets.delete(message.group_id, wanted, by=request.author)
        if isinstance(outcome, ErrorCode):
            return {"error_code": outcome, "topics": ()}
        errors = dict(zip(wanted, outcome, strict=True))
        return {
            "error_code": ErrorCode.none,
            "topics": [
                {"name": entry.name, "partitions": self._deleted(entry, errors, readable)}
                for entry in message.topics
            ],
        }

    def _deleted(
        self,
        entry: OffsetDeleteRequestTopic,
        errors: Mapping[TopicIdPartition, ErrorCode],
        readable: Set[str],
    ) -> list[OffsetDeleteResponsePartition]:
        topic, missing = self._topic(entry.name)
        if entry.name not in readable:
            missing = ErrorCode.topic_authorization_failed
        topic_id = TopicId(b"") if topic is None else topic.topic_id
        return [
            {
                "partition_index": each.partition_index,
                "error_code": errors.get(TopicIdPartition(topic_id, each.partition_index), missing),
            }
            for each in entry.partitions
        ]


def checked_row(
    topic: TopicState | None,
    wanted: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition,
    *,
    missing: ErrorCode,
    metadata_bytes_max: int,
) -> OffsetRow | ErrorCode:
    """The row, or why the offset cannot be committed; `missing` if there is no topic."""
    if topic is None:
        return missing
    if not 0 <= wanted.partition_index < topic.partitions:
        return ErrorCode.unknown_topic_or_partition
    text = wanted.committed_metadata or ""
    if len(text.encode()) > metadata_bytes_max:
        return ErrorCode.offset_metadata_too_large
    return OffsetRow(
        UUID(bytes=topic.topic_id),
        wanted.partition_index,
        wanted.committed_offset,
        wanted.committed_leader_epoch,
        text,
    )


async def _refused_again(group_id: str) -> OffsetFetchResponseGroup:
    """A group that the request has named before: a small request could ask for a vast answer."""
    return {"group_id": group_id, "error_code": ErrorCode.invalid_request, "topics": ()}


def _named(entry: OffsetCommitRequestTopic | _Wanted, version: int) -> _Named:
    """Return the id or name by which the request names the topic."""
    return _topic_id(entry) if version >= TOPIC_IDS_FROM else entry.name


def _by(group: OffsetFetchRequestGroup) -> FetchingMember:
    return FetchingMember(group.member_id, group.member_epoch)


def _topic_id(entry: OffsetCommitRequestTopic | _Wanted) -> UUID | None:
    return None if isinstance(entry, OffsetFetchRequestTopic) else entry.topic_id


def _stable(
    partition: TopicIdPartition, row: CommittedOffset | None, pending: Set[TopicIdPartition]
) -> OffsetFetchResponsePartitions:
    """Return the row. If a transaction with an offset of the partition has not ended, the row has
    only an error, as in Kafka's OffsetMetadataManager.fetchOffsets."""
    if partition in pending:
        return _fetched(partition.partition, None, ErrorCode.unstable_offset_commit)
    return _fetched(partition.partition, row)


def _fetched(
    number: int, row: CommittedOffset | None, error: ErrorCode = ErrorCode.none
) -> OffsetFetchResponsePartitions:
    return {
        "partition_index": number,
        "committed_offset": NOTHING_COMMITTED if row is None else row.offset,
        "committed_leader_epoch": -1 if row is None else row.leader_epoch,
        "metadata": "" if row is None else row.metadata,
        "error_code": error,
    }


def _all_failed(
    topics: Iterable[OffsetFetchRequestTopic], error: ErrorCode
) -> list[OffsetFetchResponseTopic]:
    """Version 1 has an error for each partition alone."""
    return [
        {
            "name": entry.name,
            "partitions": [_fetched(number, None, error) for number in entry.partition_indexes],
        }
        for entry in topics
    ]
