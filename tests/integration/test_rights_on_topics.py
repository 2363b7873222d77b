"""Rights on topics and the cluster: what Apache Kafka's KafkaApis and ControllerApis answer."""

import uuid
from collections.abc import Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.acl_bindings import AclOperation as Op
from tests.rigs.mirrored_batches import RECORDS, mirror
from tests.rigs.rights import (
    CLUSTER,
    CLUSTER_DENIED,
    GROUP,
    GROUP_DENIED,
    NOT_SAID,
    OK,
    TOPIC,
    TOPIC_DENIED,
    TwoBrokers,
    create_topics,
)
from tests.rigs.wire_client import build_batch


def test_configs(rights: TwoBrokers) -> None:
    kinds = {2: "t", 4: "", 32: "g"}

    def describe() -> list[int]:
        rows = [
            {"resource_type": kind, "resource_name": name, "configuration_keys": None}
            for kind, name in kinds.items()
        ]
        answer = rights.call(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            resources=rows,
            include_synonyms=False,
            include_documentation=False,
        )
        return [each.error_code for each in answer.results]

    def alter(key: ApiKey) -> list[int]:
        rows = [
            {"resource_type": kind, "resource_name": name, "configs": []}
            for kind, name in kinds.items()
        ]
        answer = rights.call(key, 1, resources=rows, validate_only=True)
        return [each.error_code for each in answer.responses]

    denied = [TOPIC_DENIED, CLUSTER_DENIED, GROUP_DENIED]
    alters = (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
    cluster = "kafka-cluster"
    rights.grant()
    assert describe() == denied
    assert [alter(key) for key in alters] == [denied, denied]
    rights.grant((TOPIC, "t", Op.DESCRIBE_CONFIGS), (CLUSTER, cluster, Op.DESCRIBE_CONFIGS))
    assert describe() == [OK, OK, GROUP_DENIED]
    assert [alter(key) for key in alters] == [denied, denied]
    rights.grant((TOPIC, "t", Op.ALTER_CONFIGS), (GROUP, "g", Op.ALTER_CONFIGS))
    assert describe() == [OK, CLUSTER_DENIED, OK]
    assert [alter(key) for key in alters] == [[OK, CLUSTER_DENIED, OK]] * 2
    rights.grant((CLUSTER, cluster, Op.ALTER_CONFIGS))
    assert [alter(key) for key in alters] == [[TOPIC_DENIED, OK, GROUP_DENIED]] * 2


def test_mirrored_batches(rights: TwoBrokers) -> None:
    topic = {
        "name": "mirrored",
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": "mirror.source", "value": "elsewhere"}],
    }
    rights.admin.call(ApiKey.CREATE_TOPICS, 5, topics=[topic])
    rights.grant((TOPIC, "mirrored", Op.WRITE))
    error, _, message = mirror(rights.client, "mirrored", RECORDS)
    assert error == CLUSTER_DENIED
    assert message == "a mirror needs CLUSTER_ACTION on the cluster"
    rights.grant((CLUSTER, "kafka-cluster", Op.CLUSTER_ACTION))
    assert mirror(rights.client, "mirrored", RECORDS)[0] == TOPIC_DENIED
    rights.grant((CLUSTER, "kafka-cluster", Op.CLUSTER_ACTION), (TOPIC, "mirrored", Op.WRITE))
    assert mirror(rights.client, "mirrored", RECORDS)[:2] == (OK, 0)


def test_creation_of_topics(rights: TwoBrokers) -> None:
    rights.grant((TOPIC, "new-1", Op.CREATE), (TOPIC, "new-2", Op.DESCRIBE_CONFIGS))
    (made, refused) = create_topics(rights.client, "new-1", "new-2")
    assert (made.error_code, made.topic_config_error_code) == (OK, TOPIC_DENIED)
    assert (made.num_partitions, made.replication_factor, made.configs) == (-1, -1, ())
    assert made.topic_id is not None
    assert (refused.error_code, refused.error_message) == (TOPIC_DENIED, "Authorization failed.")
    assert refused.topic_id is None
    rights.grant(
        (CLUSTER, "kafka-cluster", Op.CREATE),
        (TOPIC, "new-2", Op.DESCRIBE_CONFIGS),
        (TOPIC, "new-1", Op.ALTER),
    )
    (made,) = create_topics(rights.client, "new-2")
    assert (made.error_code, made.topic_config_error_code, made.num_partitions) == (OK, 0, 1)
    assert made.configs
    grown = rights.call(
        ApiKey.CREATE_PARTITIONS,
        3,
        topics=[{"name": name, "count": 2, "assignments": None} for name in ("new-1", "new-2")],
        timeout=20_000,
        validate_only=False,
    )
    assert [each.error_code for each in grown.results] == [OK, TOPIC_DENIED]


def test_deletion_of_topics(rights: TwoBrokers) -> None:
    rows = create_topics(rights.admin, "a", "b", "c")
    ids = {row.name: row.topic_id for row in rows}

    def delete(name: str | None = None, topic_id: uuid.UUID | None = None) -> tuple[Any, ...]:
        (row,) = rights.call(
            ApiKey.DELETE_TOPICS,
            6,
            topics=[{"name": name, "topic_id": topic_id}],
            timeout=20_000,
        ).responses
        return row.error_code, row.name, row.topic_id

    rights.grant((TOPIC, "b", Op.DESCRIBE))
    assert delete("a") == (TOPIC_DENIED, "a", None)
    assert delete(topic_id=ids["a"]) == (TOPIC_DENIED, None, ids["a"])
    assert delete("b") == (TOPIC_DENIED, "b", None)
    assert delete(topic_id=ids["b"]) == (TOPIC_DENIED, "b", ids["b"])
    assert delete("none") == (TOPIC_DENIED, "none", None)
    (row,) = rights.call(ApiKey.DELETE_TOPICS, 5, topic_names=[""], timeout=20_000).responses
    assert (row.error_code, row.name) == (TOPIC_DENIED, "")
    rights.grant((TOPIC, "a", Op.DELETE), (TOPIC, "none", Op.DESCRIBE))
    assert delete("none")[0] == ErrorCode.unknown_topic_or_partition
    assert delete("a")[0] == OK
    rights.grant((TOPIC, "b", Op.DELETE))
    assert delete(topic_id=ids["b"]) == (OK, "b", ids["b"])
    rights.grant((CLUSTER, "kafka-cluster", Op.DELETE))
    assert delete("c")[0] == OK
    assert delete("none")[0] == ErrorCode.unknown_topic_or_partition


def test_metadata(rights: TwoBrokers) -> None:
    create_topics(rights.admin, "u")

    def shown(version: int, topics: Any, **more: bool) -> Any:
        flags = {
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        }
        return rights.call(ApiKey.METADATA, version, topics=topics, **flags | more)

    rights.grant((TOPIC, "t", Op.READ))
    found = shown(8, None)
    assert [each.name for each in found.topics] == ["t"]
    bits = 1 << Op.READ | 1 << Op.DESCRIBE
    assert found.topics[0].topic_authorized_operations == bits
    assert found.cluster_authorized_operations == 0
    off = {"include_topic_authorized_operations": False}
    found = shown(8, None, **off, include_cluster_authorized_operations=False)
    assert found.topics[0].topic_authorized_operations == NOT_SAID
    assert found.cluster_authorized_operations == NOT_SAID
    (denied,) = shown(8, [{"name": "u"}]).topics
    assert (denied.error_code, denied.topic_authorized_operations) == (TOPIC_DENIED, NOT_SAID)

    everything = rights.admin.call(
        ApiKey.METADATA,
        12,
        topics=None,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    ids = {each.name: each.topic_id for each in everything.topics}
    by_id: list[Mapping[str, Any]] = [{"name": None, "topic_id": ids[name]} for name in "tu"]
    flags = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
    (there, hidden) = rights.call(ApiKey.METADATA, 12, topics=by_id, **flags).topics
    assert (there.error_code, there.name) == (OK, "t")
    assert (hidden.error_code, hidden.name, hidden.topic_id) == (TOPIC_DENIED, None, ids["u"])

    rights.grant((CLUSTER, "kafka-cluster", Op.DESCRIBE), (TOPIC, "new", Op.DESCRIBE))
    found = shown(8, [{"name": "new"}], allow_auto_topic_creation=True)
    assert found.cluster_authorized_operations == 1 << Op.DESCRIBE
    assert found.topics[0].error_code == TOPIC_DENIED
    unknown = shown(8, [{"name": "new"}]).topics[0]
    assert unknown.error_code == ErrorCode.unknown_topic_or_partition
    rights.grant((TOPIC, "new", Op.CREATE), (TOPIC, "new", Op.DESCRIBE))
    (made,) = shown(8, [{"name": "new"}], allow_auto_topic_creation=True).topics
    assert made.error_code in {ErrorCode.unknown_topic_or_partition, OK}


def test_records(rights: TwoBrokers) -> None:
    create_topics(rights.admin, "u")
    (topic,) = rights.admin.call(
        ApiKey.METADATA,
        12,
        topics=[{"name": "t", "topic_id": None}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    ).topics

    def produce() -> list[int]:
        batch = build_batch([(None, b"v")])
        rows = [{"name": name, "partition_data": [{"index": 0, "records": batch}]} for name in "tu"]
        values = {"transactional_id": None, "acks": -1, "timeout": 20_000, "topic_data": rows}
        answer = rights.call(ApiKey.PRODUCE, 9, **values)
        return [each.partition_responses[0].error_code for each in answer.responses]

    def fetch() -> int:
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        answer = rights.call(
            ApiKey.FETCH,
            13,
            max_wait=0,
            min_bytes=0,
            max_bytes=1000,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            rack_id="",
            topics=[{"topic_id": topic.topic_id, "partitions": [part]}],
            replica_id=-1,
        )
        return int(answer.responses[0].partitions[0].error_code)

    rights.grant((TOPIC, "t", Op.WRITE))
    assert produce() == [OK, TOPIC_DENIED]
    assert fetch() == TOPIC_DENIED
    rights.grant((TOPIC, "t", Op.READ))
    assert produce() == [TOPIC_DENIED, TOPIC_DENIED]
    assert fetch() == OK
