"""Fetch: positions, limits, long poll, all versions."""

import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.batch import read_header
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import fetch, fetch_values, produce
from tests.rigs.patience import PATIENCE_S
from tests.rigs.wire_client import WireClient, build_batch

ROWS = [(b"k", b"v" * 100)] * 10
BATCH = build_batch(ROWS)


def topic_id(client: WireClient, topic: str) -> uuid.UUID:
    answer = client.call(
        ApiKey.METADATA,
        12,
        topics=[{"topic_id": None, "name": topic}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    found = answer.topics[0].topic_id
    assert isinstance(found, uuid.UUID)
    return found


def fetch_by_id(client: WireClient, version: int, wanted: uuid.UUID, offset: int) -> Any:
    row = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    topics = [{"topic_id": wanted, "partitions": [row]}]
    answer = client.call(ApiKey.FETCH, version, max_wait=0, min_bytes=1, topics=topics)
    assert answer.error_code == ErrorCode.none
    return answer.responses[0].partitions[0]


@pytest.mark.parametrize("version", range(4, 13))
def test_by_name(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic()
    assert produce(client, topic, BATCH).error == ErrorCode.none
    answer = fetch(client, topic, 0, version=version)
    assert answer[:2] == (ErrorCode.none, 10)
    assert answer.data[16:] == BATCH[16:]


@pytest.mark.parametrize("version", range(13, 17))
def test_by_id(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic()
    assert produce(client, topic, BATCH).error == ErrorCode.none
    row = fetch_by_id(client, version, topic_id(client, topic), 0)
    assert (row.error_code, row.high_watermark) == (ErrorCode.none, 10)
    assert row.records[16:] == BATCH[16:]


def test_an_unknown_id(client: WireClient) -> None:
    row = fetch_by_id(client, 13, uuid.UUID(int=77), 0)
    assert row.error_code == ErrorCode.unknown_topic_id


def test_unknown_topic_and_partition(client: WireClient, make_topic: MakeTopic) -> None:
    unknown = ErrorCode.unknown_topic_or_partition
    assert fetch(client, "no-such-topic", 0).error == unknown
    assert fetch(client, make_topic(), 0, partition=3).error == unknown


def test_out_of_range(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert produce(client, topic, BATCH).error == ErrorCode.none
    assert fetch(client, topic, 11).error == ErrorCode.offset_out_of_range
    assert fetch(client, topic, -5).error == ErrorCode.offset_out_of_range
    assert fetch(client, topic, 10)[:] == (ErrorCode.none, 10, b"")


def test_a_position_inside_a_batch(client: WireClient, make_topic: MakeTopic) -> None:
    """The whole batch is answered, clients skip to their offset."""
    topic = make_topic()
    for _ in range(3):
        produce(client, topic, BATCH)
    data = fetch(client, topic, 15).data
    assert read_header(data).base_offset == 10
    assert len(data) == 2 * len(BATCH)


def test_the_first_batch_comes_whatever_the_limit(
    client: WireClient, make_topic: MakeTopic
) -> None:
    """KIP-74."""
    topic = make_topic()
    for _ in range(3):
        produce(client, topic, BATCH)
    assert len(fetch(client, topic, 0, max_bytes=1).data) == len(BATCH)
    assert len(fetch(client, topic, 0, partition_max_bytes=1).data) == len(BATCH)


@pytest.mark.parametrize("limit", ["max_bytes", "partition_max_bytes"])
def test_limits_bound_what_follows(client: WireClient, make_topic: MakeTopic, limit: str) -> None:
    """Whole batches, or a last one cut short as Kafka may: never more bytes than asked for."""
    topic = make_topic()
    for _ in range(10):
        produce(client, topic, BATCH)
    bound = 5 * len(BATCH) + 10
    values = fetch_values(topic, 0) | {"max_wait": 0, "min_bytes": 1}
    if limit == "max_bytes":
        values["max_bytes"] = bound
    else:
        values["topics"][0]["partitions"][0]["partition_max_bytes"] = bound
    data = client.call(ApiKey.FETCH, 12, **values).responses[0].partitions[0].records
    assert 5 * len(BATCH) <= len(data) <= bound


def test_a_long_poll_ends_with_the_first_record(
    client: WireClient, make_topic: MakeTopic, broker: EmbeddedCluster
) -> None:
    topic = make_topic()
    with WireClient(broker.bootstrap, timeout_s=PATIENCE_S) as waiting:
        values = fetch_values(topic, 0) | {"max_wait": 600_000, "min_bytes": 1}
        waiting.send(ApiKey.FETCH, 12, **values)
        assert produce(client, topic, BATCH).error == ErrorCode.none
        row = waiting.receive(ApiKey.FETCH, 12).responses[0].partitions[0]
        assert (row.error_code, row.high_watermark) == (ErrorCode.none, 10)
        assert row.records[16:] == BATCH[16:]


def test_a_long_poll_ends_empty(client: WireClient, make_topic: MakeTopic) -> None:
    answer = fetch(client, make_topic(), 0, max_wait_ms=50)
    assert answer == (ErrorCode.none, 0, b"")


def test_a_session_names_only_what_is_new(client: WireClient, make_topic: MakeTopic) -> None:
    """KIP-227, over the wire."""
    topic = make_topic()
    produce(client, topic, BATCH)
    values = fetch_values(topic, 10) | {"session_epoch": 0}
    answer = client.call(ApiKey.FETCH, 12, **values)
    assert answer.error_code == ErrorCode.none
    assert answer.session_id > 0
    assert answer.responses[0].partitions[0].high_watermark == 10
    values |= {"session_id": answer.session_id, "session_epoch": 1, "topics": []}
    answer = client.call(ApiKey.FETCH, 12, **values)
    assert (answer.error_code, answer.session_id) == (ErrorCode.none, values["session_id"])
    assert answer.responses == ()
    produce(client, topic, BATCH)
    answer = client.call(ApiKey.FETCH, 12, **values | {"session_epoch": 2})
    assert answer.responses[0].partitions[0].records[16:] == BATCH[16:]
    answer = client.call(ApiKey.FETCH, 12, **values | {"session_epoch": 2})
    assert answer.error_code == ErrorCode.invalid_fetch_session_epoch


def test_several_partitions_in_one_request(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    for partition in range(3):
        produce(client, topic, BATCH, partition=partition)
    values = fetch_values(topic, 0)
    values["topics"][0]["partitions"] = [
        {"partition": number, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        for number in range(3)
    ]
    answer = client.call(ApiKey.FETCH, 12, **values)
    rows = {row.partition_index: row.records for row in answer.responses[0].partitions}
    assert {number: data[16:] for number, data in rows.items()} == dict.fromkeys(
        range(3), BATCH[16:]
    )
