"""The records of a produced batch, checked before they are acknowledged.

Invariant: what `check_records` accepts, `records.decode_records` and Kafka's clients can read. The
checks are those of Apache Kafka's LogValidator, DefaultRecordBatch and DefaultRecord (4.3), and
stricter where Kafka accepts what a client cannot read: docs/decisions/0016-produced-records.md.

The loop over records is `record_kernel`, which LLVM compiles when it is first wanted, in less than
a tenth of a second; compiled code and codecs release the GIL. Without llvmlite it runs as Python.
"""

import ctypes
import importlib
from collections.abc import Callable
from dataclasses import dataclass
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
_OPTIMISED = 2
_Numbers = ctypes.c_int64 * NUMBERS
_Refused = ctypes.c_int64 * (REFUSED_RECORDS_MAX * REFUSED_COLUMNS)


@dataclass(frozen=True, slots=True)
class RecordRules:
    """What a topic asks of records. Timestamps, in milliseconds since 1970 UTC, from `earliest_ms`
    to `latest_ms` are accepted, and -1, which says that there is none; by default any is, as with
    LogAppendTime. `max_bytes` bounds the records of a batch, decompressed."""

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
        """`message.timestamp.before.max.ms` and `.after.max.ms`, seen at `now_ms`."""
        return cls(
            keys_required,
            max(now_ms - before_max_ms, _MIN_INT64),
            min(now_ms + after_max_ms, _MAX_INT64),
            max_bytes,
        )


class _Compiled(NamedTuple):
    """`check` is only valid as long as `engine`, which owns its code."""

    check: Callable[..., int]
    engine: Any


def check_records(batch: Buffer, header: BatchHeader, rules: RecordRules, where: str) -> int:
    """The largest timestamp of the batch's records, -1 at least, as its header should have it.

    `batch` begins at its base offset and passed `batch.check_produced`; `where` names the
    topic-partition in errors. Raises `InvalidBatchError`, `KeylessRecordsError` (INVALID_RECORD),
    `InvalidTimestampError`.
    """
    payload = memoryview(batch)[HEADER_LENGTH : header.size_bytes]
    raw: Buffer = payload
    if header.codec != Codec.NONE:
        raw = decompress(header.codec, payload, max_bytes=rules.max_bytes, single_frame=True)
    if header.record_count * MIN_RECORD_LENGTH > len(raw):
        raise InvalidBatchError(f"{header.record_count} records do not fit {len(raw)} bytes")
    numbers, refused = _Numbers(), _Refused()
    compiled = _compiled()
    fault = (compiled.check if compiled else record_kernel.check)(
        _address(raw) if compiled else raw,
        len(raw),
        header.record_count,
        header.base_timestamp,
        rules.keys_required,
        rules.earliest_ms,
        rules.latest_ms,
        refused,
        numbers,
    )
    if fault:
        raise InvalidBatchError(f"record {numbers[AT]} in {where}: {FAULTS[fault]}")
    if numbers[REFUSED]:
        raise _refusal(numbers, refused, rules, where)
    return numbers[LARGEST]


def _address(raw: Buffer) -> Any:
    """What ctypes passes as a pointer to the bytes; it keeps them where they are."""
    if isinstance(raw, memoryview) and raw.readonly:
        raw = bytes(raw)
    return raw if isinstance(raw, bytes) else ctypes.byref(ctypes.c_ubyte.from_buffer(raw))


def _refusal(
    numbers: "ctypes.Array[ctypes.c_int64]",
    refused: "ctypes.Array[ctypes.c_int64]",
    rules: RecordRules,
    where: str,
) -> KeylessRecordsError | InvalidTimestampError:
    """In Kafka's words. One timestamp out of range makes the batch's error INVALID_TIMESTAMP."""
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
    """Have the kernel compiled, if that is possible: call it before a broker listens."""
    return _compiled() is not None


@cache
def _compiled() -> _Compiled | None:
    """None where there is no llvmlite."""
    try:
        llvm: Any = importlib.import_module("llvmlite.binding")
    except ImportError:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    source = files(__package__).joinpath("record_kernel.ll").read_text("ascii")
    module = llvm.parse_assembly(source)
    machine = llvm.Target.from_default_triple().create_target_machine(opt=_OPTIMISED)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    number, row = ctypes.c_int64, ctypes.c_void_p
    prototype = ctypes.CFUNCTYPE(number, ctypes.c_void_p, *[number] * 6, row, row)
    return _Compiled(prototype(engine.get_function_address("check")), engine)
