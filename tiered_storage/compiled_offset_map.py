"""The bounded map of key compaction by compiled code (extra `[arrow]`).

Invariant: answers and refusals are those of `tiered_storage.offset_map.PlainOffsetMap`, and so are
the bytes of rewritten records; a test holds them together. Batches are worked on many at a time:
their records are in one piece of memory, and no Python object is made per record.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bucketlog.log_format import key_scan, scan
from bucketlog.log_format.batch import LOG_APPEND_TIME
from bucketlog.log_format.records import decode_payload
from bucketlog.tiered_storage.offset_map import AddResult, OpenBatch, Verdict, capacity


class CompiledOffsetMap:
    def __init__(self, slots: int, secret: bytes) -> None:
        self.slots = slots
        self.capacity = capacity(slots)
        self.entries = 0
        self._secret = np.frombuffer(secret, "<u8").astype(np.uint64)
        self._hashes = np.empty((slots, 2), np.uint64)
        self._lasts = np.full(slots, -1, np.int64)

    def add(self, batches: Sequence[OpenBatch], start: int, *, split_first: bool) -> AddResult:
        if not batches:
            return AddResult(0, None)
        source = _Source(batches)
        whole, new, full_at = key_scan.put_keys(
            source.data,
            source.counts,
            source.found.offsets,
            source.found.bounds,
            source.found.key_is_null,
            self._secret,
            self._hashes,
            self._lasts,
            self.capacity - self.entries,
            start,
            split_first,
        )
        self.entries += new
        return AddResult(whole, full_at if full_at >= 0 else None)

    def judge(
        self, batches: Sequence[OpenBatch], end: int, drops_tombstones: Sequence[bool]
    ) -> "_CompiledVerdicts":
        source = _Source(batches)
        found = source.found
        keep = np.empty(len(found.offsets), np.bool_)
        verdicts = np.empty((len(batches), key_scan.VERDICT_COLUMNS), np.int64)
        key_scan.judge_records(
            source.data,
            source.counts,
            found.offsets,
            found.timestamps,
            found.bounds,
            found.key_is_null,
            found.value_is_null,
            self._secret,
            self._hashes,
            self._lasts,
            end,
            np.array(drops_tombstones, np.bool_),
            keep,
            verdicts,
        )
        return _CompiledVerdicts(source, keep, verdicts)


class _Source:
    """The records of all batches in one piece, and the position of each batch's records."""

    def __init__(self, batches: Sequence[OpenBatch]) -> None:
        self.table = np.zeros((len(batches), scan.TABLE_COLUMNS), np.int64)
        start = 0
        for row, (_, header, records) in enumerate(batches):
            self.table[row] = (
                start,
                start + len(records),
                header.record_count,
                header.base_offset,
                header.last_offset_delta,
                header.base_timestamp,
                header.max_timestamp,
                bool(header.attributes & LOG_APPEND_TIME),
            )
            start += len(records)
        joined = batches[0].records if len(batches) == 1 else b"".join(b.records for b in batches)
        self.data = np.frombuffer(joined, np.uint8)
        self.counts = self.table[:, scan.COUNT].copy()
        self.found = scan.RecordScan.allocate(int(self.counts.sum()))
        bad = scan.find_records(self.data, self.table, *self.found)
        if bad >= 0:
            decode_payload(batches[bad].records, batches[bad].header)
            raise AssertionError("the two decoders disagree")  # a defect, never data


class _CompiledVerdicts:
    def __init__(
        self, source: _Source, keep: NDArray[np.bool_], verdicts: NDArray[np.int64]
    ) -> None:
        self.verdicts = [Verdict(*row) for row in verdicts.tolist()]
        self._source = source
        self._keep = keep
        self._firsts = np.cumsum(source.counts) - source.counts

    def records(self, index: int, shift: int) -> bytes | None:
        start, end = self._source.table[index, : scan.END + 1].tolist()
        first, count = int(self._firsts[index]), int(self._source.counts[index])
        out = np.empty(end - start + key_scan.SPARE_BYTES * count, np.uint8)
        keep = self._keep[first : first + count]
        size = key_scan.copy_records(self._source.data, start, end, keep, shift, out)
        return out[:size].tobytes() if size >= 0 else None
