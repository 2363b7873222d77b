"""Decoding of Arrow batches into typed records."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from bucketlog.client.decoding import decode_raw
from bucketlog.client.topic import Record, Topic

if TYPE_CHECKING:
    import pyarrow as pa

K = TypeVar("K")
V = TypeVar("V")


def records_of(topic: Topic[K, V], batch: "pa.RecordBatch") -> Iterator[Record[K, V]]:
    """Raises `InvalidDataError`, which names topic, partition and offset."""
    from bucketlog.log_format.arrow_building import numbers_of

    times = numbers_of(batch.column("timestamp")) // 1000
    columns = (
        batch.column("partition").to_pylist(),
        batch.column("offset").to_pylist(),
        times.tolist(),
        batch.column("key").to_pylist(),
        batch.column("value").to_pylist(),
        batch.column("headers").to_pylist(),
    )
    for partition, offset, at_ms, key, value, headers in zip(*columns, strict=True):
        pairs = tuple((each["key"], each["value"]) for each in headers or ())
        yield decode_raw(topic, partition, offset, at_ms, key, value, pairs)
