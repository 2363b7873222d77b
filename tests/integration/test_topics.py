"""Metadata and topic administration, with Kafka's answers to what is wrong."""

import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import LATEST, list_offset, produce
from tests.rigs.patience import Deadline
from tests.rigs.wire_client import WireClient, build_batch

BATCH = build_batch([(b"k", b"v")])


def metadata(
    client: WireClient, version: int, names: list[str] | None, *, auto_create: bool = False
) -> Any:
    values: dict[str, Any] = {}
    topic: dict[str, Any] = {"topic_id": None} if version >= 10 else {}
    values["topics"] = None if names is None else [topic | {"name": name} for name in names]
    if version >= 4:
        values["allow_auto_topic_creation"] = auto_create
    if version >= 8:
        values["include_topic_authorized_operations"] = False
    if 8 <= version <= 10:
        values["include_cluster_authorized_operations"] = False
    return client.call(ApiKey.METADATA, version, **values)


def create(client: WireClient, *, version: int = 5, only_check: bool = False, **topic: Any) -> Any:
    row = {"num_partitions": 1, "replication_factor": 1} | topic
    answer = client.call(ApiKey.CREATE_TOPICS, version, topics=[row], validate_only=only_check)
    return answer.topics[0]


def exists(client: WireClient, name: str) -> bool:
    code = metadata(client, 12, [name]).topics[0].error_code
    return bool(code == ErrorCode.none)


@pytest.mark.parametrize("version", range(14))
def test_metadata(
    client: WireClient, make_topic: MakeTopic, broker: EmbeddedCluster, version: int
) -> None:
    topic = make_topic(partitions=3)
    answer = metadata(client, version, [topic])
    (node,) = answer.brokers
    assert (node.host, node.port) == (broker.host, broker.port)
    (row,) = answer.topics
    assert (row.error_code, row.name) == (ErrorCode.none, topic)
    assert sorted(part.partition_index for part in row.partitions) == [0, 1, 2]
    assert {part.leader_id for part in row.partitions} == {node.node_id}
    assert {part.replica_nodes for part in row.partitions} == {(node.node_id,)}
    if version >= 1:
        assert answer.controller_id == node.node_id
    if version >= 2:
        assert answer.cluster_id
    if version >= 7:
        assert {part.leader_epoch for part in row.partitions} == {0}


def test_metadata_of_all_and_of_none(client: WireClient, make_topic: MakeTopic) -> None:
    topics = {make_topic(), make_topic()}
    assert topics <= {row.name for row in metadata(client, 0, []).topics}
    for version in (1, 12):
        assert topics <= {row.name for row in metadata(client, version, None).topics}
        assert metadata(client, version, []).topics == ()


def test_metadata_by_id(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    wanted = metadata(client, 12, [topic]).topics[0].topic_id
    row = client.call(
        ApiKey.METADATA,
        12,
        topics=[{"topic_id": wanted, "name": None}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    ).topics[0]
    assert (row.error_code, row.name, row.topic_id) == (ErrorCode.none, topic, wanted)


def test_metadata_of_an_unknown_id(client: WireClient) -> None:
    row = client.call(
        ApiKey.METADATA,
        12,
        topics=[{"topic_id": uuid.UUID(int=5), "name": None}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    ).topics[0]
    assert row.error_code == ErrorCode.unknown_topic_id


def test_metadata_of_unknown_and_invalid_names(client: WireClient) -> None:
    unknown = metadata(client, 12, ["no-such-topic"]).topics[0]
    assert unknown.error_code == ErrorCode.unknown_topic_or_partition
    invalid = metadata(client, 12, ["no such topic!"], auto_create=True).topics[0]
    assert invalid.error_code == ErrorCode.invalid_topic_exception


@pytest.mark.parametrize("version", [1, 4, 12])
def test_auto_creation(client: WireClient, version: int) -> None:
    name = f"auto-created-{version}"
    first = metadata(client, version, [name], auto_create=True).topics[0]
    assert first.error_code == ErrorCode.unknown_topic_or_partition
    deadline = Deadline("the topic is not created")
    while (row := metadata(client, version, [name], auto_create=True).topics[0]).error_code:
        assert row.error_code == ErrorCode.unknown_topic_or_partition
        deadline.check()
    assert produce(client, name, BATCH)[:2] == (ErrorCode.none, 0)


@pytest.mark.parametrize("version", range(2, 8))
def test_create(client: WireClient, version: int) -> None:
    name = f"created-{version}"
    row = create(client, version=version, name=name, num_partitions=2)
    assert (row.error_code, row.name) == (ErrorCode.none, name)
    assert len(metadata(client, 12, [name]).topics[0].partitions) == 2
    if version >= 5:
        assert row.num_partitions == 2
    if version >= 7:
        assert row.topic_id == metadata(client, 12, [name]).topics[0].topic_id


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"name": ""}, ErrorCode.invalid_topic_exception),
        ({"name": "."}, ErrorCode.invalid_topic_exception),
        ({"name": ".."}, ErrorCode.invalid_topic_exception),
        ({"name": "a b"}, ErrorCode.invalid_topic_exception),
        ({"name": "a/b"}, ErrorCode.invalid_topic_exception),
        ({"name": "ü"}, ErrorCode.invalid_topic_exception),
        ({"name": "x" * 250}, ErrorCode.invalid_topic_exception),
        ({"name": "bad-0", "num_partitions": 0}, ErrorCode.invalid_partitions),
        ({"name": "bad-1", "num_partitions": -2}, ErrorCode.invalid_partitions),
        ({"name": "bad-2", "replication_factor": 0}, ErrorCode.invalid_replication_factor),
        ({"name": "bad-3", "replication_factor": -2}, ErrorCode.invalid_replication_factor),
        (
            {"name": "bad-4", "configs": [{"name": "no.such.config", "value": "1"}]},
            ErrorCode.invalid_config,
        ),
        (
            {"name": "bad-5", "configs": [{"name": "max.message.bytes", "value": "many"}]},
            ErrorCode.invalid_config,
        ),
        (
            {"name": "bad-6", "configs": [{"name": "message.timestamp.type", "value": "x"}]},
            ErrorCode.invalid_config,
        ),
    ],
)
def test_create_refused(client: WireClient, topic: dict[str, Any], code: ErrorCode) -> None:
    for only_check in (True, False):
        row = create(client, only_check=only_check, **topic)
        assert (row.error_code, row.name) == (code, topic["name"])
        assert row.error_message
    assert topic["name"] not in {row.name for row in metadata(client, 12, None).topics}


def test_create_what_exists(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert create(client, name=topic).error_code == ErrorCode.topic_already_exists


def test_create_only_checked(client: WireClient) -> None:
    assert create(client, only_check=True, name="only-checked").error_code == ErrorCode.none
    assert not exists(client, "only-checked")


def test_create_twice_in_one_request(client: WireClient) -> None:
    row = {"name": "twice", "num_partitions": 1, "replication_factor": 1}
    answer = client.call(ApiKey.CREATE_TOPICS, 5, topics=[row, row])
    assert {result.error_code for result in answer.topics} == {ErrorCode.invalid_request}
    assert not exists(client, "twice")


def test_create_with_defaults(client: WireClient) -> None:
    """KIP-464: -1 takes the broker's own."""
    row = create(client, name="with-defaults", num_partitions=-1, replication_factor=-1)
    assert row.error_code == ErrorCode.none
    assert row.num_partitions >= 1
    assert row.replication_factor == 1


def test_a_replication_factor_of_3_is_taken_and_told_as_1(client: WireClient) -> None:
    """The bucket keeps the copies. Kafka refuses more replicas than it has brokers; tools that ask
    for their usual three must work with a single stateless broker."""
    row = create(client, name="replicated-by-the-bucket", replication_factor=3)
    assert (row.error_code, row.replication_factor) == (ErrorCode.none, 1)


def test_the_longest_name(client: WireClient) -> None:
    assert create(client, name="y" * 249).error_code == ErrorCode.none
    assert produce(client, "y" * 249, BATCH).error == ErrorCode.none


@pytest.mark.parametrize("version", range(1, 6))
def test_delete(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic()
    answer = client.call(
        ApiKey.DELETE_TOPICS, version, topic_names=[topic, "no-such-topic"], timeout=20_000
    )
    codes = {row.name: row.error_code for row in answer.responses}
    unknown = ErrorCode.unknown_topic_or_partition
    assert codes == {topic: ErrorCode.none, "no-such-topic": unknown}
    assert not exists(client, topic)
    assert produce(client, topic, BATCH).error == unknown


def test_delete_by_id(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    wanted = metadata(client, 12, [topic]).topics[0].topic_id
    rows = [{"name": None, "topic_id": wanted}, {"name": None, "topic_id": uuid.UUID(int=9)}]
    answer = client.call(ApiKey.DELETE_TOPICS, 6, topics=rows, timeout=20_000)
    codes = {row.topic_id: row.error_code for row in answer.responses}
    assert codes == {wanted: ErrorCode.none, uuid.UUID(int=9): ErrorCode.unknown_topic_id}
    assert not exists(client, topic)


def test_a_name_used_again_is_another_topic(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert produce(client, topic, BATCH).error == ErrorCode.none
    before = metadata(client, 12, [topic]).topics[0].topic_id
    client.call(ApiKey.DELETE_TOPICS, 5, topic_names=[topic], timeout=20_000)
    assert create(client, name=topic).error_code == ErrorCode.none
    assert metadata(client, 12, [topic]).topics[0].topic_id != before
    assert list_offset(client, topic, LATEST)[1] == 0


@pytest.mark.parametrize("version", range(3))
def test_create_partitions(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic(partitions=2)
    cases = [
        (topic, 1, ErrorCode.invalid_partitions),
        (topic, 2, ErrorCode.invalid_partitions),
        ("no-such-topic", 2, ErrorCode.unknown_topic_or_partition),
        (topic, 4, ErrorCode.none),
    ]
    for name, total, code in cases:
        row = {"name": name, "count": total, "assignments": None}
        answer = client.call(
            ApiKey.CREATE_PARTITIONS, version, topics=[row], timeout=20_000, validate_only=False
        )
        assert answer.results[0].error_code == code
    assert len(metadata(client, 12, [topic]).topics[0].partitions) == 4
    assert produce(client, topic, BATCH, partition=3)[:2] == (ErrorCode.none, 0)


def test_create_partitions_only_checked(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    row = {"name": topic, "count": 3, "assignments": None}
    answer = client.call(
        ApiKey.CREATE_PARTITIONS, 2, topics=[row], timeout=20_000, validate_only=True
    )
    assert answer.results[0].error_code == ErrorCode.none
    assert len(metadata(client, 12, [topic]).topics[0].partitions) == 1


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_configs(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic(max_message_bytes="4321")
    rows = [
        {"resource_type": 2, "resource_name": topic, "configuration_keys": None},
        {"resource_type": 2, "resource_name": "no-such-topic", "configuration_keys": None},
        {
            "resource_type": 2,
            "resource_name": topic,
            "configuration_keys": ["message.timestamp.type"],
        },
    ]
    everything, unknown, one = client.call(ApiKey.DESCRIBE_CONFIGS, version, resources=rows).results
    values = {row.name: row.value for row in everything.configs}
    assert everything.error_code == ErrorCode.none
    assert values["max.message.bytes"] == "4321"
    assert values["message.timestamp.type"] == "CreateTime"
    assert unknown.error_code == ErrorCode.unknown_topic_or_partition
    assert [row.name for row in one.configs] == ["message.timestamp.type"]
    sources = {row.name: row.config_source for row in everything.configs}
    assert sources["max.message.bytes"] == 1, "DYNAMIC_TOPIC_CONFIG"
    assert sources["message.timestamp.type"] == 5, "DEFAULT_CONFIG"


@pytest.mark.parametrize("wanted", [True, False])
def test_synonyms_of_configs(client: WireClient, make_topic: MakeTopic, wanted: bool) -> None:
    """KIP-226: what the value was chosen from, the one that counts first; if asked for."""
    keys = ["max.message.bytes", "message.timestamp.type", "retention.ms"]
    row = {
        "resource_type": 2,
        "resource_name": make_topic(max_message_bytes="4321"),
        "configuration_keys": keys,
    }
    answer = client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[row], include_synonyms=wanted)
    found = {
        config.name: [(each.name, each.value, each.source) for each in config.synonyms]
        for config in answer.results[0].configs
    }
    told = {
        keys[0]: [(keys[0], "4321", 1), ("message.max.bytes", "1048588", 5)],
        keys[1]: [("log.message.timestamp.type", "CreateTime", 5)],
        keys[2]: [],
    }
    assert found == (told if wanted else {key: [] for key in keys})
