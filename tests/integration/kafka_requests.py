"""Short forms of the requests that the integration tests send most."""

from typing import Any, NamedTuple

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import WireClient

EARLIEST = -2
LATEST = -1
MAX_TIMESTAMP = -3


class Produced(NamedTuple):
    error: int
    base_offset: int
    log_append_time: Any
    message: str | None


class Fetched(NamedTuple):
    error: int
    high_watermark: int
    data: bytes


def produce(
    client: WireClient,
    topic: str,
    batch: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int = 9,
) -> Produced:
    client.send(ApiKey.PRODUCE, version, **produce_values(topic, batch, partition, acks))
    return produced(client, version)


def produce_values(
    topic: str, batch: bytes | None, partition: int = 0, acks: int = -1
) -> dict[str, Any]:
    rows = [{"index": partition, "records": batch}]
    return {
        "acks": acks,
        "timeout": 20_000,
        "topic_data": [{"name": topic, "partition_data": rows}],
    }


def produced(client: WireClient, version: int = 9) -> Produced:
    answer = client.receive(ApiKey.PRODUCE, version).responses[0].partition_responses[0]
    return Produced(
        int(answer.error_code),
        answer.base_offset,
        answer.log_append_time,
        getattr(answer, "error_message", None),
    )


def list_offset(
    client: WireClient, topic: str, timestamp: int, *, partition: int = 0, version: int = 7
) -> tuple[int, int, int]:
    """Error, offset, timestamp in milliseconds (-1: none)."""
    rows = [{"partition_index": partition, "timestamp": timestamp}]
    values: dict[str, Any] = {
        "replica_id": -1,
        "topics": [{"name": topic, "partitions": rows}],
    }
    if version >= 2:
        values["isolation_level"] = 0
    if version >= 10:
        values["timeout"] = 1000
    answer = client.call(ApiKey.LIST_OFFSETS, version, **values)
    row = answer.topics[0].partitions[0]
    return int(row.error_code), row.offset, _milliseconds(row.timestamp)


def _milliseconds(moment: Any) -> int:
    if moment is None:
        return -1
    return moment if isinstance(moment, int) else round(moment.timestamp() * 1000)


def fetch(
    client: WireClient,
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    version: int = 12,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
) -> Fetched:
    """By topic name: versions up to 12."""
    answer = client.call(
        ApiKey.FETCH,
        version,
        **fetch_values(topic, offset, partition, max_bytes, partition_max_bytes)
        | {"max_wait": max_wait_ms, "min_bytes": min_bytes},
    )
    row = answer.responses[0].partitions[0]
    return Fetched(int(row.error_code), row.high_watermark, row.records or b"")


def fetch_values(
    topic: str,
    offset: int,
    partition: int = 0,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
) -> dict[str, Any]:
    row = {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": partition_max_bytes,
    }
    return {
        "max_wait": 0,
        "min_bytes": 1,
        "max_bytes": max_bytes,
        "topics": [{"topic": topic, "partitions": [row]}],
    }
