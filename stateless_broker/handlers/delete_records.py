"""DeleteRecords: move log starts forward.

Source: Kafka's DeleteRecordsRequest.json; KIP-107; ReplicaManager.deleteRecords and
Partition.deleteRecordsOnLeader (which error for what).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.internal_topics import INTERNAL_TOPICS
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.produce.log_starts import move_log_starts
from bucketlog.stateless_broker.produce.tier_committer import TierCommitter

TO_THE_END = -1
INVALID_LOW_WATERMARK = -1


class DeleteRecordsHandler:
    """`catch_up` waits until the view shows all records that are visible now. If it returns False,
    the view may lack records or topics, and clients retry. `change_ms_max` bounds the time of a
    change. The timeout of a request does not: in Kafka, it bounds the wait for other replicas."""

    def __init__(
        self,
        *,
        view: View,
        committer: TierCommitter,
        topic_defaults: TopicDefaults,
        catch_up: Callable[[], Awaitable[bool]],
        change_ms_max: int,
    ) -> None:
        self._view = view
        self._committer = committer
        self._topic_defaults = topic_defaults
        self._catch_up = catch_up
        self._change_s_max = change_ms_max / 1000

    async def __call__(
        self, request: Request, message: DeleteRecordsRequest
    ) -> DeleteRecordsResponse:
        deadline = asyncio.get_running_loop().time() + self._change_s_max
        offsets = {
            (topic.name, wanted.partition_index): wanted
            for topic in message.topics
            for wanted in topic.partitions
        }
        """The last offset counts if a partition is named twice, as in Kafka."""
        is_current = await self._catch_up()
        starts: dict[TopicIdPartition, int] = {}
        answers: dict[str, list[tuple[int, ErrorCode, TopicIdPartition | None]]] = {}
        names = dict.fromkeys(topic.name for topic in message.topics)
        may = {name: request.access.may_topic(AclOperation.DELETE, name) for name in names}
        for (name, number), wanted in offsets.items():
            error, partition, start = self._look_up(name, wanted)
            if not may[name]:
                error, partition = ErrorCode.topic_authorization_failed, None
            elif error is ErrorCode.invalid_topic_exception:
                partition = None
            elif not is_current:
                error = ErrorCode.not_leader_or_follower
            elif error is ErrorCode.none and partition is not None:
                starts[partition] = start
            answers.setdefault(name, []).append((number, error, partition))
        failure = await self._move(starts, deadline, request.author)
        return {
            "topics": [
                {
                    "name": name,
                    "partitions": [self._answer(*row, starts, failure) for row in rows],
                }
                for name, rows in answers.items()
            ]
        }

    def _look_up(
        self, name: str, wanted: DeleteRecordsPartition
    ) -> tuple[ErrorCode, TopicIdPartition | None, int]:
        topic = self._view.topic(name)
        partition = TopicIdPartition(topic.topic_id, wanted.partition_index) if topic else None
        log = self._view.log(partition) if partition else None
        if name in INTERNAL_TOPICS:
            return ErrorCode.invalid_topic_exception, None, 0
        if topic is None or log is None:
            return ErrorCode.unknown_topic_or_partition, None, 0
        if self._keeps_all(topic.configs):
            return ErrorCode.policy_violation, None, 0
        start = log.high_watermark if wanted.offset == TO_THE_END else wanted.offset
        if not 0 <= start <= log.high_watermark:
            return ErrorCode.offset_out_of_range, None, 0
        return ErrorCode.none, partition, start

    def _keeps_all(self, configs: Mapping[str, str]) -> bool:
        """Return whether the topic is compacted and never deletes records. Kafka refuses, too.
        There, a topic may also have no policy."""
        has_policy = self._topic_defaults.has_policy
        return has_policy(configs, "compact") and not has_policy(configs, "delete")

    async def _move(
        self, starts: dict[TopicIdPartition, int], deadline: float, by: str | None
    ) -> ErrorCode:
        try:
            async with asyncio.timeout_at(deadline):
                await move_log_starts(starts, view=self._view, committer=self._committer, by=by)
        except (TimeoutError, SequencerError) as error:
            return kafka_code(error, ApiFamily.DELETE_RECORDS)
        return ErrorCode.none

    def _answer(
        self,
        number: int,
        error: ErrorCode,
        partition: TopicIdPartition | None,
        starts: dict[TopicIdPartition, int],
        failure: ErrorCode,
    ) -> DeleteRecordsPartitionResult:
        low_watermark = INVALID_LOW_WATERMARK
        if error is ErrorCode.none and partition is not None:
            if self._view.log(partition) is None:
                error = ErrorCode.unknown_topic_or_partition  # deleted meanwhile
            else:
                low_watermark = self._view.log_start(partition)
                if low_watermark < starts[partition]:
                    error, low_watermark = failure, INVALID_LOW_WATERMARK
        return {"partition_index": number, "low_watermark": low_watermark, "error_code": error}
