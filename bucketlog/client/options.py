"""Options of `producer()` and `consumer()`, with and without `await`, and librdkafka's settings.

Each typed dictionary has a table of its defaults. The defaults of groups are those of
`GroupMembership`.
"""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, Literal, TypedDict, get_args

from bucketlog.client.membership import (
    Assignor,
    AutoCommit,
    GroupMembership,
    GroupStart,
    OnPartitions,
    OnPartitionsOf,
)
from bucketlog.client.option_bounds import READ, SENT, check_bounds
from bucketlog.client.poison import OnError
from bucketlog.client.reading_range import Start, StartOf, Until, UntilOf
from bucketlog.client.topic import TopicPartition
from bucketlog.log_format.errors import ConfigurationError

QUEUE_BYTES = 64 * 1024 * 1024
"""Records that a producer keeps for brokers, or a consumer for its caller."""
DELIVERY_TIMEOUT_S = 120.0
DISCOVERY_INTERVAL_S = 30.0

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]


class ProducerOptions(TypedDict, total=False):
    """Options of a producer, for `Log.producer`, `Log.transaction` and `Log.transform`.

    A batch leaves the producer when it has `batch_bytes`, or when it is `linger_ms` old. Used by
    type checkers, and for options that a program keeps in a variable.

    Attributes:
        compression: Compression of batches: "none", "gzip", "snappy", "lz4" or "zstd". Default:
            "none".
        linger_ms: Longest time that a record waits for others of its batch, in milliseconds.
            Default: 5.
        batch_bytes: Size of a batch, in bytes. Default: 1 MiB.
        queue_bytes: Size of the queue of records that wait for brokers, in bytes. Sending waits
            while the queue is full. Default: 64 MiB.
        queue_records: Largest number of records in this queue. Default: 100,000.
        delivery_timeout_s: Time after which a record counts as not delivered, in seconds. Default:
            120.
        idempotent: Whether brokers store each record once, even if the producer sends it twice.
            Default: True.
        statistics_interval_s: Time between two `Producer.statistics`, in seconds; 0 means no
            statistics. Default: 0.

    Examples:
        >>> from bucketlog.client.options import ProducerOptions
        >>> options: ProducerOptions = {"compression": "zstd", "linger_ms": 20}
        >>> with log.producer(**options) as producer:
        ...     producer.send(orders, Order(id="3", amount=1.5)).result().offset
        2
    """

    compression: Compression
    linger_ms: float
    batch_bytes: int
    queue_bytes: int
    queue_records: int
    delivery_timeout_s: float
    idempotent: bool
    statistics_interval_s: float


PRODUCER_DEFAULTS: Final[Mapping[str, Any]] = {
    "compression": "none",
    "linger_ms": 5.0,
    "batch_bytes": 1024 * 1024,
    "queue_bytes": QUEUE_BYTES,
    "queue_records": 100_000,
    "delivery_timeout_s": DELIVERY_TIMEOUT_S,
    "idempotent": True,
    "statistics_interval_s": 0.0,
}


class _ReadOptions(TypedDict, total=False):
    """Options of all consumers."""

    on_error: OnError
    queue_bytes: int
    max_wait_ms: int
    statistics_interval_s: float


_READ_DEFAULTS: Final[Mapping[str, Any]] = {
    "until": None,
    "on_error": "raise",
    "queue_bytes": QUEUE_BYTES,
    "max_wait_ms": 500,
    "statistics_interval_s": 0.0,
}


class PartitionOptions(_ReadOptions, total=False):
    """Options of a consumer without a group, for `Log.consumer`.

    Used by type checkers, and for options that a program keeps in a variable.

    Attributes:
        until: Where reading stops; None means never. "end": at the ends that the partitions have
            now, or, in a group, had when the group assigned them to this member. A datetime: before
            the first record at or after this time. A number or a mapping: before this offset, or
            before the offset of each partition. Default: None.
        on_error: What happens to a record that does not decode. "raise": the consumer raises
            `UnreadableRecordError`. "skip": the consumer logs and skips the record. A `DeadLetter`:
            the consumer copies the record to another topic. Default: "raise".
        queue_bytes: Size of the records that are fetched ahead, in bytes. Default: 64 MiB.
        max_wait_ms: Longest time that a broker waits for new records before it answers, in
            milliseconds. Default: 500.
        statistics_interval_s: Time between two `Consumer.statistics`, in seconds; 0 means no
            statistics. Default: 0.
        start: Where reading begins: "earliest", "latest", a datetime, an offset, or a mapping of
            partitions to offsets. Members of a group begin at the committed offset; `start` is for
            partitions without one, and may be "earliest", "latest" or a datetime. Default:
            "latest".
        partitions: Numbers of the partitions to read; None means all partitions that the topic has
            now. Not allowed with `group`. Default: None.

    Examples:
        >>> from bucketlog.client.options import PartitionOptions
        >>> options: PartitionOptions = {"start": "earliest", "until": "end"}
        >>> with log.consumer(orders, **options) as consumer:
        ...     [record.value.id for record in consumer]
        ['1', '2']
    """

    until: Until | None
    start: Start
    partitions: Iterable[int] | None


PARTITION_DEFAULTS: Final[Mapping[str, Any]] = {
    **_READ_DEFAULTS,
    "start": "latest",
    "partitions": None,
}


class _MemberOptions(TypedDict, total=False):
    """Options of all members of groups."""

    start: GroupStart
    auto_commit: AutoCommit
    in_flight_records_max: int
    commit_interval_s: float
    assignor: Assignor
    instance_id: str | None
    session_timeout_s: float
    max_poll_interval_s: float


class GroupOptions(_MemberOptions, _ReadOptions, total=False):
    """Options of a member of a consumer group, for `Log.consumer` with `group`.

    Used by type checkers, and for options that a program keeps in a variable.

    Attributes:
        until: Where reading stops; None means never. "end": at the ends that the partitions had
            when the group assigned them to this member. A datetime: before the first record at or
            after this time. A number or a mapping: before this offset, or before the offset of each
            partition. Default: None.
        on_error: What happens to a record that does not decode. "raise": the consumer raises
            `UnreadableRecordError`. "skip": the consumer logs and skips the record. A `DeadLetter`:
            the consumer copies the record to another topic. Default: "raise".
        queue_bytes: Size of the records that are fetched ahead, in bytes. Default: 64 MiB.
        max_wait_ms: Longest time that a broker waits for new records before it answers, in
            milliseconds. Default: 500.
        statistics_interval_s: Time between two `Consumer.statistics`, in seconds; 0 means no
            statistics. Default: 0.
        start: Where reading begins in partitions without a committed offset: "earliest", "latest"
            or a datetime. Default: "latest".
        auto_commit: When a member of a group commits offsets. True: records count as done when the
            next call asks for more. "ack": records count as done when `done` acknowledges them.
            False: only `commit` or a transaction commits. Default: True.
        in_flight_records_max: Largest number of records that are returned and not yet acknowledged,
            with `auto_commit="ack"`. Default: 10,000.
        commit_interval_s: Time between automatic commits, in seconds. Default: 5.
        assignor: How the group distributes partitions among its members: "cooperative-sticky",
            "range" or "roundrobin". Default: "cooperative-sticky".
        instance_id: Name of a static member, which keeps its partitions while its program restarts
            (KIP-345); None means a dynamic member. Default: None.
        session_timeout_s: Time without a heartbeat after which the group gives the partitions to
            other members, in seconds. Default: 45.
        max_poll_interval_s: Longest time between two calls that ask for records, in seconds. After
            this time, the member leaves its group. Default: 300.
        on_assigned: Function that is called with the numbers of newly assigned partitions; None
            means no function. Default: None.
        on_revoked: Function that is called with the numbers of revoked partitions, before other
            members get them; None means no function. Default: None.

    Examples:
        >>> from bucketlog.client.options import GroupOptions
        >>> options: GroupOptions = {"start": "earliest", "until": "end", "auto_commit": False}
        >>> with log.consumer(orders, group="billing", **options) as consumer:
        ...     [record.value.id for record in consumer]
        ['1', '2']
    """

    until: Until | None
    on_assigned: OnPartitions | None
    on_revoked: OnPartitions | None


GROUP_DEFAULTS: Final[Mapping[str, Any]] = {
    **_READ_DEFAULTS,
    **{
        each.name: each.default
        for each in fields(GroupMembership)
        if each.name in GroupOptions.__annotations__
    },
}


class TopicsOptions(_ReadOptions, total=False):
    """Options of a consumer of several topics or of a pattern, without a group, for `Log.consumer`.

    Used by type checkers, and for options that a program keeps in a variable.

    Attributes:
        until: Where reading stops; None means never. "end": at the ends that the partitions have
            now. A datetime: before the first record at or after this time. A number or a mapping:
            before this offset, or before the offset of each partition. Default: None.
        on_error: What happens to a record that does not decode: "raise", "skip" or a `DeadLetter`,
            as for `PartitionOptions`. Default: "raise".
        queue_bytes: Size of the records that are fetched ahead, in bytes. Default: 64 MiB.
        max_wait_ms: Longest time that a broker waits for new records before it answers, in
            milliseconds. Default: 500.
        statistics_interval_s: Time between two `Consumer.statistics`, in seconds; 0 means no
            statistics. Default: 0.
        discovery_interval_s: Time between two searches for new topics that match a pattern, in
            seconds. Default: 30.
        start: Where reading begins: "earliest", "latest", a datetime, an offset, or a mapping of
            partitions to offsets. Topics that are created later are read from their earliest
            record. Default: "latest".
        partitions: Partitions to read; None means all partitions that the topics have now. Default:
            None.

    Examples:
        >>> from bucketlog.client.options import TopicsOptions
        >>> options: TopicsOptions = {"start": "earliest", "until": "end"}
        >>> with log.consumer([orders], **options) as consumer:
        ...     [(record.topic, record.value.id) for record in consumer]
        [('orders', '1'), ('orders', '2')]
    """

    until: UntilOf[TopicPartition] | None
    discovery_interval_s: float
    start: StartOf[TopicPartition]
    partitions: Iterable[TopicPartition] | None


TOPICS_DEFAULTS: Final[Mapping[str, Any]] = {
    **PARTITION_DEFAULTS,
    "discovery_interval_s": DISCOVERY_INTERVAL_S,
}


class TopicsGroupOptions(_MemberOptions, _ReadOptions, total=False):
    """Options of a member of a group that reads several topics or a pattern, for `Log.consumer`.

    Used by type checkers, and for options that a program keeps in a variable.

    Attributes:
        until: Where reading stops; None means never. "end": at the ends that the partitions had
            when the group assigned them to this member. A datetime: before the first record at or
            after this time. A number or a mapping: before this offset, or before the offset of each
            partition. Default: None.
        on_error: What happens to a record that does not decode: "raise", "skip" or a `DeadLetter`,
            as for `GroupOptions`. Default: "raise".
        queue_bytes: Size of the records that are fetched ahead, in bytes. Default: 64 MiB.
        max_wait_ms: Longest time that a broker waits for new records before it answers, in
            milliseconds. Default: 500.
        statistics_interval_s: Time between two `Consumer.statistics`, in seconds; 0 means no
            statistics. Default: 0.
        discovery_interval_s: Time between two searches for new topics that match a pattern, in
            seconds. Default: 30.
        start: Where reading begins in partitions without a committed offset: "earliest", "latest"
            or a datetime. Topics that are created later are read from their earliest record.
            Default: "latest".
        auto_commit: When a member of a group commits offsets. True: records count as done when the
            next call asks for more. "ack": records count as done when `done` acknowledges them.
            False: only `commit` or a transaction commits. Default: True.
        in_flight_records_max: Largest number of records that are returned and not yet acknowledged,
            with `auto_commit="ack"`. Default: 10,000.
        commit_interval_s: Time between automatic commits, in seconds. Default: 5.
        assignor: How the group distributes partitions among its members: "cooperative-sticky",
            "range" or "roundrobin". Default: "cooperative-sticky".
        instance_id: Name of a static member, which keeps its partitions while its program restarts
            (KIP-345); None means a dynamic member. Default: None.
        session_timeout_s: Time without a heartbeat after which the group gives the partitions to
            other members, in seconds. Default: 45.
        max_poll_interval_s: Longest time between two calls that ask for records, in seconds. After
            this time, the member leaves its group. Default: 300.
        on_assigned: Function that is called with newly assigned partitions; None means no
            function. Default: None.
        on_revoked: Function that is called with revoked partitions, before other members get them;
            None means no function. Default: None.

    Examples:
        >>> from bucketlog.client.options import TopicsGroupOptions
        >>> options: TopicsGroupOptions = {"start": "earliest", "until": "end"}
        >>> with log.consumer([orders], group="billing", **options) as consumer:
        ...     [(record.topic, record.value.id) for record in consumer]
        [('orders', '1'), ('orders', '2')]
    """

    until: UntilOf[TopicPartition] | None
    discovery_interval_s: float
    on_assigned: OnPartitionsOf[TopicPartition] | None
    on_revoked: OnPartitionsOf[TopicPartition] | None


TOPICS_GROUP_DEFAULTS: Final[Mapping[str, Any]] = {
    **GROUP_DEFAULTS,
    "discovery_interval_s": DISCOVERY_INTERVAL_S,
}


_KNOWN = {
    "producer": ProducerOptions.__annotations__.keys(),
    "consumer": TopicsOptions.__annotations__.keys() | TopicsGroupOptions.__annotations__.keys(),
}


def check_names(verb: Literal["producer", "consumer"], options: Mapping[str, Any]) -> None:
    """Raise `TypeError` for an unknown option, as Python does for an unknown argument."""
    if unknown := options.keys() - _KNOWN[verb]:
        raise TypeError(f"{verb}() got an unexpected keyword argument {min(unknown)!r}")


def producer_config(options: ProducerOptions) -> dict[str, Any]:
    """Settings of librdkafka for these options. Raises `ConfigurationError`."""
    chosen = {**PRODUCER_DEFAULTS, **options}
    compression = chosen["compression"]
    if compression not in get_args(Compression):
        raise ConfigurationError(
            f"compression {compression!r} of a producer",
            remedy=f"choose one of {', '.join(get_args(Compression))}",
        )
    check_bounds(chosen, SENT)
    if chosen["linger_ms"] >= chosen["delivery_timeout_s"] * 1000:
        raise ConfigurationError(
            f"linger_ms is {chosen['linger_ms']}, which is not less than delivery_timeout_s "
            f"({chosen['delivery_timeout_s']})",
            remedy="use a shorter linger_ms, or a longer delivery_timeout_s",
        )
    return {
        "enable.idempotence": chosen["idempotent"],
        "acks": "all",
        "compression.type": compression,
        "linger.ms": chosen["linger_ms"],
        "batch.size": chosen["batch_bytes"],
        "batch.num.messages": 1_000_000,
        "queue.buffering.max.kbytes": chosen["queue_bytes"] // 1024,
        "queue.buffering.max.messages": chosen["queue_records"],
        "delivery.timeout.ms": int(chosen["delivery_timeout_s"] * 1000),
        "partitioner": "murmur2_random",
        **_statistics(chosen["statistics_interval_s"]),
    }


def _statistics(interval_s: float) -> dict[str, Any]:
    return {"statistics.interval.ms": max(1, round(interval_s * 1000))} if interval_s else {}


def consumer_config(options: dict[str, Any], group: str | None) -> dict[str, Any]:
    """Settings of librdkafka for a consumer; removes their options from `options`. Raises
    `ConfigurationError`."""
    check_bounds(options, READ)
    queue_bytes = options.pop("queue_bytes", _READ_DEFAULTS["queue_bytes"])
    config = {
        "auto.offset.reset": "error",
        "queued.max.messages.kbytes": queue_bytes // 1024,
        "queued.min.messages": 1_000_000,
        "fetch.wait.max.ms": options.pop("max_wait_ms", _READ_DEFAULTS["max_wait_ms"]),
        "check.crcs": True,
        **_statistics(options.pop("statistics_interval_s", 0.0)),
    }
    if group is None:
        if alien := options.keys() - TopicsOptions.__annotations__.keys():
            raise ConfigurationError(f"{min(alien)} without a group", remedy='add group="..."')
        # librdkafka wants a group id; it is not used
        return config | {"group.id": f"bucketlog-{uuid.uuid4().hex}", "enable.auto.commit": False}
    if options.pop("partitions", None) is not None:
        raise ConfigurationError(
            f"partitions are given to the members of group {group!r} by the group",
            remedy="leave out partitions, or the group",
        )
    return config
