"""Records for a member of a share group: a read of a share-partition, and its acquisition.

Invariant: between the choice of an offset and the acquisition, nobody else reads the partition for
the group. So two members never get the same record of one read.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.consumers.share.leader import HeldPartition, ShareLeader
from bucketlog.consumers.share.window import AcquiredRange, AcquireLimits, Extent
from bucketlog.log_format.batch import CONTROL, TRANSACTIONAL, read_header
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.transactions import AbortedTransaction
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.handlers.partition_reads import PartitionReads

logger = logging.getLogger(__name__)


class AcquiredData(NamedTuple):
    """Acquired records. `data` are whole batches, with records that were not acquired among
    them."""

    error: ErrorCode
    data: bytes = b""
    ranges: Sequence[AcquiredRange] = ()


NOTHING_ACQUIRED = AcquiredData(ErrorCode.none)


class ReadBatch(NamedTuple):
    extent: Extent
    data: memoryview


class ShareReader:
    def __init__(self, *, view: View, reads: PartitionReads, leader: ShareLeader) -> None:
        self._view = view
        self._reads = reads
        self._leader = leader

    def may_have(self, held: HeldPartition) -> bool:
        """Return whether a read may find records to acquire."""
        log = self._view.log(held.key.partition)
        if log is None:
            return True  # which is then said
        held.window.begin_at(self._view.log_start(held.key.partition))
        end = log.readable_end(committed_only=held.rules.committed_only)
        return held.window.next_offset < end and held.window.may_acquire(held.limits)

    async def acquire(
        self, held: HeldPartition, member: str, wanted: AcquireLimits, max_bytes: int
    ) -> AcquiredData:
        """Acquire records for the member, and return what the member gets of the share-partition
        now."""
        async with held.reading:
            while True:
                before = held.window.next_offset
                got = await self._acquire_once(held, member, wanted, max_bytes)
                if got is not NOTHING_ACQUIRED or held.window.next_offset == before:
                    return got  # else there were only batches that nobody gets

    async def _acquire_once(
        self, held: HeldPartition, member: str, wanted: AcquireLimits, max_bytes: int
    ) -> AcquiredData:
        if held.is_lost():
            return AcquiredData(ErrorCode.not_leader_or_follower)
        log = self._view.log(held.key.partition)
        if log is None:
            return AcquiredData(ErrorCode.unknown_topic_or_partition)
        if not self.may_have(held):
            return NOTHING_ACQUIRED
        offset, committed_only = held.window.next_offset, held.rules.committed_only
        read = await self._reads.read_one(log, offset, max_bytes, committed_only=committed_only)
        if read.error is not ErrorCode.none:
            return AcquiredData(read.error)
        if held.is_lost():
            return AcquiredData(ErrorCode.not_leader_or_follower)
        try:
            batches = split_batches(b"".join(read.parts), read.aborted)
        except InvalidDataError as error:
            logger.error("a share fetch cannot read the bucket: %s", error)
            return AcquiredData(kafka_code(error, ApiFamily.READ))
        extents = [batch.extent for batch in batches]
        ranges = self._leader.acquire(held, member, extents, wanted, read_from=offset)
        if not ranges:
            return NOTHING_ACQUIRED
        return AcquiredData(ErrorCode.none, overlapping(batches, ranges), ranges)


def split_batches(data: bytes, aborted: Sequence[AbortedTransaction]) -> list[ReadBatch]:
    """The batches in `data`. Markers, and batches of `aborted` transactions, are not delivered."""
    found: list[ReadBatch] = []
    whole, at = memoryview(data), 0
    while at < len(data):
        header = read_header(whole, at)
        last = header.base_offset + header.last_offset_delta
        hidden = bool(header.attributes & CONTROL) or (
            bool(header.attributes & TRANSACTIONAL)
            and any(
                each.producer_id == header.producer_id
                and each.first_offset <= header.base_offset < each.marker_offset
                for each in aborted
            )
        )
        extent = Extent(header.base_offset, last, not hidden)
        found.append(ReadBatch(extent, whole[at : at + header.size_bytes]))
        at += header.size_bytes
    return found


def overlapping(batches: Sequence[ReadBatch], ranges: Sequence[AcquiredRange]) -> bytes:
    """The batches that have acquired records. Both are in offset order."""
    kept: list[memoryview] = []
    row = 0
    for extent, data in batches:
        while row < len(ranges) and ranges[row].last < extent.first:
            row += 1
        if row < len(ranges) and ranges[row].first <= extent.last:
            kept.append(data)
    return b"".join(kept)
