"""DescribeLogDirs: the bucket as the log directory of all brokers.

Every broker serves the same bucket. So that tools that add up brokers count each partition once, a
broker names only the partitions that it leads. Source: KIP-113, KIP-827; Kafka's
ReplicaManager.describeLogDirs.
"""

from collections.abc import Iterator

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsTopic,
)
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Turns

ROWS_A_UNIT = 256
"""Batches whose lengths are added up in a few microseconds."""


class LogDirsHandler:
    """`log_dir` is the name of the bucket in responses. The size of a bucket has no limit, so its
    total and its usable bytes are unknown (-1)."""

    def __init__(self, *, view: View, membership: Membership, log_dir: str, turns: Turns) -> None:
        self._view = view
        self._membership = membership
        self._log_dir = log_dir
        self._turns = turns

    async def __call__(
        self, request: Request, message: DescribeLogDirsRequest
    ) -> DescribeLogDirsResponse:
        topics: list[DescribeLogDirsTopic] = []

        def steps() -> Iterator[int]:
            if message.topics is None:
                for topic in self._view.topics():
                    yield from self._add(topics, topic, range(topic.partitions))
                return
            asked: dict[str, set[int]] = {}
            for each in message.topics:
                asked.setdefault(each.topic, set()).update(each.partitions)
                yield 1 + len(each.partitions)
            for name, numbers in asked.items():
                found = self._view.topic(name)
                if found is not None:
                    there = sorted(number for number in numbers if 0 <= number < found.partitions)
                    yield from self._add(topics, found, there)

        await self._turns.work(steps())
        return {
            "error_code": ErrorCode.none,
            "results": [{"error_code": ErrorCode.none, "log_dir": self._log_dir, "topics": topics}],
        }

    def _add(
        self, topics: list[DescribeLogDirsTopic], topic: TopicState, numbers: range | list[int]
    ) -> Iterator[int]:
        leaders = yield from self._membership.leaders(topic.topic_id, topic.partitions)
        me = self._membership.me.node_id
        rows: list[DescribeLogDirsPartition] = []
        for number in numbers:
            if leaders[number].node_id != me:
                continue
            log = self._view.log(TopicIdPartition(topic.topic_id, number))
            if log is None:  # the topic was deleted meanwhile
                return
            size_bytes = sum(row.batch_bytes for row in log.tier.rows) + sum(log.batches.lengths)
            rows.append(
                {
                    "partition_index": number,
                    "partition_size": size_bytes,
                    "offset_lag": 0,
                    "is_future_key": False,
                }
            )
            yield 1 + (len(log.tier.rows) + len(log.batches.lengths)) // ROWS_A_UNIT
        if rows:
            topics.append({"name": topic.name, "partitions": rows})


def deny_log_dirs(message: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    return {"error_code": ErrorCode.cluster_authorization_failed, "results": []}
