"""Keys of records against a table of last offsets: loops, compiled by numba.

Invariant: the table is `tiered_storage.offset_map`'s: rows of a 128-bit keyed hash and the last
offset of that key, found by probing one row after another; an offset of -1 is a free row. Records
come as `bucketlog.log_format.scan.find_records` found them, and are not checked again.

The hash is SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, "SipHash: a fast
short-input PRF", and its reference code): additions, rotations and xors, nothing to overflow.
"""

import numpy as np
from numpy.typing import NDArray

from bucketlog.log_format.scan import compiled, varint, varlong

KEPT, TOMBSTONES, MAX_TIMESTAMP, KEYLESS = range(4)
VERDICT_COLUMNS = 4
"""A row for each batch: how many records stay, how many of these are tombstones, their highest
timestamp (-1 at least), how many records have no key."""

SPARE_BYTES = 16
"""How much longer a record may become in `copy_records`: two numbers of at most 10 and 5 bytes."""

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1


@compiled
def _rotated(word: np.uint64, bits: int) -> np.uint64:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@compiled
def _rounds(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, count: int
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    for _ in range(count):
        v0 = v0 + v1
        v1 = _rotated(v1, 13) ^ v0
        v0 = _rotated(v0, 32)
        v2 = v2 + v3
        v3 = _rotated(v3, 16) ^ v2
        v0 = v0 + v3
        v3 = _rotated(v3, 21) ^ v0
        v2 = v2 + v1
        v1 = _rotated(v1, 17) ^ v2
        v2 = _rotated(v2, 32)
    return v0, v1, v2, v3


@compiled
def siphash(
    data: NDArray[np.uint8], start: np.int64, end: np.int64, secret: NDArray[np.uint64]
) -> tuple[np.uint64, np.uint64]:
    """Both halves of the hash of `data[start:end]`; `secret` is two words."""
    v0 = np.uint64(0x736F6D6570736575) ^ secret[0]
    v1 = np.uint64(0x646F72616E646F6D) ^ secret[1] ^ np.uint64(0xEE)
    v2 = np.uint64(0x6C7967656E657261) ^ secret[0]
    v3 = np.uint64(0x7465646279746573) ^ secret[1]
    at = start
    while end - at >= 8:
        word = np.uint64(0)
        for index in range(8):
            word |= np.uint64(data[at + index]) << np.uint64(8 * index)
        v0, v1, v2, v3 = _rounds(v0, v1, v2, v3 ^ word, 2)
        v0 = v0 ^ word
        at += 8
    word = np.uint64((end - start) & 0xFF) << np.uint64(56)
    for index in range(end - at):
        word |= np.uint64(data[at + index]) << np.uint64(8 * index)
    v0, v1, v2, v3 = _rounds(v0, v1, v2, v3 ^ word, 2)
    v0 = v0 ^ word
    v0, v1, v2, v3 = _rounds(v0, v1, v2 ^ np.uint64(0xEE), v3, 4)
    first = v0 ^ v1 ^ v2 ^ v3
    v0, v1, v2, v3 = _rounds(v0, v1 ^ np.uint64(0xDD), v2, v3, 4)
    return first, v0 ^ v1 ^ v2 ^ v3


@compiled
def _row(
    hashes: NDArray[np.uint64], lasts: NDArray[np.int64], first: np.uint64, second: np.uint64
) -> np.int64:
    """Where the key is, or the free row where it would."""
    rows = np.int64(lasts.shape[0])
    row = np.int64(first % np.uint64(rows))
    while lasts[row] >= 0 and (hashes[row, 0] != first or hashes[row, 1] != second):
        row += 1
        if row == rows:
            row = np.int64(0)
    return row


@compiled
def put_keys(
    data: NDArray[np.uint8],
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    bounds: NDArray[np.int32],
    key_is_null: NDArray[np.bool_],
    secret: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    lasts: NDArray[np.int64],
    room: int,
    start: int,
    split_first: bool,
) -> tuple[int, int, int]:
    """Put the keys of records from offset `start` on into the table, at most `room` new ones.

    Answers how many batches are in it whole, how many keys are new, and the offset of the first
    record that found no room (-1: all are in). A batch that does not fit whole leaves no trace,
    except the first if `split_first`.
    """
    longest = np.int64(0)
    for batch in range(counts.shape[0]):
        longest = max(longest, counts[batch])
    touched = np.empty(longest, np.int64)
    before = np.empty(longest, np.int64)
    new = 0
    record = 0
    for batch in range(counts.shape[0]):
        steps = 0
        for _ in range(counts[batch]):
            if key_is_null[record] or offsets[record] < start:
                record += 1
                continue
            first, second = siphash(
                data, np.int64(bounds[record, 0]), np.int64(bounds[record, 1]), secret
            )
            row = _row(hashes, lasts, first, second)
            if lasts[row] < 0:
                if new == room:
                    if batch > 0 or not split_first:
                        while steps:
                            steps -= 1
                            lasts[touched[steps]] = before[steps]
                            if before[steps] < 0:
                                new -= 1
                    return batch, new, offsets[record]
                hashes[row, 0], hashes[row, 1] = first, second
                new += 1
            touched[steps], before[steps] = row, lasts[row]
            steps += 1
            lasts[row] = offsets[record]
            record += 1
    return counts.shape[0], new, -1


@compiled
def judge_records(
    data: NDArray[np.uint8],
    counts: NDArray[np.int64],
    offsets: NDArray[np.int64],
    timestamps: NDArray[np.int64],
    bounds: NDArray[np.int32],
    key_is_null: NDArray[np.bool_],
    value_is_null: NDArray[np.bool_],
    secret: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    lasts: NDArray[np.int64],
    end: int,
    drops_tombstones: NDArray[np.bool_],
    keep: NDArray[np.bool_],
    verdicts: NDArray[np.int64],
) -> None:
    """Say of each record whether it stays (`keep`), and of each batch what that comes to."""
    record = 0
    for batch in range(counts.shape[0]):
        kept, tombstones, keyless = 0, 0, 0
        highest = np.int64(-1)
        for _ in range(counts[batch]):
            stays = True
            if offsets[record] < end:
                if key_is_null[record]:
                    stays = False
                    keyless += 1
                elif value_is_null[record] and drops_tombstones[batch]:
                    stays = False
                else:
                    first, second = siphash(
                        data, np.int64(bounds[record, 0]), np.int64(bounds[record, 1]), secret
                    )
                    stays = offsets[record] >= lasts[_row(hashes, lasts, first, second)]
            keep[record] = stays
            if stays:
                kept += 1
                tombstones += value_is_null[record]
                highest = max(highest, timestamps[record])
            record += 1
        verdicts[batch, KEPT], verdicts[batch, TOMBSTONES] = kept, tombstones
        verdicts[batch, MAX_TIMESTAMP], verdicts[batch, KEYLESS] = highest, keyless


@compiled
def _put_number(out: NDArray[np.uint8], at: np.int64, value: np.int64) -> np.int64:
    """Zigzag, seven bits a byte; where it ends."""
    rest = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> np.int64(63))
    while rest >= np.uint64(0x80):
        out[at] = np.uint8((rest & np.uint64(0x7F)) | np.uint64(0x80))
        rest >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@compiled
def copy_records(
    data: NDArray[np.uint8],
    start: int,
    end: int,
    keep: NDArray[np.bool_],
    shift: int,
    out: NDArray[np.uint8],
) -> int:
    """As `bucketlog.log_format.rewriting.copy_records`; the length of what is in `out`, or -1."""
    at, filled = np.int64(start), np.int64(0)
    for record in range(keep.shape[0]):
        begin = at
        length, at = varint(data, at, np.int64(end))
        stop = at + length
        if keep[record] and not shift:
            size = stop - begin
            out[filled : filled + size] = data[begin:stop]
            filled += size
        elif keep[record]:
            delta, rest = varlong(data, at + 1, stop)
            if shift > 0 and delta > _MAX_INT64 - shift:
                return -1
            if shift < 0 and delta < _MIN_INT64 - shift:
                return -1
            after = _put_number(out, filled, delta + shift)  # to learn how long it is
            size = stop - rest
            filled = _put_number(out, filled, 1 + after - filled + size)
            out[filled] = data[at]
            filled = _put_number(out, filled + 1, delta + shift)
            out[filled : filled + size] = data[rest:stop]
            filled += size
        at = stop
    return int(filled)
