"""Decodes and checks plain Produce requests in one call of compiled code.

Many clients send one small batch in each request. The hand-written decoder and the checks of
batches and records make many Python calls for such a request. `plain_produce_kernel` says which
requests are plain, and makes one pass over their bytes. `produce`, `batch` and `record_check`
decode and check all other requests, and all requests without llvmlite.

Invariant: these three modules would accept every request that `PlainProduceScanner` accepts, and
would decode the same values. The rules of the topic are checked elsewhere. A test compares the
scanner with these modules.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from bucketlog.log_format.batch import BatchHeader, crc_holds
from bucketlog.log_format.machine_code import machine_code
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.record_kernel import REFUSED_COLUMNS, REFUSED_RECORDS_MAX
from bucketlog.log_format.wire import plain_produce_kernel
from bucketlog.log_format.wire.plain_produce_kernel import SCANNED, VERSION
from bucketlog.log_format.wire.produce import TOPIC_IDS_FROM


class PlainProduce(NamedTuple):
    """A Produce request with one valid batch. `topic` is the topic's name, or the topic's id from
    version 13 on. `acks` is 1 or -1. `records` is a view of the batch in the frame."""

    client_id: str
    acks: int
    timeout_ms: int
    topic: str | TopicId
    partition: int
    records: memoryview
    header: BatchHeader


class _Compiled(NamedTuple):
    """`scan` is valid only during the lifetime of `engine`, which owns the code. The call keeps
    the GIL, because releasing the GIL takes longer than the scan of a small request."""

    scan: Callable[..., int]
    engine: Any


class PlainProduceScanner:
    """Finds and decodes plain requests. Use a scanner in one thread, because calls share memory for
    results."""

    def __init__(self, *, request_bytes_max: int) -> None:
        """Requests longer than `request_bytes_max` bytes are not plain."""
        self._bytes_max = request_bytes_max
        self._numbers = (ctypes.c_int64 * SCANNED)()
        self._refused = (ctypes.c_int64 * (REFUSED_RECORDS_MAX * REFUSED_COLUMNS))()

    def scan(self, frame: bytearray) -> PlainProduce | None:
        """Decode `frame`: a request of a served version, with its header. Returns None if the
        request is not plain or not valid, or if llvmlite is not installed."""
        size, compiled = len(frame), _compiled()
        if size > self._bytes_max or compiled is None:
            return None
        address = ctypes.byref(ctypes.c_ubyte.from_buffer(frame))
        if not compiled.scan(address, size, self._refused, self._numbers):
            return None
        (
            version,
            _,
            client_at,
            client_bytes,
            acks,
            timeout_ms,
            topic_at,
            topic_bytes,
            partition,
            records_at,
            records_end,
            *fields,
        ) = self._numbers[VERSION:SCANNED]
        header = BatchHeader._make(fields)
        data = memoryview(frame)
        records = data[records_at:records_end]
        if not crc_holds(records, header):
            return None
        topic: str | TopicId
        name = data[topic_at : topic_at + topic_bytes]
        try:
            client_id = (
                str(data[client_at : client_at + client_bytes], "utf-8") if client_bytes > 0 else ""
            )
            topic = TopicId(bytes(name)) if version >= TOPIC_IDS_FROM else str(name, "utf-8")
        except UnicodeDecodeError:
            return None
        return PlainProduce(client_id, acks, timeout_ms, topic, partition, records, header)


def warm_up() -> bool:
    """Compile the kernel. Returns False if llvmlite is not installed. Call this before a broker
    listens."""
    return _compiled() is not None


@cache
def _compiled() -> _Compiled | None:
    """Compile the kernel. Returns None if llvmlite is not installed."""
    source = files(__package__).joinpath("plain_produce_kernel.ll")
    code = machine_code(source, plain_produce_kernel.scan.__name__, compiles_quickly=True)
    if code is None:
        return None
    number, row = ctypes.c_int64, ctypes.c_void_p
    scan = ctypes.PYFUNCTYPE(number, row, number, row, row)
    return _Compiled(scan(code.address), code.engine)
