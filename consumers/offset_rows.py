"""The offsets of unfinished commits, and the limit of committed offsets in the cluster."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kio.schema.errors import ErrorCode

from bucketlog.consumers.refusal_log import RefusalLog
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.committed_offset import CommittedOffset, offset_weight
from bucketlog.metadata.facts import OffsetRow

logger = logging.getLogger(__name__)


class KnownOffsets(Protocol):
    """The committed offsets that are visible (metadata/view.py)."""

    def offsets(self, group: str) -> Mapping[TopicIdPartition, CommittedOffset]: ...

    @property
    def offset_weight(self) -> int: ...


def weight_of(rows: Sequence[OffsetRow]) -> int:
    return sum(offset_weight(row.metadata) for row in rows)


def named(rows: Sequence[OffsetRow]) -> list[TopicIdPartition]:
    """The partitions of the rows."""
    return [TopicIdPartition(TopicId(row.topic_id.bytes), row.partition) for row in rows]


class OffsetRows:
    """`in_flight` is the weight of all unfinished commits. The caller that begins a commit adds its
    weight."""

    def __init__(
        self,
        view: KnownOffsets,
        *,
        in_flight_max: int,
        offsets_max: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._view = view
        self._in_flight_max = in_flight_max
        self._offsets_max = offsets_max
        self._refusals = RefusalLog(now_ms)
        self.in_flight = 0

    def refusal(
        self, group_id: str, rows: Sequence[OffsetRow], *, pending: bool = False
    ) -> ErrorCode:
        """Why these offsets cannot be committed now, or `none`. `pending` offsets of a transaction
        replace nothing until it ends."""
        if 0 < self.in_flight > self._in_flight_max - weight_of(rows):
            return ErrorCode.coordinator_load_in_progress  # it is to be tried again here
        if self._exceeds_limit(group_id, rows, pending):
            return ErrorCode.policy_violation
        return ErrorCode.none

    def _exceeds_limit(self, group_id: str, rows: Sequence[OffsetRow], pending: bool) -> bool:
        """Return whether the commit adds offsets and would exceed the limit of the cluster."""
        limit = self._offsets_max
        weight = self._view.offset_weight + self.in_flight
        if weight + weight_of(rows) <= limit:
            return False
        before = {} if pending else self._view.offsets(group_id)
        replaced = sum(
            offset_weight(found.metadata)
            for row in rows
            if (found := before.get(TopicIdPartition(TopicId(row.topic_id.bytes), row.partition)))
        )
        more = weight_of(rows) - replaced
        if more <= 0 or weight + more <= limit:
            return False
        if self._refusals.is_due():
            logger.warning(
                "a commit of group %r is refused: the cluster has %d committed offsets of %d "
                "(BUCKETLOG_OFFSETS_MAX); raise the limit, or delete groups",
                group_id,
                weight,
                limit,
            )
        return True
