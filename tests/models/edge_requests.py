"""Requests with the names and ids that a test chooses, in a short form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import build_batch

TOPIC, CLIENT_METRICS, GROUP = 2, 16, 32
UNKNOWN_BROKER = 99
TIMEOUT_MS = 20_000
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Around:
    """What a case may name. `me`: the broker's node id. `topic` has one partition and a record;
    `group` has a committed offset for it; `fresh` exists nowhere."""

    me: int
    topic: str
    group: str
    fresh: str


@dataclass(frozen=True, slots=True)
class Step:
    key: ApiKey
    version: int
    values: Values


def create(around: Around, name: str | None = None, **changes: Any) -> Step:
    row = {"name": around.fresh if name is None else name, "num_partitions": 1}
    topic = row | {"replication_factor": 1} | changes
    values = {"topics": [topic], "timeout": TIMEOUT_MS, "validate_only": False}
    return Step(ApiKey.CREATE_TOPICS, 7, values)


def assigned(around: Around, *replicas: Sequence[int], first: int = 0) -> Step:
    rows = [
        {"partition_index": number, "broker_ids": list(each)}
        for number, each in enumerate(replicas, first)
    ]
    return create(around, num_partitions=-1, replication_factor=-1, assignments=rows)


def grown(around: Around, count: int, *replicas: Sequence[int]) -> Step:
    rows = [{"broker_ids": list(each)} for each in replicas]
    topic = {"name": around.topic, "count": count, "assignments": rows}
    values = {"topics": [topic], "timeout": TIMEOUT_MS, "validate_only": True}
    return Step(ApiKey.CREATE_PARTITIONS, 3, values)


def describe_configs(*resources: tuple[int, str], keys: Sequence[str] = ("retention.ms",)) -> Step:
    rows = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys)}
        for kind, name in resources
    ]
    return Step(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": rows})


def alter_configs(name: str, *configs: tuple[str, str | None], kind: int = TOPIC) -> Step:
    rows = [{"name": key, "config_operation": 0, "value": value} for key, value in configs]
    row = {"resource_type": kind, "resource_name": name, "configs": rows}
    values = {"resources": [row], "validate_only": True}
    return Step(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, values)


def metadata(*names: str, creates: bool = False) -> Step:
    values = {
        "topics": [{"name": name, "topic_id": None} for name in names],
        "allow_auto_topic_creation": creates,
        "include_topic_authorized_operations": False,
    }
    return Step(ApiKey.METADATA, 12, values)


def list_groups(**values: Any) -> Step:
    return Step(ApiKey.LIST_GROUPS, 5, values)


def describe_groups(*names: str) -> Step:
    values = {"groups": list(names), "include_authorized_operations": False}
    return Step(ApiKey.DESCRIBE_GROUPS, 6, values)


def offset_delete(around: Around, *partitions: int) -> Step:
    rows = [{"partition_index": each} for each in partitions]
    topics = [{"name": around.topic, "partitions": rows}]
    return Step(ApiKey.OFFSET_DELETE, 0, {"group_id": around.group, "topics": topics})


def offset_fetch(around: Around, *groups: str) -> Step:
    rows = [
        {"group_id": group, "topics": [{"name": around.topic, "partition_indexes": [0]}]}
        for group in groups
    ]
    return Step(ApiKey.OFFSET_FETCH, 9, {"groups": rows, "require_stable": False})


def find_request(kind: int, *keys: str) -> Step:
    return Step(ApiKey.FIND_COORDINATOR, 6, {"key_type": kind, "coordinator_keys": list(keys)})


def init_request(transactional_id: str | None, pair: tuple[int, int] = (-1, -1)) -> Step:
    values = {
        "transactional_id": transactional_id,
        "transaction_timeout": 60_000,
        "producer_id": pair[0],
        "producer_epoch": pair[1],
    }
    return Step(ApiKey.INIT_PRODUCER_ID, 5, values)


def add_partitions(around: Around, transactional_id: str, pair: tuple[int, int]) -> Step:
    values = {
        "v3_and_below_transactional_id": transactional_id,
        "v3_and_below_producer_id": pair[0],
        "v3_and_below_producer_epoch": pair[1],
        "v3_and_below_topics": [{"name": around.topic, "partitions": [0]}],
    }
    return Step(ApiKey.ADD_PARTITIONS_TO_TXN, 3, values)


def add_offsets(around: Around, transactional_id: str, pair: tuple[int, int]) -> Step:
    values = {
        "transactional_id": transactional_id,
        "producer_id": pair[0],
        "producer_epoch": pair[1],
        "group_id": around.group,
    }
    return Step(ApiKey.ADD_OFFSETS_TO_TXN, 3, values)


def end_request(transactional_id: str, pair: tuple[int, int]) -> Step:
    values = {
        "transactional_id": transactional_id,
        "producer_id": pair[0],
        "producer_epoch": pair[1],
        "committed": True,
    }
    return Step(ApiKey.END_TXN, 3, values)


def produce(topic: str, *partitions: int, **values: Any) -> Step:
    rows = [{"index": each, "records": build_batch([(None, b"v")])} for each in partitions]
    topics = [{"name": topic, "partition_data": rows}]
    body = {"acks": -1, "timeout": TIMEOUT_MS, "topic_data": topics} | values
    return Step(ApiKey.PRODUCE, 9, body)


def list_offsets(*topics: str, times: int = 1) -> Step:
    partitions = [{"partition_index": 0, "timestamp": -1}] * times
    rows = [{"name": topic, "partitions": partitions} for topic in topics]
    values = {"replica_id": -1, "isolation_level": 0, "topics": rows}
    return Step(ApiKey.LIST_OFFSETS, 7, values)


def fetch_request(*topics: str) -> Step:
    rows = [
        {
            "topic": topic,
            "partitions": [{"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1 << 20}],
        }
        for topic in topics
    ]
    values = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "topics": rows}
    return Step(ApiKey.FETCH, 12, values)


def versions(name: str, version: str) -> Step:
    values = {"client_software_name": name, "client_software_version": version}
    return Step(ApiKey.API_VERSIONS, 3, values)


def update_features(version: int, *levels: tuple[str, int], kind: int = 1) -> Step:
    """An UpdateFeatures request that changes nothing, even on Kafka. From version 1 on, the request
    only validates. Version 0 cannot, and has no `kind`: name current levels or unknown features."""
    how = {"upgrade_type": kind} if version else {"allow_downgrade": False}
    rows = [{"feature": name, "max_version_level": level, **how} for name, level in levels]
    values = {"timeout": TIMEOUT_MS, "feature_updates": rows}
    only = {"validate_only": True} if version else {}
    return Step(ApiKey.UPDATE_FEATURES, version, values | only)


def delete_topics(*names: str) -> Step:
    rows = [{"name": name, "topic_id": None} for name in names]
    return Step(ApiKey.DELETE_TOPICS, 6, {"topics": rows, "timeout": TIMEOUT_MS})


def delete_records(*topics: str) -> Step:
    rows = [
        {"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]} for topic in topics
    ]
    return Step(ApiKey.DELETE_RECORDS, 2, {"topics": rows, "timeout": TIMEOUT_MS})


def commit_request(around: Around, group: str, *topics: str) -> Step:
    rows = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]
    values = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
    named = [{"name": topic, "partitions": rows} for topic in topics]
    return Step(ApiKey.OFFSET_COMMIT, 8, values | {"topics": named})


def delete_groups(*names: str) -> Step:
    return Step(ApiKey.DELETE_GROUPS, 2, {"groups_names": list(names)})


def describe_transactions(*transactional_ids: str) -> Step:
    values = {"transactional_ids": list(transactional_ids)}
    return Step(ApiKey.DESCRIBE_TRANSACTIONS, 0, values)
