"""Validates the records of a produced batch before they are acknowledged.

Invariant: `records.decode_records` and Kafka's clients can read all records that `check_records`
accepts. The checks are those of Apache Kafka's LogValidator, DefaultRecordBatch and DefaultRecord
(4.3). They are stricter if Kafka accepts records that a client cannot read:
docs/decisions/0016-produced-records.md.

`record_kernel` loops over the records. LLVM compiles it at its first use, in less than a tenth of a
second. Compiled code and codecs release the GIL. Without llvmlite, the kernel runs as Python.
"""

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from bucketlog.log_format import record_kernel
from bucketlog.log_format.batch import (
    HEADER_LENGTH,
    MIN_RECORD_LENGTH,
    BatchHeader,
    Codec,
    InvalidBatchError,
    InvalidTimestampError,
    KeylessRecordsError,
    RefusedRecord,
)
from bucketlog.log_format.compression import MAX_DECOMPRESSED_BYTES, decompress
from bucketlog.log_format.machine_code import machine_code
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.record_kernel import (
    AT,
    FAULTS,
    LARGEST,
    NUMBERS,
    OUT_OF_RANGE,
    REFUSED,
    REFUSED_COLUMNS,
    REFUSED_RECORDS_MAX,
)

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
_OUT_OF_RANGE_REASON = (
    "Timestamp {} of message with offset {} is out of range. The timestamp should be within {}"
)
_SMALL_BYTES = 16 * 1024


class RecordRules(NamedTuple):
    """A topic's requirements for records. Timestamps are in milliseconds since 1970 UTC. Those from
    `earliest_ms` to `latest_ms` are accepted, and -1 (no timestamp). By default all timestamps are
    accepted, as with LogAppendTime. `max_bytes` bounds the decompressed records of a batch."""

    keys_required: bool = False
    earliest_ms: int = _MIN_INT64
    latest_ms: int = _MAX_INT64
    max_bytes: int = MAX_DECOMPRESSED_BYTES

    @classmethod
    def of(
        cls,
        *,
        keys_required: bool,
        now_ms: int,
        before_max_ms: int,
        after_max_ms: int,
        max_bytes: int,
    ) -> "RecordRules":
        """Rules from `message.timestamp.before.max.ms` and `.after.max.ms` at `now_ms`."""
        return cls(
            keys_required,
            max(now_ms - before_max_ms, _MIN_INT64),
            min(now_ms + after_max_ms, _MAX_INT64),
            max_bytes,
        )


class _Compiled(NamedTuple):
    """The functions are valid only during the lifetime of `engine`, which owns the code.
    `check_small` keeps the GIL: for a few records, releasing it costs more than the check."""

    check: Callable[..., int]
    check_small: Callable[..., int]
    engine: Any


class _Results(threading.local):
    """Memory for the results of a check. Each thread reuses its own: batches may be tiny."""

    def __init__(self) -> None:
        self.numbers = (ctypes.c_int64 * NUMBERS)()
        self.refused = (ctypes.c_int64 * (REFUSED_RECORDS_MAX * REFUSED_COLUMNS))()


_results = _Results()


def check_records(batch: Buffer, header: BatchHeader, rules: RecordRules, where: str) -> int:
    """The largest timestamp of the batch's records, at least -1, which the header should have.

    `batch` starts at its base offset and has passed `batch.check_produced` or `check_mirrored`;
    `where` names the topic-partition in errors. Raises `InvalidBatchError`, `KeylessRecordsError`
    (INVALID_RECORD), `InvalidTimestampError`.
    """
    _walk(batch, header, rules, where)
    if _results.numbers[REFUSED]:
        raise _refusal(_results.numbers, _results.refused, rules, where)
    return _results.numbers[LARGEST]


def first_since(
    batch: Buffer, header: BatchHeader, since_ms: int, *, max_bytes: int
) -> tuple[int, int] | None:
    """Timestamp and offset of the batch's first record with a timestamp of at least `since_ms`,
    which is at least 0; None if there is no such record. `max_bytes` bounds the decompressed
    records. Raises `InvalidBatchError`."""
    _walk(batch, header, RecordRules(latest_ms=since_ms - 1, max_bytes=max_bytes), "a stored batch")
    if not _results.numbers[REFUSED]:
        return None
    return _results.refused[1], header.base_offset + _results.refused[0]


def _walk(batch: Buffer, header: BatchHeader, rules: RecordRules, where: str) -> None:
    """Fill this thread's `_results`. Raises `InvalidBatchError`."""
    payload = memoryview(batch)[HEADER_LENGTH : header.size_bytes]
    raw: Buffer = payload
    if header.codec != Codec.NONE:
        raw = decompress(header.codec, payload, max_bytes=rules.max_bytes, single_frame=True)
    if header.record_count * MIN_RECORD_LENGTH > len(raw):
        raise InvalidBatchError(f"{header.record_count} records do not fit {len(raw)} bytes")
    numbers, refused = _results.numbers, _results.refused
    compiled = _compiled()
    check: Callable[..., int] = record_kernel.check
    if compiled:
        check = compiled.check_small if len(raw) <= _SMALL_BYTES else compiled.check
    fault = check(
        _address(raw) if compiled else raw,
        0,
        len(raw),
        header.record_count,
        header.last_offset_delta,
        header.base_timestamp,
        rules.keys_required,
        rules.earliest_ms,
        rules.latest_ms,
        refused,
        numbers,
    )
    if fault:
        raise InvalidBatchError(f"record {numbers[AT]} in {where}: {FAULTS[fault]}")


def _address(raw: Buffer) -> Any:
    """The pointer to the bytes for ctypes, which keeps the bytes at their address."""
    if isinstance(raw, memoryview) and raw.readonly:
        raw = bytes(raw)
    return raw if isinstance(raw, bytes) else ctypes.byref(ctypes.c_ubyte.from_buffer(raw))


def _refusal(
    numbers: "ctypes.Array[ctypes.c_int64]",
    refused: "ctypes.Array[ctypes.c_int64]",
    rules: RecordRules,
    where: str,
) -> KeylessRecordsError | InvalidTimestampError:
    """The error in Kafka's words: INVALID_TIMESTAMP if any record's timestamp is out of range."""
    keyless = f"Compacted topic cannot accept message without key in topic partition {where}."
    span = f"[{rules.earliest_ms}, {rules.latest_ms}]"
    named = []
    for row in range(min(numbers[REFUSED], REFUSED_RECORDS_MAX)):
        start = row * REFUSED_COLUMNS
        at, timestamp, is_keyless = refused[start : start + REFUSED_COLUMNS]
        reason = keyless if is_keyless else _OUT_OF_RANGE_REASON.format(timestamp, at, span)
        named.append(RefusedRecord(at, reason))
    if numbers[OUT_OF_RANGE]:
        return InvalidTimestampError(
            "One or more records have been rejected due to invalid timestamp", tuple(named)
        )
    return KeylessRecordsError(keyless, tuple(named))


def warm_up() -> bool:
    """Compile the kernel if llvmlite is installed. Call this before a broker listens."""
    return _compiled() is not None


@cache
def _compiled() -> _Compiled | None:
    """Compile the kernel. Returns None without llvmlite."""
    code = machine_code(files(__package__).joinpath("record_kernel.ll"), "check")
    if code is None:
        return None
    number, row = ctypes.c_int64, ctypes.c_void_p
    types = (number, ctypes.c_void_p, *[number] * 8, row, row)
    return _Compiled(
        ctypes.CFUNCTYPE(*types)(code.address), ctypes.PYFUNCTYPE(*types)(code.address), code.engine
    )
