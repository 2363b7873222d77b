"""The records that `benchmarks.spark_replay` reads, sent by librdkafka.

Keys are `key000` to `key099` in turn, values 100 bytes, half words and half noise, as log records
compress. Invariant: which record stands at which offset of which partition depends on the counts
alone, so that two systems that were sent the same hold the same.
"""

import ctypes
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.librdkafka import Message, open_producer

KEYS = 100
VALUE_BYTES = 100
_KEY_BYTES = 6
_POOL_RECORDS = 200_000
_RECORDS_PER_CALL = 5_000
_WAITING_MAX = 500_000
_ALLOWED_WAIT_S = 120.0
_WORDS = (b"carrier", b"origin", b"dest", b"delay", b"2013-01-01", b"tail", b"distance", b"EWR")


def producer_settings(bootstrap: str, codec: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "acks": "all",
        "compression.codec": codec,
        "linger.ms": "50",
        "batch.size": "1000000",
        "batch.num.messages": "1000000",
        "message.max.bytes": "1000000",
        "queue.buffering.max.kbytes": str(1024 * 1024),
        "queue.buffering.max.messages": str(2 * _WAITING_MAX),
        "enable.idempotence": "false",
    }


def send_records(bootstrap: str, topic: str, records: int, partitions: int, codec: str) -> None:
    """Returns when all are acknowledged. Raises `ClientError`."""
    pool = _Pool()
    settings = producer_settings(bootstrap, codec)
    with open_producer(
        settings, topic, record_bytes=VALUE_BYTES, sample_every=1_000_000_000
    ) as producer:
        for number, (rows, count) in enumerate(pool.slices(records)):
            taken = producer.send_rows(number % partitions, rows, count)
            if taken < count:
                raise RuntimeError(f"librdkafka took {taken} of {count} records")
            producer.poll(0)
            while producer.waiting > _WAITING_MAX:
                producer.poll(10)
        while producer.waiting:
            producer.poll(100)


class _Pool:
    """Records as librdkafka takes them, made once: rows that point into `_bytes`."""

    def __init__(self) -> None:
        source = np.random.default_rng(1)
        self._values = _values(source, _POOL_RECORDS)
        names = b"".join(b"key%03d" % number for number in range(KEYS))
        self._keys = np.frombuffer(names, np.uint8).copy()
        self._rows = (Message * _POOL_RECORDS)()
        table = np.frombuffer(memoryview(self._rows).cast("B"), np.uint8).reshape(
            _POOL_RECORDS, ctypes.sizeof(Message)
        )
        number = np.arange(_POOL_RECORDS, dtype=np.uint64)
        _fill(table, "payload", np.uint64(self._values.ctypes.data) + number * VALUE_BYTES)
        _fill(table, "length", np.full(_POOL_RECORDS, VALUE_BYTES, np.uint64))
        key = np.uint64(self._keys.ctypes.data) + number % KEYS * _KEY_BYTES
        _fill(table, "key", key.astype(np.uint64))
        _fill(table, "key_length", np.full(_POOL_RECORDS, _KEY_BYTES, np.uint64))

    def slices(self, records: int) -> Iterator[tuple["ctypes.Array[Message]", int]]:
        """Rows, and how many of them: `records` in all."""
        some = Message * _RECORDS_PER_CALL
        for done in range(0, records, _RECORDS_PER_CALL):
            at = done % _POOL_RECORDS * ctypes.sizeof(Message)
            yield some.from_buffer(self._rows, at), min(_RECORDS_PER_CALL, records - done)


def _fill(table: NDArray[np.uint8], field: str, numbers: NDArray[np.uint64]) -> None:
    at = getattr(Message, field).offset
    table[:, at : at + 8] = numbers.view(np.uint8).reshape(-1, 8)


def _values(source: np.random.Generator, count: int) -> NDArray[np.uint8]:
    values = source.integers(0, 256, (count, VALUE_BYTES), np.uint8)
    half = VALUE_BYTES // 2
    text = b" ".join(_WORDS[number] for number in source.integers(0, len(_WORDS), count * 10))
    values[:, :half] = np.frombuffer(text[: count * half], np.uint8).reshape(count, half)
    return values
