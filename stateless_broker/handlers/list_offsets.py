"""ListOffsets: earliest, latest, by timestamp, the maximum timestamp.

Source: Kafka's ListOffsetsRequest.json; KIP-79, KIP-734 (max timestamp), KIP-405 (local log start),
KIP-1005 and KIP-1023 (remote storage);
KIP-98 (isolation level: Partition.fetchOffsetForTimestamp).
Invariant: a look-up by time opens small batches only, one after the other and beside the event
loop; one is enough unless the log start is in it. Where a batch is large or does not decode,
its header answers: its base offset, which is at or before the record that is looked for. So it is
with an encrypted batch whose key is not to be had. No answer is below the log start.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

from kio.schema.errors import ErrorCode

from bucketlog.log_format import batch as record_batch
from bucketlog.log_format.batch import LEADER_EPOCH, BatchHeader
from bucketlog.log_format.encryption_errors import (
    BrokenSealError,
    KeyRefusedError,
    KeyUnavailableError,
)
from bucketlog.log_format.errors import BucketError, CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import NO_TIMESTAMP, Buffer, TopicIdPartition
from bucketlog.log_format.record_check import first_since
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.transactions import READ_COMMITTED
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.log_format.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.partition_log import PartitionLog, StoredRange
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.encryption.topic_keys import TopicKeys
from bucketlog.stateless_broker.fetch.reading import RangeReader
from bucketlog.stateless_broker.fetch.tier_times import TierTimes
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.bounded_gather import each_in_turn
from bucketlog.stateless_broker.network.turns import Turns

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
REMOTE = frozenset({LATEST_TIERED, EARLIEST_PENDING_UPLOAD})
"""Timestamps for offsets in remote storage. As in a Kafka without it, there is no such offset."""
NOT_NEWEST = REMOTE | {EARLIEST, EARLIEST_LOCAL}
"""Timestamps whose offsets do not depend on the newest records."""
AT_ONCE = NOT_NEWEST | {LATEST}
"""Timestamps that the view alone can answer."""
_NEVER = 1 << 15
_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""Versions; others get the error that theirs does not have it (ReplicaManager.fetchOffset)."""
LOOKUPS_AT_ONCE = 16
"""Limit of the look-ups of one request that read the bucket at the same time."""
_LEADER_EPOCH_FROM = 4
_NOT_AVAILABLE = ErrorCode.leader_not_available
"""The error if the view may lack the newest records: all clients retry LEADER_NOT_AVAILABLE. Kafka
answers OFFSET_NOT_AVAILABLE from version 5 on (KIP-207), which librdkafka passes to the
application."""
LOOKUP_RECORDS_MAX = 50_000
LOOKUP_BYTES_MAX = 16 * 1024 * 1024
"""Limit for the decompressed bytes of a batch that a look-up by time opens."""
SCATTERED_RECORDS_MAX = 2_000
"""Limit for a batch that is decoded record by record in Python, in about 10 ms: a batch with gaps
between its offsets (key compaction), or the batch in which the log starts."""
OPENED_AT_ONCE = 2
"""Limit of the batches that look-ups of all requests open at the same time."""


class ListOffsetsHandler:
    """`catch_up` waits until the view shows all records that are visible now: the latest offset
    includes records that any broker has acknowledged. If it returns False, the view may lack
    records. Then requests that depend on the newest records get a retriable error.

    The earliest offset needs no catch-up. This broker's own DeleteRecords are in its view before
    they are acknowledged, and those of other brokers follow within milliseconds."""

    def __init__(
        self,
        *,
        view: View,
        reader: RangeReader,
        tier: TierTimes,
        keys: TopicKeys,
        catch_up: Callable[[], Awaitable[bool]],
        turns: Turns,
    ) -> None:
        self._keys = keys
        self._view = view
        self._reader = reader
        self._tier = tier
        self._catch_up = catch_up
        self._turns = turns
        self._opening = asyncio.Semaphore(OPENED_AT_ONCE)

    async def __call__(self, request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse:
        asked = Counter(
            (topic.name, wanted.partition_index)
            for topic in message.topics
            for wanted in topic.partitions
        )
        is_current = not self._needs_newest(message) or await self._catch_up()
        rows: dict[tuple[str, int], ListOffsetsPartitionResponse | None] = {}
        """Rows by topic and partition. A partition that is named twice is answered once, as in
        Kafka."""
        lookups: list[tuple[str, ListOffsetsPartition]] = []
        """Lookups that read the bucket: topic and partition."""
        version = request.header.api_version
        committed_only = message.isolation_level == READ_COMMITTED

        def steps() -> Iterator[int]:
            for topic in message.topics:
                may = request.access.may_topic(AclOperation.DESCRIBE, topic.name)
                for wanted in topic.partitions:
                    key, row = (topic.name, wanted.partition_index), None
                    if not may:
                        row = _row(wanted.partition_index, ErrorCode.topic_authorization_failed)
                    elif asked[key] > 1:
                        row = _row(wanted.partition_index, ErrorCode.invalid_request)
                    elif wanted.timestamp in AT_ONCE:
                        row = self._at_once(
                            topic.name, wanted, version, is_current, committed_only=committed_only
                        )
                    else:
                        lookups.append((topic.name, wanted))
                    rows[key] = row
                    yield 1

        async def look_up(each: tuple[str, ListOffsetsPartition]) -> None:
            name, wanted = each
            rows[name, wanted.partition_index] = await self._answer(
                name, wanted, version, is_current, committed_only=committed_only
            )

        await self._turns.work(steps())
        await each_in_turn(look_up, lookups, at_once=LOOKUPS_AT_ONCE)
        topics: dict[str, list[ListOffsetsPartitionResponse]] = {}
        for (name, _), row in rows.items():
            if row is not None:
                topics.setdefault(name, []).append(row)
        return {"topics": [{"name": name, "partitions": found} for name, found in topics.items()]}

    def _needs_newest(self, message: ListOffsetsRequest) -> bool:
        """Return whether a partition is unknown here, or its answer depends on the newest
        records."""
        for topic in message.topics:
            known = self._view.topic(topic.name)
            for wanted in topic.partitions:
                if wanted.timestamp not in NOT_NEWEST or known is None:
                    return True
                if wanted.partition_index >= known.partitions:
                    return True
        return False

    def _at_once(
        self,
        name: str,
        wanted: ListOffsetsPartition,
        version: int,
        is_current: bool,
        *,
        committed_only: bool,
    ) -> ListOffsetsPartitionResponse:
        """The earliest or the latest offset; the view has both."""
        partition, log, error = self._look_up(name, wanted, version)
        if error is not ErrorCode.none or partition is None or log is None:
            return _row(wanted.partition_index, error)
        if wanted.timestamp in REMOTE:
            return _row(wanted.partition_index, error)
        is_latest = wanted.timestamp == LATEST
        if is_latest and not is_current:
            return _row(wanted.partition_index, _NOT_AVAILABLE)
        offset = self._view.log_start(partition)
        if is_latest:
            offset = log.readable_end(committed_only=committed_only)
        return _row(wanted.partition_index, error, -1, offset)

    def _look_up(
        self, name: str, wanted: ListOffsetsPartition, version: int
    ) -> tuple[TopicIdPartition | None, PartitionLog | None, ErrorCode]:
        topic = self._view.topic(name)
        partition = TopicIdPartition(topic.topic_id, wanted.partition_index) if topic else None
        log = self._view.log(partition) if partition else None
        error = ErrorCode.none
        if log is None:
            error = ErrorCode.unknown_topic_or_partition
        elif version >= _LEADER_EPOCH_FROM and wanted.current_leader_epoch > LEADER_EPOCH:
            error = ErrorCode.unknown_leader_epoch
        elif wanted.timestamp < 0 and version < _SINCE.get(wanted.timestamp, _NEVER):
            error = ErrorCode.unsupported_version
        return partition, log, error

    async def _answer(
        self,
        name: str,
        wanted: ListOffsetsPartition,
        version: int,
        is_current: bool,
        *,
        committed_only: bool,
    ) -> ListOffsetsPartitionResponse:
        partition, log, error = self._look_up(name, wanted, version)
        timestamp, offset = -1, -1
        if error is ErrorCode.none and partition is not None and log is not None:
            try:
                timestamp, offset = await self._find(partition, log, wanted.timestamp)
            except (BucketError, CorruptObjectError, InvalidDataError) as reason:
                error = kafka_code(reason, ApiFamily.READ)
            else:
                if offset >= log.readable_end(committed_only=committed_only):
                    timestamp, offset = -1, -1
                if not is_current and (offset < 0 or wanted.timestamp == MAX_TIMESTAMP):
                    timestamp, offset, error = -1, -1, _NOT_AVAILABLE
        return _row(wanted.partition_index, error, timestamp, offset)

    async def _find(
        self, partition: TopicIdPartition, log: PartitionLog, timestamp: int
    ) -> tuple[int, int]:
        """Return timestamp and offset, -1 and -1 if there is no such record."""
        if timestamp == MAX_TIMESTAMP:
            return await self._with_max_timestamp(partition, log)
        return await self._first_since(partition, log, timestamp)

    async def offset_since(self, log: PartitionLog, timestamp_ms: int) -> int | None:
        """The offset of the first record from this time on; None if there is none. Raises
        `BucketError`, `CorruptObjectError`."""
        _, offset = await self._first_since(log.partition, log, timestamp_ms)
        return None if offset < 0 else offset

    async def _first_since(
        self, partition: TopicIdPartition, log: PartitionLog, timestamp: int
    ) -> tuple[int, int]:
        offset = log_start = self._view.log_start(partition)
        while True:
            begin = log.batches_from
            in_tier = await self._tier.first_since(partition, log, timestamp, offset)
            if in_tier is None and log.batches_from != begin:
                continue  # batches have come to the tier behind the look-up
            stored = in_tier.stored if in_tier else log.first_since(timestamp, offset)
            if stored is None:
                return -1, -1
            header, data = await self._batch(partition, stored)
            found = await self._first_record(data, header, timestamp, log_start)
            if found is not None:
                return found
            offset = header.next_offset

    async def _with_max_timestamp(
        self, partition: TopicIdPartition, log: PartitionLog
    ) -> tuple[int, int]:
        log_start = self._view.log_start(partition)
        while True:
            begin = log.batches_from
            in_tier = await self._tier.highest(partition, log, log_start)
            if log.batches_from == begin:
                break
        highest, stored = log.with_max_timestamp() or (NO_TIMESTAMP, None)
        if in_tier is not None and (stored is None or in_tier.max_timestamp >= highest):
            highest, stored = in_tier.max_timestamp, in_tier.stored
        if stored is None:
            return -1, -1
        header, data = await self._batch(partition, stored)
        found = await self._first_record(data, header, highest, log_start)
        return found or (header.max_timestamp, max(header.base_offset, log_start))

    async def _batch(
        self, partition: TopicIdPartition, stored: StoredRange
    ) -> tuple[BatchHeader, Buffer]:
        """Return the batch, decrypted if it is encrypted and its key is available."""
        data = b"".join(await self._reader.read([stored]))
        header = record_batch.read_header(data)
        if header.is_sealed and header.record_count <= LOOKUP_RECORDS_MAX:
            with suppress(KeyRefusedError, KeyUnavailableError, BrokenSealError):
                opened = await self._keys.opened_batch(partition, data, header)
                return opened.header, opened.joined()
        return header, data

    async def _first_record(
        self, data: Buffer, header: BatchHeader, since_ms: int, log_start: int
    ) -> tuple[int, int] | None:
        """Timestamp and offset; None if only records below the log start match."""
        is_dense = header.record_count == header.last_offset_delta + 1
        is_whole = is_dense and header.base_offset >= log_start and since_ms >= 0
        most = LOOKUP_RECORDS_MAX if is_whole else SCATTERED_RECORDS_MAX
        opaque = record_batch.LOG_APPEND_TIME | record_batch.SEALED
        if header.attributes & opaque or header.record_count > most:
            return _by_header(header, log_start)
        find = _first_in_whole if is_whole else _first_in_scattered
        async with self._opening:
            return await asyncio.to_thread(find, data, header, since_ms, log_start)


def _first_in_whole(
    data: Buffer, header: BatchHeader, since_ms: int, log_start: int
) -> tuple[int, int] | None:
    try:
        found = first_since(data, header, since_ms, max_bytes=LOOKUP_BYTES_MAX)
    except InvalidDataError:
        found = None
    return found or _by_header(header, log_start)


def _first_in_scattered(
    data: Buffer, header: BatchHeader, since_ms: int, log_start: int
) -> tuple[int, int] | None:
    try:
        records = decode_records(data, header, max_decompressed_bytes=LOOKUP_BYTES_MAX)
    except InvalidDataError:
        records = []
    for record in records:
        if record.offset >= log_start and record.timestamp >= since_ms:
            return record.timestamp, record.offset
    if records and header.base_offset < log_start:
        return None
    return _by_header(header, log_start)


def _by_header(header: BatchHeader, log_start: int) -> tuple[int, int]:
    return header.max_timestamp, max(header.base_offset, log_start)


def _row(
    partition: int, error: ErrorCode, timestamp: int = -1, offset: int = -1
) -> ListOffsetsPartitionResponse:
    return {
        "partition_index": partition,
        "error_code": error,
        "timestamp": timestamp,
        "offset": offset,
        "leader_epoch": LEADER_EPOCH if offset >= 0 else -1,
    }
