"""Pairs of a change and a request that reads what it changed, sent back to back on one connection.

Both requests are in one write to the socket, so a broker that works on them side by side answers
the second request from before the change.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient, build_batch, encode_request

LATEST, EARLIEST = -1, -2
TOPIC = 2
"""Kafka's number for the resource type."""
TIMEOUT_MS = 20_000
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Message:
    key: ApiKey
    version: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """`prepare` makes the topic (and group) `name`. `first` and `second` are sent back to back.
    `sees` takes the second response: whether it has what `first` changed. `kafka_is_late`: in
    Kafka, the controller answers before all brokers know the change."""

    first: Callable[[str], Message]
    second: Callable[[str], Message]
    sees: Callable[[Any], bool]
    prepare: Callable[[WireClient, str], None]
    kafka_is_late: bool = False
    is_answered: bool = True


def create_topics(name: str, partitions: int = 1) -> Message:
    row = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    return Message(ApiKey.CREATE_TOPICS, 5, {"topics": [row], "timeout": TIMEOUT_MS})


def produce(name: str, acks: int = -1) -> Message:
    rows = [{"index": 0, "records": build_batch([(None, b"v")])}]
    topics = [{"name": name, "partition_data": rows}]
    return Message(ApiKey.PRODUCE, 9, {"acks": acks, "timeout": TIMEOUT_MS, "topic_data": topics})


def list_offsets(name: str, timestamp: int = LATEST) -> Message:
    rows = [{"partition_index": 0, "timestamp": timestamp}]
    topics = [{"name": name, "partitions": rows}]
    values = {"replica_id": -1, "isolation_level": 0, "topics": topics}
    return Message(ApiKey.LIST_OFFSETS, 7, values)


def fetch(name: str) -> Message:
    rows = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    topics = [{"topic": name, "partitions": rows}]
    values = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "topics": topics}
    return Message(ApiKey.FETCH, 12, values)


def delete_records(name: str) -> Message:
    """Up to the high watermark."""
    rows = [{"partition_index": 0, "offset": -1}]
    topics = [{"name": name, "partitions": rows}]
    return Message(ApiKey.DELETE_RECORDS, 2, {"topics": topics, "timeout": TIMEOUT_MS})


def metadata(name: str) -> Message:
    rights = ("include_cluster_authorized_operations", "include_topic_authorized_operations")
    values = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    return Message(ApiKey.METADATA, 9, values | dict.fromkeys(rights, False))


def create_partitions(name: str) -> Message:
    topics = [{"name": name, "count": 3, "assignments": None}]
    values = {"topics": topics, "timeout": TIMEOUT_MS, "validate_only": False}
    return Message(ApiKey.CREATE_PARTITIONS, 2, values)


def delete_topics(name: str) -> Message:
    return Message(ApiKey.DELETE_TOPICS, 5, {"topic_names": [name], "timeout": TIMEOUT_MS})


def alter_configs(name: str) -> Message:
    configs = [{"name": "retention.ms", "value": "12345678"}]
    row = {"resource_type": TOPIC, "resource_name": name, "configs": configs}
    return Message(ApiKey.ALTER_CONFIGS, 1, {"resources": [row], "validate_only": False})


def incremental_alter_configs(name: str) -> Message:
    configs = [{"name": "retention.ms", "config_operation": 0, "value": "12345678"}]
    row = {"resource_type": TOPIC, "resource_name": name, "configs": configs}
    values = {"resources": [row], "validate_only": False}
    return Message(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, values)


def describe_configs(name: str) -> Message:
    row = {"resource_type": TOPIC, "resource_name": name}
    values = {"resources": [row | {"configuration_keys": ["retention.ms"]}]}
    return Message(ApiKey.DESCRIBE_CONFIGS, 4, values)


def offset_commit(name: str) -> Message:
    rows = [{"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}]
    topics = [{"name": name, "partitions": rows}]
    values = {"group_id": name, "generation_id_or_member_epoch": -1, "member_id": ""}
    return Message(ApiKey.OFFSET_COMMIT, 7, values | {"topics": topics})


def offset_fetch(name: str) -> Message:
    topics = [{"name": name, "partition_indexes": [0]}]
    return Message(ApiKey.OFFSET_FETCH, 5, {"group_id": name, "topics": topics})


def offset_delete(name: str) -> Message:
    topics = [{"name": name, "partitions": [{"partition_index": 0}]}]
    return Message(ApiKey.OFFSET_DELETE, 0, {"group_id": name, "topics": topics})


def delete_groups(name: str) -> Message:
    return Message(ApiKey.DELETE_GROUPS, 2, {"groups_names": [name]})


def describe_groups(name: str) -> Message:
    values = {"groups": [name], "include_authorized_operations": False}
    return Message(ApiKey.DESCRIBE_GROUPS, 5, values)


def alter_client_quotas(name: str) -> Message:
    entity = [{"entity_type": "client-id", "entity_name": name}]
    row = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 1e9, "remove": False}]}
    return Message(ApiKey.ALTER_CLIENT_QUOTAS, 1, {"entries": [row], "validate_only": False})


def describe_client_quotas(name: str) -> Message:
    row = {"entity_type": "client-id", "match_type": 0, "match": name}
    return Message(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, {"components": [row], "strict": True})


def _first_partition(answer: Any) -> Any:
    return answer.topics[0].partitions[0]


def call(client: WireClient, message: Message) -> Any:
    return client.call(message.key, message.version, **message.values)


def make_topic(client: WireClient, name: str) -> None:
    """Returns when the broker serves the topic."""

    def is_created() -> bool:
        error = call(client, create_topics(name)).topics[0].error_code
        return error in (ErrorCode.none, ErrorCode.topic_already_exists)

    eventually(is_created, "the topic was not created")
    eventually(lambda: _first_partition(call(client, list_offsets(name))).error_code == 0)


def make_record(client: WireClient, name: str) -> None:
    make_topic(client, name)
    answer = call(client, produce(name))
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.none


def make_group(client: WireClient, name: str) -> None:
    make_topic(client, name)
    find = Message(ApiKey.FIND_COORDINATOR, 2, {"key": name, "key_type": 0})
    eventually(lambda: call(client, find).error_code == ErrorCode.none)
    eventually(lambda: _first_partition(call(client, offset_commit(name))).error_code == 0)


def _nothing(client: WireClient, name: str) -> None:
    pass


def _ready_groups(client: WireClient, name: str) -> None:
    """The coordinator is there; the group `name` is not."""
    make_group(client, f"{name}-other")
    make_topic(client, name)


def _has_retention(answer: Any) -> bool:
    return [each.value for each in answer.results[0].configs] == ["12345678"]


PAIRS: dict[str, Pair] = {
    "Produce, ListOffsets": Pair(
        produce, list_offsets, lambda answer: _first_partition(answer).offset == 1, make_topic
    ),
    "Produce without response, ListOffsets": Pair(
        lambda name: produce(name, acks=0),
        list_offsets,
        lambda answer: _first_partition(answer).offset == 1,
        make_topic,
        is_answered=False,
    ),
    "Produce, Fetch": Pair(
        produce, fetch, lambda answer: bool(answer.responses[0].partitions[0].records), make_topic
    ),
    "Produce, DeleteRecords": Pair(
        produce,
        delete_records,
        lambda answer: _first_partition(answer).low_watermark == 1,
        make_topic,
    ),
    "DeleteRecords, ListOffsets": Pair(
        delete_records,
        lambda name: list_offsets(name, EARLIEST),
        lambda answer: _first_partition(answer).offset == 1,
        make_record,
    ),
    "CreateTopics, Metadata": Pair(
        create_topics,
        metadata,
        lambda answer: answer.topics[0].error_code == ErrorCode.none,
        _nothing,
        kafka_is_late=True,
    ),
    "CreateTopics, Produce": Pair(
        create_topics,
        produce,
        lambda answer: answer.responses[0].partition_responses[0].error_code == ErrorCode.none,
        _nothing,
        kafka_is_late=True,
    ),
    "CreatePartitions, Metadata": Pair(
        create_partitions,
        metadata,
        lambda answer: len(answer.topics[0].partitions) == 3,
        make_topic,
        kafka_is_late=True,
    ),
    "DeleteTopics, Metadata": Pair(
        delete_topics,
        metadata,
        lambda answer: answer.topics[0].error_code == ErrorCode.unknown_topic_or_partition,
        make_topic,
        kafka_is_late=True,
    ),
    "AlterConfigs, DescribeConfigs": Pair(
        alter_configs, describe_configs, _has_retention, make_topic, kafka_is_late=True
    ),
    "IncrementalAlterConfigs, DescribeConfigs": Pair(
        incremental_alter_configs, describe_configs, _has_retention, make_topic, kafka_is_late=True
    ),
    "OffsetCommit, OffsetFetch": Pair(
        offset_commit,
        offset_fetch,
        lambda answer: _first_partition(answer).committed_offset == 7,
        _ready_groups,
    ),
    "OffsetCommit, DescribeGroups": Pair(
        offset_commit,
        describe_groups,
        lambda answer: answer.groups[0].group_state == "Empty",
        _ready_groups,
    ),
    "OffsetDelete, OffsetFetch": Pair(
        offset_delete,
        offset_fetch,
        lambda answer: _first_partition(answer).committed_offset == -1,
        make_group,
    ),
    "DeleteGroups, OffsetFetch": Pair(
        delete_groups,
        offset_fetch,
        lambda answer: _first_partition(answer).committed_offset == -1,
        make_group,
    ),
    "AlterClientQuotas, DescribeClientQuotas": Pair(
        alter_client_quotas,
        describe_client_quotas,
        lambda answer: len(answer.entries) == 1,
        _nothing,
        kafka_is_late=True,
    ),
}


def is_seen(client: WireClient, pair: Pair, name: str) -> bool:
    """Whether the second request sees what the first has changed."""
    pair.prepare(client, name)
    first, second = pair.first(name), pair.second(name)
    data = b""
    for number, message in enumerate((first, second)):
        frame = encode_request(message.key, message.version, number, message.values)
        data += _LENGTH.pack(len(frame)) + frame
    client.send_bytes(data)
    client.expect(*range(0 if pair.is_answered else 1, 2))
    if pair.is_answered:
        client.receive(first.key, first.version)
    return pair.sees(client.receive(second.key, second.version))


def times_seen(bootstrap: str, pair: Pair, prefix: str, tries: int) -> int:
    with WireClient(bootstrap) as client:
        return sum(is_seen(client, pair, f"{prefix}-{number}") for number in range(tries))
