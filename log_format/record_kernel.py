"""The loop over the records of a produced batch: the source of `record_kernel.ll`.

`scripts/kernels.py` compiles this file with numba into LLVM's intermediate representation.
When a broker starts, `record_check` lets LLVM compile this representation to machine code. The code
must behave alike in Python and numba. So it uses only integers and bytes by index, calls only
functions of this file, raises no exceptions, and keeps all sums within signed 64 bits. Invariant:
every read is bounded by the record's end, and each record's end by the batch's end. Sources:
Kafka's DefaultRecord and LogValidator.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

LARGEST, REFUSED, OUT_OF_RANGE, AT, NUMBERS = range(5)
"""Indexes of `check`'s `numbers`: the largest timestamp (at least -1), the number of refused
records, the number of those refused only for their timestamp, and the current record."""

REFUSED_RECORDS_MAX = 100
"""The maximum number of a batch's refused records that a response names (KIP-467)."""

REFUSED_COLUMNS = 3
"""Columns of a row in `check`'s `refused`: offset delta, timestamp, whether the key is missing."""

FAULTS = (
    "",
    "its length does not fit the bytes that are left",
    "its timestamp is cut short or overflows",
    "its offset delta is not its place in the batch",
    "its key does not fit",
    "its value does not fit",
    "its headers do not fit",
    "a header's key is null, does not fit, or is not UTF-8",
    "bytes follow its headers",
    "bytes follow the last record",
    "its attributes have the highest bit, which is unused and which kafka-python misreads",
)
"""The faults that `check` returns, by number; 0 if all records are valid."""

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1

Bytes: TypeAlias = Sequence[int]
Filled: TypeAlias = Any
"""A row of 64-bit integers."""


def varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The number at `at` and its end; the end is -1 if the number is cut short or too long."""
    value = shift = 0
    while at < end and shift < 35:
        byte = data[at] & 0xFF
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 32:
                return 0, -1
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    return 0, -1


def varlong(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Like `varint`, with 64 bits."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at] & 0xFF
        at += 1
        if shift == 63 and byte > 1:
            return 0, -1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return ((value >> 1) & _MAX_INT64) ^ -(value & 1), at
        shift += 7
    return 0, -1


def is_utf8(data: Bytes, at: int, end: int) -> bool:
    """Whether the bytes follow RFC 3629: no overlong forms, surrogates, or code points above
    U+10FFFF."""
    while at < end:
        first = data[at] & 0xFF
        at += 1
        if first < 0x80:
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if more > end - at:
            return False
        low = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
        high = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
        for _ in range(more):
            byte = data[at] & 0xFF
            if byte < low or byte > high:
                return False
            low, high = 0x80, 0xBF
            at += 1
    return True


def headers(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The fault of a record's headers (0: none), and the end of the headers."""
    count, at = varint(data, at, end)
    if at < 0 or count < 0 or count * 2 > end - at:
        return 6, at
    for _ in range(count):
        name, at = varint(data, at, end)
        if at < 0 or name < 0 or name > end - at or not is_utf8(data, at, at + name):
            return 7, at
        at += name
        content, at = varint(data, at, end)
        if at < 0 or content < -1 or content > end - at:
            return 6, at
        if content > 0:
            at += content
    return 0, at


def check(
    data: Bytes,
    at: int,
    size: int,
    count: int,
    last_delta: int,
    base_timestamp: int,
    keys_required: int,
    earliest: int,
    latest: int,
    refused: Filled,
    numbers: Filled,
) -> int:
    """The first of `FAULTS` in the `count` records of `data[at:size]`. Their offset deltas ascend
    up to `last_delta`, without gaps if there are `last_delta` + 1 records. `refused` has room for
    `REFUSED_RECORDS_MAX` rows. As in Kafka's LogValidator, a record is refused for a missing key
    first, then for a timestamp other than -1 that is out of range."""
    largest, refusals, out_of_range = -1, 0, 0
    delta = -1
    for record in range(count):
        numbers[AT] = record
        length, at = varint(data, at, size)
        if at < 0 or length < 1 or length > size - at:
            return 1
        end = at + length
        if data[at] >= 0x80:
            return 10
        elapsed, at = varlong(data, at + 1, end)
        if at < 0 or (elapsed > 0 and base_timestamp > _MAX_INT64 - elapsed):
            return 2
        if elapsed < 0 and base_timestamp < _MIN_INT64 - elapsed:
            return 2
        timestamp = base_timestamp + elapsed
        before = delta
        delta, at = varint(data, at, end)
        if at < 0 or delta <= before or delta > last_delta:
            return 3
        key, at = varint(data, at, end)
        if at < 0 or key < -1 or key > end - at:
            return 4
        if key > 0:
            at += key
        value, at = varint(data, at, end)
        if at < 0 or value < -1 or value > end - at:
            return 5
        if value > 0:
            at += value
        fault, at = headers(data, at, end)
        if fault:
            return fault
        if at != end:
            return 8
        is_keyless = keys_required != 0 and key < 0
        if is_keyless or (timestamp != -1 and (timestamp < earliest or timestamp > latest)):
            if refusals < REFUSED_RECORDS_MAX:
                row = refusals * REFUSED_COLUMNS
                refused[row], refused[row + 1] = delta, timestamp
                refused[row + 2] = 1 if is_keyless else 0
            refusals += 1
            if not is_keyless:
                out_of_range += 1
        if timestamp > largest:
            largest = timestamp
    if at != size:
        return 9
    numbers[LARGEST], numbers[REFUSED], numbers[OUT_OF_RANGE] = largest, refusals, out_of_range
    return 0
