"""The digest of a log from its brokers, by the Kafka protocol. It covers each partition up to the
partition's last stable offset at the time of the call, because `read_committed` consumers read no
further."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from bucketlog.client.admin import LATEST
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.log import Log, connect
from bucketlog.client.security import Security
from bucketlog.client.topics import TopicDetails
from bucketlog.inspect.doctor.digest import (
    CommittedDigest,
    LogDigest,
    PartitionDigest,
    RecordHash,
    TopicDigest,
)
from bucketlog.log_format.errors import LogError

MESSAGES_AT_ONCE = 5000
TIMEOUT_S = 30.0
NO_LEADER_EPOCH = -1


def digest_of_cluster(
    bootstrap: str,
    *,
    timeout_s: float = TIMEOUT_S,
    security: Security | None = None,
    client_config: Mapping[str, str] | None = None,
) -> LogDigest:
    """`timeout_s` bounds each wait for an answer or a record. Raises `LogError`."""
    with connect(bootstrap, timeout_s=timeout_s, security=security, config=client_config) as log:
        details = [log.topics.describe(info.name) for info in log.topics.list()]
        groups = [info.group for info in log.groups.list()]
        config = {
            "bootstrap.servers": bootstrap,
            "log_level": 5,  # librdkafka notes on stderr that metrics of clients are asked for
            **({} if security is None else security.librdkafka()),
            **(client_config or {}),
        }
        return _digest(config, log, details, groups, timeout_s)


def _digest(
    config: Mapping[str, Any],
    log: Log,
    details: list[TopicDetails],
    groups: list[str],
    timeout_s: float,
) -> LogDigest:
    admin = AdminClient(dict(config))
    try:
        details = [_stable(admin, topic, timeout_s) for topic in details]
        hashes = _read(config, details, timeout_s)
        topics = {
            topic.name: TopicDigest(
                tuple(
                    PartitionDigest(
                        part.earliest,
                        part.latest,
                        hashes[topic.name, part.partition].records,
                        hashes[topic.name, part.partition].hex,
                    )
                    for part in topic.partitions
                ),
                {name: topic.configs[name] for name in topic.overrides},
            )
            for topic in details
        }
        committed = {group: _committed(admin, group, timeout_s) for group in groups}
    except KafkaException as error:
        raise log_error(error.args[0], "reading the log") from error
    kept = {group: rows for group, rows in committed.items() if rows}
    return LogDigest(log.cluster_id(), topics, kept)


def _stable(admin: AdminClient, topic: TopicDetails, timeout_s: float) -> TopicDetails:
    """The topic, with last stable offsets instead of high watermarks as its latest offsets."""
    asked = admin.list_offsets(
        {KafkaPartition(topic.name, part.partition): LATEST for part in topic.partitions},
        isolation_level=IsolationLevel.READ_COMMITTED,
        request_timeout=timeout_s,
    )
    ends = {key.partition: future.result().offset for key, future in asked.items()}
    return replace(
        topic,
        partitions=tuple(replace(part, latest=ends[part.partition]) for part in topic.partitions),
    )


def _read(
    config: Mapping[str, Any], details: Iterable[TopicDetails], timeout_s: float
) -> dict[tuple[str, int], RecordHash]:
    hashes = {
        (topic.name, part.partition): RecordHash() for topic in details for part in topic.partitions
    }
    ends = {
        (topic.name, part.partition): part
        for topic in details
        for part in topic.partitions
        if part.latest > part.earliest
    }
    if not ends:
        return hashes
    consumer = Consumer(
        {
            **config,
            "group.id": f"bucketlog-doctor-{uuid4().hex}",  # librdkafka wants one; it is not used
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "check.crcs": True,
        }
    )
    try:
        consumer.assign([KafkaPartition(*name, part.earliest) for name, part in ends.items()])
        while ends:
            first = consumer.poll(timeout_s)
            if first is None:
                raise LogError(
                    f"no record of {min(ends)} came in {timeout_s:.0f} s",
                    code="TIMED_OUT",
                    kafka_code=KafkaError._TIMED_OUT,
                    retriable=True,
                )
            for message in (first, *consumer.consume(MESSAGES_AT_ONCE, 0)):  # and what is there
                name = str(message.topic()), int(message.partition() or 0)
                error, offset = message.error(), int(message.offset() or 0)
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise log_error(error, f"reading {name[0]}-{name[1]}")
                part = ends.get(name)
                if part is None:
                    continue
                if error is None and offset < part.latest:
                    _add(hashes[name], offset, message)
                if offset >= part.latest - (error is None):
                    del ends[name]
    finally:
        consumer.close()
    return hashes


def _add(records: RecordHash, offset: int, message: Message) -> None:
    headers: list[tuple[str, bytes | None]] = []
    for header in message.headers() or ():
        assert isinstance(header, tuple)  # of a message that was consumed
        headers.append((header[0], _bytes(header[1])))
    _, timestamp_ms = message.timestamp()
    records.add(offset, timestamp_ms, _bytes(message.key()), _bytes(message.value()), headers)


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _committed(
    admin: AdminClient, group: str, timeout_s: float
) -> dict[tuple[str, int], CommittedDigest]:
    asked = admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group)], request_timeout=timeout_s
    )
    rows = asked[group].result().topic_partitions or ()
    found = {}
    for row in rows:
        if row.error is not None:
            raise log_error(row.error, f"reading the offsets of group {group!r}")
        if row.offset >= 0:
            epoch = NO_LEADER_EPOCH if row.leader_epoch is None else row.leader_epoch
            found[row.topic, row.partition] = CommittedDigest(row.offset, epoch, row.metadata or "")
    return found
