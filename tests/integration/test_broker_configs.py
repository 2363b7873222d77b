"""Configs of brokers and loggers that take effect at run time."""

from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.resource_changes import BROKER, DELETE, GROUP, LOGGER, SET, SUBSCRIPTION
from tests.rigs.wire_client import WireClient, build_batch
from tests.servers.lone_broker import lone_broker

TOPIC = "t"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireClient]:
    with (
        lone_broker(tmp_path_factory.mktemp("broker"), config_resources_max="3") as broker,
        WireClient(broker.bootstrap) as client,
    ):
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        client.call(ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout=30_000)
        yield client


def alter(client: WireClient, kind: int, name: str, config: str, value: str | None) -> ErrorCode:
    operation = DELETE if value is None else SET
    configs = [{"name": config, "config_operation": operation, "value": value}]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    answer = client.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False
    )
    return ErrorCode(answer.responses[0].error_code)


def describe(client: WireClient, kind: int, name: str) -> dict[str, Any]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    answer = client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource], include_synonyms=True)
    return {each.name: each for each in answer.results[0].configs}


def produce(client: WireClient, size_bytes: int) -> ErrorCode:
    batch = build_batch([(b"k", b"v" * size_bytes)])
    rows = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
    answer = client.call(ApiKey.PRODUCE, 8, acks=-1, timeout=10_000, topic_data=rows)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def test_a_default_of_all_brokers_takes_effect_at_once(client: WireClient) -> None:
    assert produce(client, 500) is ErrorCode.none
    assert alter(client, BROKER, "", "message.max.bytes", "300") is ErrorCode.none
    assert produce(client, 500) is ErrorCode.message_too_large
    assert produce(client, 10) is ErrorCode.none
    shown = describe(client, 2, TOPIC)["max.message.bytes"]
    assert (shown.value, shown.config_source) == ("300", 3)
    assert alter(client, 2, TOPIC, "max.message.bytes", "2000") is ErrorCode.none
    assert produce(client, 500) is ErrorCode.none
    assert alter(client, 2, TOPIC, "max.message.bytes", None) is ErrorCode.none
    assert produce(client, 500) is ErrorCode.message_too_large
    assert alter(client, BROKER, "", "message.max.bytes", None) is ErrorCode.none
    assert produce(client, 500) is ErrorCode.none


def test_defaults_that_do_not_fit_together_are_refused(client: WireClient) -> None:
    least, most = "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    assert alter(client, BROKER, "", least, "10") is ErrorCode.none
    assert alter(client, BROKER, "", most, "9") is ErrorCode.invalid_config
    assert alter(client, BROKER, "", least, None) is ErrorCode.none


def test_a_level_of_a_logger_holds_until_it_is_removed(client: WireClient) -> None:
    (broker,) = client.call(ApiKey.METADATA, 7, topics=[]).brokers
    name, logger = str(broker.node_id), "bucketlog"
    before = describe(client, LOGGER, name)[logger].value
    assert alter(client, LOGGER, name, logger, "TRACE") is ErrorCode.none
    assert describe(client, LOGGER, name)[logger].value == "TRACE"
    assert alter(client, LOGGER, name, logger, None) is ErrorCode.none
    assert describe(client, LOGGER, name)[logger].value == before


def test_the_number_of_resources_with_configs_is_limited(client: WireClient) -> None:
    metrics, lag = "metrics", "streams.initial.rebalance.delay.ms"
    for number in range(3):
        assert alter(client, SUBSCRIPTION, f"s{number}", metrics, "*") is ErrorCode.none
    assert alter(client, GROUP, "g", lag, "5") is ErrorCode.policy_violation
    assert alter(client, SUBSCRIPTION, "s0", metrics, "a") is ErrorCode.none
    assert alter(client, SUBSCRIPTION, "s0", metrics, None) is ErrorCode.none
    assert alter(client, GROUP, "g", lag, "5") is ErrorCode.none
    assert alter(client, GROUP, "g" * 1_025, lag, "5") is ErrorCode.invalid_request
