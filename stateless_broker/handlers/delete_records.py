"""DeleteRecords: move log starts forward.

Source: Kafka's DeleteRecordsRequest.json; KIP-107; ReplicaManager.deleteRecords and
Partition.deleteRecordsOnLeader (which error for what).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.errors import SequencerError
from bucketlog.model import TopicPartition
from metadata.topic_configs import has_policy
from metadata.view import View
from stateless_broker.log_starts import move_log_starts
from stateless_broker.network.dispatch import Request
from stateless_broker.network.messages import Values
from stateless_broker.tier_committer import TierCommitter

TO_THE_END = -1
INVALID_LOW_WATERMARK = -1


class DeleteRecordsHandler:
    """`catch_up` waits until the view shows all that is visible now."""

    def __init__(
        self, *, view: View, committer: TierCommitter, catch_up: Callable[[], Awaitable[bool]]
    ) -> None:
        self._view = view
        self._committer = committer
        self._catch_up = catch_up

    async def __call__(self, request: Request, message: Any) -> Values:
        deadline = asyncio.get_running_loop().time() + max(message.timeout.total_seconds(), 0.0)
        asked = Counter(
            (topic.name, wanted.partition_index)
            for topic in message.topics
            for wanted in topic.partitions
        )
        await self._catch_up()
        starts: dict[TopicPartition, int] = {}
        answers: list[tuple[str, list[tuple[int, ErrorCode, TopicPartition | None]]]] = []
        for topic in message.topics:
            rows = []
            for wanted in topic.partitions:
                error, partition, start = self._look_up(topic.name, wanted)
                if asked[topic.name, wanted.partition_index] > 1:
                    error = ErrorCode.invalid_request
                elif error is ErrorCode.none and partition is not None:
                    starts[partition] = start
                rows.append((wanted.partition_index, error, partition))
            answers.append((topic.name, rows))
        failure = await self._move(starts, deadline)
        return {
            "topics": [
                {
                    "name": name,
                    "partitions": [self._answer(*row, starts, failure) for row in rows],
                }
                for name, rows in answers
            ]
        }

    def _look_up(self, name: str, wanted: Any) -> tuple[ErrorCode, TopicPartition | None, int]:
        topic = self._view.topic(name)
        partition = TopicPartition(topic.topic_id, wanted.partition_index) if topic else None
        log = self._view.log(partition) if partition else None
        if topic is None or log is None:
            return ErrorCode.unknown_topic_or_partition, None, 0
        if not has_policy(topic.configs, "delete"):
            return ErrorCode.policy_violation, None, 0
        start = log.high_watermark if wanted.offset == TO_THE_END else wanted.offset
        if not 0 <= start <= log.high_watermark:
            return ErrorCode.offset_out_of_range, None, 0
        return ErrorCode.none, partition, start

    async def _move(self, starts: dict[TopicPartition, int], deadline: float) -> ErrorCode:
        try:
            async with asyncio.timeout_at(deadline):
                await move_log_starts(starts, view=self._view, committer=self._committer)
        except TimeoutError:
            return ErrorCode.request_timed_out
        except SequencerError:
            return ErrorCode.not_leader_or_follower
        return ErrorCode.none

    def _answer(
        self,
        number: int,
        error: ErrorCode,
        partition: TopicPartition | None,
        starts: dict[TopicPartition, int],
        failure: ErrorCode,
    ) -> Values:
        low_watermark = INVALID_LOW_WATERMARK
        if error is ErrorCode.none and partition is not None:
            if self._view.log(partition) is None:
                error = ErrorCode.unknown_topic_or_partition  # deleted meanwhile
            else:
                low_watermark = self._view.log_start(partition)
                if low_watermark < starts[partition]:
                    error, low_watermark = failure, INVALID_LOW_WATERMARK
        return {"partition_index": number, "low_watermark": low_watermark, "error_code": error}
