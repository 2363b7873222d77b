"""Looks up the partitions of a Fetch in the view: the log of each, or its error.

Invariant: a fetch offset above this view's high watermark is out of range only once the view has
caught up, because another broker may have shown that offset. Otherwise clients would reset.
Source: KIP-320 (leader epochs: constantly 0), KIP-516 (topic ids), Kafka's KafkaApis.handleFetch.
"""

from collections.abc import Awaitable, Callable

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import LEADER_EPOCH
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire import fetch
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.handlers.fetch_plan import PlannedPartitions
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Slices, Turns


class FetchLookup:
    def __init__(
        self,
        *,
        view: View,
        membership: Membership,
        catch_up: Callable[[], Awaitable[bool]],
        turns: Turns,
    ) -> None:
        self._view = view
        self._membership = membership
        self._catch_up = catch_up
        self._turns = turns

    def basis(self, request: Request) -> object:
        """Return a value that stays equal as long as the client's results change only with its
        partitions."""
        return request.access.basis(), self._membership.has_handed_over

    async def look_up(self, planned: PlannedPartitions, request: Request) -> None:
        """Plan those of the wanted partitions that are not planned yet."""
        start = len(planned)
        if not await self._add(planned, request):
            return
        has_caught_up = await self._catch_up()
        planned.forget_from(start)
        for row in await self._add(planned, request):
            if not has_caught_up:
                planned.fail(row, ErrorCode.offset_not_available)

    async def _add(self, planned: PlannedPartitions, request: Request) -> list[int]:
        """Look up the partitions that are not planned yet. Returns the rows whose fetch offset was
        above the high watermark when they were looked up. These rows keep their error, even if the
        view has advanced since then."""
        slices, beyond = Slices(self._turns), []
        for row in range(len(planned), len(planned.wanted)):
            wanted = planned.wanted[row]
            error, log = self._look_up(wanted, request)
            planned.add(error, log)
            if (
                error is ErrorCode.offset_out_of_range
                and log is not None
                and wanted.fetch_offset > log.high_watermark
            ):
                beyond.append(row)
            await slices.spend(1)
        return beyond

    def _look_up(
        self, wanted: fetch.FetchedPartition, request: Request
    ) -> tuple[ErrorCode, PartitionLog | None]:
        topic: TopicState | None
        name = wanted.topic
        if request.header.api_version >= fetch.TOPIC_IDS_FROM:
            topic = self._view.topic_by_id(wanted.topic_id) if wanted.topic_id else None
            if topic is None:
                return ErrorCode.unknown_topic_id, None
            name = topic.name
        else:
            topic = self._view.topic(name)
        if not request.access.may_topic(AclOperation.READ, name):
            return ErrorCode.topic_authorization_failed, None
        partition = TopicIdPartition(topic.topic_id, wanted.partition) if topic else None
        log = self._view.log(partition) if partition else None
        if partition is None or log is None:
            return ErrorCode.unknown_topic_or_partition, None
        error = ErrorCode.none
        if self._membership.has_handed_over:
            error = ErrorCode.not_leader_or_follower
        elif wanted.leader_epoch > LEADER_EPOCH:
            error = ErrorCode.unknown_leader_epoch
        elif not self._view.log_start(partition) <= wanted.fetch_offset <= log.high_watermark:
            error = ErrorCode.offset_out_of_range
        return error, log
