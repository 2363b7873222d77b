"""Configs of a group that members get with their next heartbeat."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.resource_changes import GROUP, SET
from tests.rigs.wire_client import WireClient
from tests.servers.lone_broker import lone_broker

TOPIC, MEMBER = "t", str(uuid4())
CONSUMER: dict[str, Any] = {
    "group_id": "consumers",
    "member_id": MEMBER,
    "instance_id": None,
    "rack_id": None,
    "rebalance_timeout": 60_000,
    "subscribed_topic_names": [TOPIC],
    "subscribed_topic_regex": None,
    "server_assignor": None,
    "topic_partitions": [],
}
SHARE: dict[str, Any] = {
    "group_id": "sharers",
    "member_id": MEMBER,
    "rack_id": None,
    "subscribed_topic_names": [TOPIC],
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireClient]:
    with (
        lone_broker(tmp_path_factory.mktemp("broker")) as broker,
        WireClient(broker.bootstrap) as client,
    ):
        topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        client.call(ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout=30_000)
        yield client


@pytest.mark.parametrize(
    ("api", "request_fields", "config"),
    [
        (ApiKey.CONSUMER_GROUP_HEARTBEAT, CONSUMER, "consumer.heartbeat.interval.ms"),
        (ApiKey.SHARE_GROUP_HEARTBEAT, SHARE, "share.heartbeat.interval.ms"),
    ],
)
def test_a_member_gets_the_interval_of_its_group(
    client: WireClient, api: ApiKey, request_fields: dict[str, Any], config: str
) -> None:
    first = client.call(api, 1, member_epoch=0, **request_fields)
    assert first.error_code is ErrorCode.none
    assert first.heartbeat_interval == timedelta(seconds=5)
    configs = [{"name": config, "config_operation": SET, "value": "7000"}]
    group = request_fields["group_id"]
    resource = {"resource_type": GROUP, "resource_name": group, "configs": configs}
    answer = client.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False
    )
    assert answer.responses[0].error_code is ErrorCode.none
    later = client.call(api, 1, member_epoch=first.member_epoch, **request_fields)
    assert later.error_code is ErrorCode.none
    assert later.heartbeat_interval == timedelta(seconds=7)
