"""OffsetForLeaderEpoch: a partition has one leader epoch, which ends where the partition ends.

Consumers ask for it to find out whether the log was truncated; here, it never is. Source: KIP-320;
Kafka's Partition.lastOffsetForLeaderEpoch.
"""

from collections.abc import Awaitable, Callable, Iterator

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import LEADER_EPOCH
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Turns

NO_EPOCH = -1
UNDEFINED = -1


class LeaderEpochsHandler:
    """`catch_up` waits until the view shows all records that are visible now. If it returns False,
    the view may lack records, and clients retry."""

    def __init__(
        self, *, view: View, catch_up: Callable[[], Awaitable[bool]], turns: Turns
    ) -> None:
        self._view = view
        self._catch_up = catch_up
        self._turns = turns

    async def __call__(
        self, request: Request, message: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        is_current = await self._catch_up()
        topics: list[OffsetForLeaderTopicResult] = []

        def steps() -> Iterator[int]:
            access = request.access
            may_all = access.quiet.may_on_cluster(AclOperation.CLUSTER_ACTION)
            for topic in message.topics:
                may = may_all or access.may_topic(AclOperation.DESCRIBE, topic.topic)
                rows: list[EpochEndOffset] = []
                topics.append({"topic": topic.topic, "partitions": rows})
                for wanted in topic.partitions:
                    if may:
                        rows.append(self._end(topic.topic, wanted, is_current))
                    else:
                        rows.append(_row(wanted, ErrorCode.topic_authorization_failed))
                    yield 1

        await self._turns.work(steps())
        return {"topics": topics}

    def _end(self, name: str, wanted: OffsetForLeaderPartition, is_current: bool) -> EpochEndOffset:
        topic = self._view.topic(name)
        partition = TopicIdPartition(topic.topic_id, wanted.partition) if topic else None
        log = self._view.log(partition) if partition else None
        if log is None:
            return _row(wanted, ErrorCode.unknown_topic_or_partition)
        if wanted.current_leader_epoch > LEADER_EPOCH:
            return _row(wanted, ErrorCode.unknown_leader_epoch)
        if NO_EPOCH < wanted.current_leader_epoch < LEADER_EPOCH:
            return _row(wanted, ErrorCode.fenced_leader_epoch)
        if wanted.leader_epoch != LEADER_EPOCH:
            return _row(wanted, ErrorCode.none)
        if not is_current:
            return _row(wanted, ErrorCode.not_leader_or_follower)
        return _row(wanted, ErrorCode.none, LEADER_EPOCH, log.high_watermark)


def _row(
    wanted: OffsetForLeaderPartition,
    error: ErrorCode,
    epoch: int = NO_EPOCH,
    end_offset: int = UNDEFINED,
) -> EpochEndOffset:
    return {
        "error_code": error,
        "partition": wanted.partition,
        "leader_epoch": epoch,
        "end_offset": end_offset,
    }
