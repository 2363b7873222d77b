"""Key compaction of one partition (`cleanup.policy=compact`): batches in, cleaned batches out.

A round has two steps: `DirtyPart` over the dirty part, which fills the offset map and says where
the round ends; `Cleaner` over the clean part and what was dirty up to there. Each is fed pieces of
the partition's batches in order, cut anywhere; there is no clock and no bucket. What the cleaner
gave counts only after `finish`. The next round starts where this one ended.

Invariants:
- Offsets keep their numbers, and records that stay their bytes; a batch in which all stay is copied
  byte for byte. From the round's end on nothing changes.
- Below the end a record goes if a later one of its key is below the end as well, if it has no
  key, or if it is a tombstone past its delete horizon. Else it stays. Tiers hold committed
  transactions only, and no markers (docs/format/tier.md).
- A batch's delete horizon is set in the round that first cleans all of it: `delete_retention_ms`
  from now. Whoever read a value that was still there has that long to meet its tombstone. A horizon
  in the dirty part is not a cleaner's and does not count.
- Memory is bounded: the map, `GROUP_BYTES` of records and a batch. There is always progress: where
  not even the first batch's keys fit the map, the round ends inside that batch.
- Encrypted batches are opened to be read; those that are rewritten are sealed again with their own
  data key.
- A damaged batch raises `InvalidDataError`, which names the offset; the partition stays as it was.

Kafka keeps an empty batch for each live producer, whose last sequence it holds; here the fold knows
that. The last batch of a round stays, empty if need be: who reads up to the end of the log (Connect
and Streams do, when they start) must see its position get there, and only a batch moves it.

Sources: Kafka's Cleaner (buildOffsetMap, cleanInto, shouldRetainRecord), MemoryRecords.filterTo;
KIP-534 (delete horizon).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.log_format.batch_stream import BatchStream, check_crc
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.rewriting import (
    delete_horizon,
    empty_batch,
    rewritten_batch,
    timestamp_shift,
)
from bucketlog.tiered_storage.encryption.partition_seals import PartitionSeals
from bucketlog.tiered_storage.offset_map import CleaningVerdicts, OffsetMap, OpenBatch, open_batch

GROUP_BYTES = 4 * 1024 * 1024
"""Bytes of decompressed records that are worked on at once."""

_LATEST_MS = 2**63 - 1


class DirtyPart:
    """The first pass: puts the keys of the dirty part into `offsets`, which must be empty.

    `start` is where the last round ended. Batches that begin before it may be fed; records below it
    are not looked at. The round ends before `limit`, the first offset that may not be cleaned yet.
    It ends between batches if possible.
    """

    def __init__(
        self,
        offsets: OffsetMap,
        start: int,
        limit: int,
        *,
        group_bytes: int = GROUP_BYTES,
        seals: PartitionSeals | None = None,
    ) -> None:
        assert not offsets.entries, "a map serves one round"
        self._offsets = offsets
        self._start = start
        self._limit = limit
        self._end = start
        self._group_bytes_max = group_bytes
        self._seals = seals
        self._ended = False
        self._stream = BatchStream()
        self._group: list[OpenBatch] = []
        self._before: list[int] = []
        """For each batch of the group, the offset where the round would end if it ended before the
        batch."""
        self._group_bytes = 0

    def feed(self, piece: Buffer) -> bool:
        """Add a piece of the stored batches. Returns whether more is needed. Raises
        `InvalidDataError`."""
        if self._ended:
            return False
        for batch, header in self._stream.feed(piece):
            if header.next_offset <= self._start:
                continue
            if header.next_offset > self._limit:
                self._ended = True
                break
            if not self._open(batch, header):
                break
            self._end = header.next_offset
        return not self._ended

    def finish(self) -> int:
        """Return the offset at which the round ends; `start` if there is nothing to clean. Raises
        `InvalidDataError`."""
        if not self._ended:
            self._stream.finish()
        self._add()
        return self._end

    def _open(self, batch: memoryview, header: BatchHeader) -> bool:
        """Open a batch, and add it to the group. Returns False if the round has ended, somewhere in
        the group."""
        opened = open_batch(batch, header, self._seals)
        self._group.append(opened)
        self._before.append(self._end)
        self._group_bytes += len(opened.records)
        if self._group_bytes >= self._group_bytes_max:
            self._add()
        return not self._ended

    def _add(self) -> None:
        if not self._group:
            return
        split_first = self._before[0] <= self._start
        added = self._offsets.add(self._group, self._start, split_first=split_first)
        if added.full_at is not None:
            end = self._before[added.batches]
            self._end = end if end > self._start else added.full_at
            self._ended = True
        self._group, self._before, self._group_bytes = [], [], 0


@dataclass(slots=True)
class CleaningStats:
    """Counts of the batches, bytes and records that were read and kept. `keyless_records` were
    dropped because they have no key. `tombstones` are those that stayed in the batches that were
    opened."""

    batches_read: int = 0
    bytes_read: int = 0
    records_read: int = 0
    batches_kept: int = 0
    bytes_kept: int = 0
    records_kept: int = 0
    keyless_records: int = 0
    tombstones: int = 0


class CleaningRound(NamedTuple):
    """The offsets of a round. `start` is where the last round ended, `end` where this one does (as
    `DirtyPart` said). Batches that end at or before `log_start` are left out."""

    start: int
    end: int
    now_ms: int
    delete_retention_ms: int
    log_start: int = 0


class Cleaner:
    """The second pass: returns the batches of the partition without what the round removes.

    Feed it all batches from the log's start on, at least up to the round's end. The returned
    batches replace those that were fed.
    """

    def __init__(
        self,
        offsets: OffsetMap,
        cleaning: CleaningRound,
        *,
        group_bytes: int = GROUP_BYTES,
        seals: PartitionSeals | None = None,
    ) -> None:
        self.stats = CleaningStats()
        self._offsets = offsets
        self._round = cleaning
        self._group_bytes_max = group_bytes
        self._seals = seals
        self._horizon = min(cleaning.now_ms + cleaning.delete_retention_ms, _LATEST_MS)
        self._stream = BatchStream()
        self._pending: list[Buffer | OpenBatch] = []
        """Batches in order: those that are kept as they are, and those to be judged."""
        self._pending_bytes = 0

    def run(self, pieces: Iterable[Buffer]) -> Iterator[Buffer]:
        """Call `feed` for all pieces, and then `finish`."""
        for piece in pieces:
            yield from self.feed(piece)
        yield from self.finish()

    def feed(self, piece: Buffer) -> list[Buffer]:
        """Batches that are ready; those that did not change borrow from pieces fed so far. Raises
        `InvalidDataError`."""
        ready: list[Buffer] = []
        for batch, header in self._stream.feed(piece):
            self.stats.batches_read += 1
            self.stats.bytes_read += header.size_bytes
            self.stats.records_read += header.record_count
            taken = self._take(batch, header)
            if taken is not None:
                self._pending.append(taken)
            if isinstance(taken, OpenBatch):
                self._pending_bytes += len(taken.records)
            if self._pending_bytes >= self._group_bytes_max:
                ready += self._judge()
        return ready

    def finish(self) -> list[Buffer]:
        """The batches that are left. Raises `InvalidDataError` if the last one is cut short."""
        self._stream.finish()
        return self._judge()

    def _take(self, batch: memoryview, header: BatchHeader) -> Buffer | OpenBatch | None:
        is_in_round = self._round.log_start < header.next_offset
        is_in_round = is_in_round and header.base_offset < self._round.end
        if is_in_round:
            return open_batch(batch, header, self._seals)
        check_crc(batch, header)
        if header.base_offset >= self._round.end:
            return self._kept(batch, header.record_count)
        return self._dropped(header)

    def _horizon_of(self, header: BatchHeader) -> int | None:
        """Return the delete horizon that an earlier round has set, or None."""
        return delete_horizon(header) if header.next_offset <= self._round.start else None

    def _judge(self) -> list[Buffer]:
        """Decide on all that is pending."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        opened = [batch for batch in pending if isinstance(batch, OpenBatch)]
        if not opened:
            return [batch for batch in pending if not isinstance(batch, OpenBatch)]
        horizons = (self._horizon_of(batch.header) for batch in opened)
        past = [horizon is not None and horizon <= self._round.now_ms for horizon in horizons]
        judged = self._offsets.judge(opened, self._round.end, past)
        ready: list[Buffer] = []
        index = 0
        for batch in pending:
            if not isinstance(batch, OpenBatch):
                ready.append(batch)
                continue
            settled = self._settled(batch, judged, index)
            index += 1
            if settled is not None:
                ready.append(settled)
        return ready

    def _settled(self, opened: OpenBatch, judged: CleaningVerdicts, index: int) -> Buffer | None:
        header, verdict = opened.header, judged.verdicts[index]
        self.stats.keyless_records += verdict.keyless
        self.stats.tombstones += verdict.tombstones
        if not verdict.kept:
            return self._dropped(header)
        if (
            verdict.tombstones
            and header.next_offset <= self._round.end
            and self._horizon_of(header) is None
            and (shift := timestamp_shift(header, self._horizon)) is not None
            and (records := judged.records(index, shift)) is not None
        ):
            return self._rewritten(opened, records, verdict.kept, verdict.max_timestamp, True)
        if verdict.kept == header.record_count:
            return self._kept(opened.batch, header.record_count)
        records = judged.records(index, 0)
        assert records is not None, "nothing was added to the deltas"
        return self._rewritten(opened, records, verdict.kept, verdict.max_timestamp, False)

    def _rewritten(
        self, opened: OpenBatch, records: bytes, count: int, max_timestamp: int, horizon: bool
    ) -> Buffer:
        batch = rewritten_batch(
            opened.header,
            records,
            record_count=count,
            max_timestamp=max_timestamp,
            horizon=self._horizon if horizon else None,
        )
        stored = read_header(opened.batch)
        if stored.is_sealed and self._seals is not None:
            batch = self._seals.seal_as(opened.batch, stored, batch)
        return self._kept(batch, count)

    def _kept(self, batch: Buffer, records: int) -> Buffer:
        self.stats.batches_kept += 1
        self.stats.bytes_kept += len(batch)
        self.stats.records_kept += records
        return batch

    def _dropped(self, header: BatchHeader) -> Buffer | None:
        """Return None, or an empty batch if the batch is the last of the round."""
        if header.next_offset != self._round.end:
            return None
        return self._kept(empty_batch(header), 0)
