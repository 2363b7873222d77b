"""What `producer()` and `consumer()` take, with and without `await`, and what librdkafka is told.

The defaults stand in the field comments here and in `GroupMembership`.
"""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict, get_args

from bucketlog.client.membership import Assignor, GroupStart, OnPartitions
from bucketlog.client.partition_consumer import Start
from bucketlog.client.poison import OnError
from bucketlog.log_format.errors import ConfigurationError

QUEUE_BYTES = 64 * 1024 * 1024
"""What a producer or a consumer keeps for its other side."""
DELIVERY_TIMEOUT_S = 120.0

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]


class ProducerOptions(TypedDict, total=False):
    """A batch leaves when it has `batch_bytes` or is `linger_ms` old."""

    compression: Compression  # "none"
    linger_ms: float  # 5
    batch_bytes: int  # 1 MiB
    queue_bytes: int  # 64 MiB
    queue_records: int  # 100,000
    delivery_timeout_s: float  # 120
    idempotent: bool  # True


class _ReadOptions(TypedDict, total=False):
    until: Literal["end"] | None  # None: for ever; "end": to the ends that the partitions have now
    on_error: OnError  # "raise": what becomes of records that do not decode
    queue_bytes: int  # 64 MiB
    max_wait_ms: int  # 500: how long a broker may hold back an empty answer


class PartitionOptions(_ReadOptions, total=False):
    """For a consumer without a group."""

    start: Start  # "latest"
    partitions: Iterable[int] | None  # None: all that the topic has now


class GroupOptions(_ReadOptions, total=False):
    """For a member of a group; see `GroupMembership`."""

    start: GroupStart  # "latest"
    auto_commit: bool  # True
    commit_interval_s: float  # 5
    assignor: Assignor  # "cooperative-sticky"
    instance_id: str | None  # None
    session_timeout_s: float  # 45
    max_poll_interval_s: float  # 300
    on_assigned: OnPartitions | None  # None
    on_revoked: OnPartitions | None  # None


_KNOWN = {
    "producer": ProducerOptions.__annotations__.keys(),
    "consumer": PartitionOptions.__annotations__.keys() | GroupOptions.__annotations__.keys(),
}


def check_names(verb: Literal["producer", "consumer"], options: Mapping[str, Any]) -> None:
    """As Python does for a function whose arguments are written out."""
    if unknown := options.keys() - _KNOWN[verb]:
        raise TypeError(f"{verb}() got an unexpected keyword argument {min(unknown)!r}")


def producer_config(options: ProducerOptions) -> dict[str, Any]:
    """librdkafka's. Raises `ConfigurationError`."""
    compression = options.get("compression", "none")
    if compression not in get_args(Compression):
        raise ConfigurationError(
            f"compression {compression!r} of a producer",
            remedy=f"choose one of {', '.join(get_args(Compression))}",
        )
    return {
        "enable.idempotence": options.get("idempotent", True),
        "acks": "all",
        "compression.type": compression,
        "linger.ms": options.get("linger_ms", 5.0),
        "batch.size": options.get("batch_bytes", 1024 * 1024),
        "batch.num.messages": 1_000_000,
        "queue.buffering.max.kbytes": max(1, options.get("queue_bytes", QUEUE_BYTES) // 1024),
        "queue.buffering.max.messages": options.get("queue_records", 100_000),
        "delivery.timeout.ms": int(options.get("delivery_timeout_s", DELIVERY_TIMEOUT_S) * 1000),
        "partitioner": "murmur2_random",
    }


def consumer_config(options: dict[str, Any], group: str | None) -> dict[str, Any]:
    """librdkafka's; takes what it needs out of `options`. Raises `ConfigurationError`."""
    queue_bytes = options.pop("queue_bytes", QUEUE_BYTES)
    config = {
        "auto.offset.reset": "error",
        "queued.max.messages.kbytes": max(1, queue_bytes // 1024),
        "queued.min.messages": 1_000_000,
        "fetch.wait.max.ms": options.pop("max_wait_ms", 500),
        "check.crcs": True,
    }
    if group is None:
        if alien := options.keys() - PartitionOptions.__annotations__.keys():
            raise ConfigurationError(f"{min(alien)} without a group", remedy='add group="..."')
        # librdkafka wants a group id; it is not used
        return config | {"group.id": f"bucketlog-{uuid.uuid4().hex}", "enable.auto.commit": False}
    if options.pop("partitions", None) is not None:
        raise ConfigurationError(
            f"partitions are given to the members of group {group!r} by the group",
            remedy="leave out partitions, or the group",
        )
    return config
