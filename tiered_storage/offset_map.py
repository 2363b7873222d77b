"""The bounded map of key compaction: the last offset of each key of the dirty part.

Invariant: a map takes `slots` x 24 bytes, whatever the number of keys: 16 bytes of a keyed hash of
the key and 8 of its offset, in one table with open addressing (as Kafka's SkimpyOffsetMap, whose
hash is MD5). A full map reports this, and holds only whole batches. The round of cleaning then ends
there, and the next one begins there.

Two keys with one hash would cost the older one its last record. Among n keys, the chance of this is
n^2 / 2^129 at most (5 million keys: 4e-26). Nobody can improve on it by choosing keys, because the
hash is keyed by a secret of this round alone. So `secret` must be random, 16 bytes, new each round.
Compiled code uses SipHash-2-4 of 128 bits, plain code keyed BLAKE2b (both are pseudorandom
functions): they remove the same records.
"""

import hashlib
import importlib.util
import struct
from array import array
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from bucketlog.log_format.batch import BatchHeader, InvalidBatchError
from bucketlog.log_format.batch_stream import check_crc
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import NO_TIMESTAMP, Buffer
from bucketlog.log_format.records import DecodedRecord, decode_payload, records_payload
from bucketlog.log_format.rewriting import copy_records
from bucketlog.tiered_storage.encryption.partition_seals import PartitionSeals

ENTRY_BYTES = 24
SECRET_BYTES = 16
MAP_BYTES_MIN = 2 * ENTRY_BYTES
LOAD_MAX = 0.8
"""Part of the slots that may be taken. With more, probing gets long. Kafka's
`log.cleaner.io.buffer.load.factor` is 0.9, and its probes are not neighbours."""

_HASH = struct.Struct("<QQ")


class OpenBatch(NamedTuple):
    """A batch whose CRC holds, as it is stored, and its records, decompressed. Both may be
    borrowed. `header` is the header without a seal."""

    batch: memoryview
    header: BatchHeader
    records: Buffer


def open_batch(
    batch: memoryview, header: BatchHeader, seals: PartitionSeals | None = None
) -> OpenBatch:
    """Open a batch. `seals` open encrypted batches. Raises `InvalidDataError` (CRC, seal, codec,
    counts), which names the offset, and the errors of `seals`."""
    check_crc(batch, header)
    plain: Buffer = batch
    plain_header = header
    if header.is_sealed and seals is not None:
        opened = seals.open(batch, header)
        plain, plain_header = opened.joined(), opened.header
    try:
        return OpenBatch(batch, plain_header, records_payload(plain, plain_header))
    except InvalidBatchError as error:
        raise InvalidBatchError(
            f"the batch at offset {header.base_offset}: {error.message}", remedy=error.remedy
        ) from error


class AddResult(NamedTuple):
    """The number of batches that are in the map as a whole, and the first offset that is not in it;
    None if the map is not full."""

    batches: int
    full_at: int | None


class Verdict(NamedTuple):
    """The result for a batch: the number of records that stay, how many of these are tombstones,
    their highest timestamp (-1 at least), and the number of records without a key."""

    kept: int
    tombstones: int
    max_timestamp: int
    keyless: int


class CleaningVerdicts(Protocol):
    @property
    def verdicts(self) -> Sequence[Verdict]:
        """The verdict for each batch that was judged, in order."""

    def records(self, index: int, shift: int) -> bytes | None:
        """The records of that batch that stay, as `rewriting.copy_records` gives them."""


class OffsetMap(Protocol):
    slots: int
    capacity: int
    entries: int

    def add(self, batches: Sequence[OpenBatch], start: int, *, split_first: bool) -> AddResult:
        """Put in the keys of records from offset `start` on. A batch whose keys do not all fit
        leaves nothing behind; the first one does if `split_first`: the map then ends inside it."""

    def judge(
        self, batches: Sequence[OpenBatch], end: int, drops_tombstones: Sequence[bool]
    ) -> CleaningVerdicts:
        """Judge the records of the batches. A record below `end` stays if it has a key, no higher
        offset of the key is in the map, and it is not a tombstone, or tombstones may stay (a word
        for each batch). All other records stay."""


def offset_map(
    map_bytes_max: int, secret: bytes, *, keys_max: int | None = None, compiled: bool | None = None
) -> OffsetMap:
    """Return an empty map of at most `map_bytes_max` bytes.

    `keys_max` is the largest possible number of keys, if it is known; it makes the map smaller.
    `compiled` chooses the code; None takes compiled code if numba and numpy are installed.
    """
    if map_bytes_max < MAP_BYTES_MIN:
        raise ConfigurationError(
            f"a map of {map_bytes_max} bytes holds no key", remedy=f"at least {MAP_BYTES_MIN}"
        )
    slots = map_bytes_max // ENTRY_BYTES
    if keys_max is not None:
        slots = min(slots, max(2, int(keys_max / LOAD_MAX) + 2))
    if compiled is None:
        compiled = all(importlib.util.find_spec(name) for name in ("numba", "numpy"))
    if compiled:
        module = importlib.import_module("bucketlog.tiered_storage.compiled_offset_map")
        made: OffsetMap = module.CompiledOffsetMap(slots, secret)
        return made
    return PlainOffsetMap(slots, secret)


def capacity(slots: int) -> int:
    """Return the number of keys that a table can hold. At least one slot stays free, or a search
    would not end."""
    return max(1, min(int(slots * LOAD_MAX), slots - 1))


class PlainOffsetMap:
    """A map for installations without numba: the same table, far slower."""

    def __init__(self, slots: int, secret: bytes) -> None:
        self.slots = slots
        self.capacity = capacity(slots)
        self.entries = 0
        self._secret = secret
        self._first = array("Q", bytes(8 * slots))
        self._second = array("Q", bytes(8 * slots))
        self._last = array("q", b"\xff" * (8 * slots))

    def add(self, batches: Sequence[OpenBatch], start: int, *, split_first: bool) -> AddResult:
        for index, (_, header, payload) in enumerate(batches):
            undo: list[tuple[int, int]] = []
            for record in decode_payload(payload, header):
                if record.key is None or record.offset < start:
                    continue
                row, first, second = self._row(record.key)
                before = self._last[row]
                if before < 0 and self.entries == self.capacity:
                    if index or not split_first:
                        self._undo(undo)
                    return AddResult(index, record.offset)
                self._first[row], self._second[row] = first, second
                self._last[row] = record.offset
                self.entries += before < 0
                undo.append((row, before))
        return AddResult(len(batches), None)

    def judge(
        self, batches: Sequence[OpenBatch], end: int, drops_tombstones: Sequence[bool]
    ) -> "_PlainVerdicts":
        keeps, verdicts = [], []
        for (_, header, payload), drops in zip(batches, drops_tombstones, strict=True):
            records = decode_payload(payload, header)
            keep = [record.offset >= end or self._stays(record, drops) for record in records]
            kept = [record for record, stays in zip(records, keep, strict=True) if stays]
            keeps.append(keep)
            verdicts.append(
                Verdict(
                    len(kept),
                    sum(record.value is None for record in kept),
                    max([NO_TIMESTAMP, *(record.timestamp for record in kept)]),
                    sum(record.key is None and record.offset < end for record in records),
                )
            )
        return _PlainVerdicts(batches, keeps, verdicts)

    def _stays(self, record: DecodedRecord, drops_tombstones: bool) -> bool:
        if record.key is None or (record.value is None and drops_tombstones):
            return False
        return record.offset >= self._last[self._row(record.key)[0]]

    def _row(self, key: bytes) -> tuple[int, int, int]:
        """Return the row of the key, or the free row for it; and the two parts of the key's
        hash."""
        digest = hashlib.blake2b(key, digest_size=_HASH.size, key=self._secret).digest()
        first, second = _HASH.unpack(digest)
        row = first % self.slots
        while self._last[row] >= 0 and (self._first[row], self._second[row]) != (first, second):
            row = (row + 1) % self.slots
        return row, first, second

    def _undo(self, steps: list[tuple[int, int]]) -> None:
        for row, before in reversed(steps):
            self._last[row] = before
            self.entries -= before < 0


class _PlainVerdicts:
    def __init__(
        self,
        batches: Sequence[OpenBatch],
        keeps: Sequence[Sequence[bool]],
        verdicts: Sequence[Verdict],
    ) -> None:
        self.verdicts = verdicts
        self._batches = batches
        self._keeps = keeps

    def records(self, index: int, shift: int) -> bytes | None:
        return copy_records(bytes(self._batches[index].records), self._keeps[index], shift)
