"""The start offsets of share groups for administrators: described, set and deleted as facts.

Invariant: start offsets change only while the group has no members, as far as its coordinator
knows. A leader that still works on them is fenced by the fact. Source: KIP-932, KIP-1226; Kafka's
GroupCoordinatorService.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.coordinator import ShareCoordinator
from bucketlog.consumers.share.leader import ShareFactCommitter
from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.sequencer.requests import WantedShareEntry
from bucketlog.metadata.share_facts import (
    ShareFact,
    ShareOffsetsForgotten,
    ShareOffsetsSet,
    ShareStartRow,
)
from bucketlog.metadata.share_groups import ShareGroups, SharePartition


class ShareOffsets:
    def __init__(
        self,
        *,
        coordinator: ShareCoordinator,
        shares: Callable[[], ShareGroups],
        log: ShareFactCommitter,
        catch_up: Callable[[], Awaitable[bool]],
        write_timeout_ms: int,
    ) -> None:
        self.coordinator = coordinator
        self._shares = shares
        self._log = log
        self._catch_up = catch_up
        self._timeout_s = write_timeout_ms / 1000

    async def describe(self, group: str) -> Mapping[TopicIdPartition, SharePartition] | ErrorCode:
        """The share-partitions of a group that have state."""
        error = await self._refusal(group)
        if error is ErrorCode.none and not self.coordinator.exists(group):
            error = ErrorCode.group_id_not_found
        return dict(self._shares().by_group.get(group, {})) if error is ErrorCode.none else error

    async def _refusal(self, group: str) -> ErrorCode:
        error = self.coordinator.refusal(group)
        if error is ErrorCode.none and not await self._catch_up():
            return ErrorCode.coordinator_load_in_progress
        return error

    async def set(
        self, group: str, starts: Mapping[TopicIdPartition, int], by: str | None
    ) -> ErrorCode:
        """Let the share-partitions begin anew at these offsets. A group that does not exist is
        created, as by Kafka."""
        error = await self._refusal(group)
        if error is ErrorCode.none and not self.coordinator.may_exist(group):
            error = ErrorCode.group_id_not_found
        if error is not ErrorCode.none:
            return error
        rows = tuple(
            ShareStartRow(UUID(bytes=each.topic_id), each.partition, start)
            for each, start in starts.items()
        )
        return await self._change(group, ShareOffsetsSet(group=group, rows=rows, by=by))

    async def delete(
        self, group: str, topics: Sequence[TopicId], by: str | None
    ) -> Sequence[ErrorCode] | ErrorCode:
        """Forget the group's state of these topics: an error for each, or one for all."""
        known = await self.describe(group)
        if isinstance(known, ErrorCode):
            return known
        with_state = {each.topic_id for each in known}
        found = [topic for topic in topics if topic in with_state]
        ids = tuple(UUID(bytes=topic) for topic in found)
        error = await self._change(group, ShareOffsetsForgotten(group=group, topics=ids, by=by))
        if error is not ErrorCode.none:
            return error
        missing = ErrorCode.unknown_topic_or_partition
        return [ErrorCode.none if topic in with_state else missing for topic in topics]

    async def delete_group(self, group: str, *, by: str | None = None) -> ErrorCode:
        known = await self.describe(group)
        if isinstance(known, ErrorCode):
            return known
        return await self._change(group, ShareOffsetsForgotten(group=group, by=by))

    async def _change(self, group: str, fact: ShareFact) -> ErrorCode:
        """Write the fact, unless the group has members."""
        if self.coordinator.find(group) is not None:
            return ErrorCode.non_empty_group
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._log.commit_fact(fact, WantedShareEntry())
        except (SequencerError, TimeoutError) as error:  # it may be done later
            return kafka_code(error, ApiFamily.GROUPS)
        return ErrorCode.none
