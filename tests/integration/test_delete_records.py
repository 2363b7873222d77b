"""DeleteRecords: what it moves, what consumers see then, and Kafka's answers to what is wrong."""

import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import EARLIEST, LATEST, fetch, list_offset, produce
from tests.rigs.wire_client import WireClient, build_batch

NONE = ErrorCode.none


def write(client: WireClient, topic: str, records: int) -> None:
    for _ in range(records):
        assert produce(client, topic, build_batch([(b"k", b"v")])).error == NONE


def bounds(client: WireClient, topic: str) -> tuple[int, int]:
    return list_offset(client, topic, EARLIEST)[1], list_offset(client, topic, LATEST)[1]


def delete(
    client: WireClient,
    topic: str,
    *offsets: int,
    partition: int = 0,
    version: int = 2,
    timeout_ms: int = 20_000,
) -> Any:
    """The answer for each offset that is asked for."""
    wanted = [{"partition_index": partition, "offset": offset} for offset in offsets]
    answer = client.call(
        ApiKey.DELETE_RECORDS,
        version,
        topics=[{"name": topic, "partitions": wanted}],
        timeout=timeout_ms,
    )
    rows = answer.topics[0].partitions
    return [(row.error_code, row.low_watermark) for row in rows]


@pytest.mark.parametrize("version", range(3))
def test_the_log_start_moves_and_stays(
    client: WireClient, make_topic: MakeTopic, version: int
) -> None:
    topic = make_topic()
    write(client, topic, 5)
    assert delete(client, topic, 3, version=version) == [(NONE, 3)]
    assert bounds(client, topic) == (3, 5)
    assert delete(client, topic, 2, version=version) == [(NONE, 3)]  # it never goes back
    assert delete(client, topic, -1, version=version) == [(NONE, 5)]
    write(client, topic, 1)
    assert bounds(client, topic) == (5, 6)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_the_timeout_is_for_other_replicas_alone(
    client: WireClient, make_topic: MakeTopic, timeout_ms: int
) -> None:
    topic = make_topic()
    write(client, topic, 2)
    assert delete(client, topic, 1, timeout_ms=timeout_ms) == [(NONE, 1)]


def test_what_is_deleted_is_out_of_range(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    write(client, topic, 4)
    delete(client, topic, 2)
    for offset, expected in ((1, ErrorCode.offset_out_of_range), (2, NONE), (3, NONE)):
        assert fetch(client, topic, offset).error == expected


@pytest.mark.parametrize("offset", [3, 99, -2, 2**62])
def test_an_offset_that_is_not_there(
    client: WireClient, make_topic: MakeTopic, offset: int
) -> None:
    topic = make_topic()
    write(client, topic, 2)
    assert delete(client, topic, offset) == [(ErrorCode.offset_out_of_range, -1)]
    assert bounds(client, topic) == (0, 2)


def test_a_partition_that_is_not_there(client: WireClient, make_topic: MakeTopic) -> None:
    unknown = [(ErrorCode.unknown_topic_or_partition, -1)]
    assert delete(client, f"no-{uuid.uuid4().hex}", 0) == unknown
    assert delete(client, make_topic(), 0, partition=7) == unknown


def test_a_partition_that_is_named_twice(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    write(client, topic, 2)
    assert delete(client, topic, 2, 1) == [(ErrorCode.none, 1)], "the last offset counts"
    assert bounds(client, topic) == (1, 2)


def test_a_topic_that_is_compacted_alone(client: WireClient, make_topic: MakeTopic) -> None:
    """Kafka: PolicyViolationException, for `cleanup.policy` without delete."""
    compacted = make_topic(cleanup_policy="compact")
    write(client, compacted, 2)
    assert delete(client, compacted, 1) == [(ErrorCode.policy_violation, -1)]
    for policy in ("compact,delete", ""):
        both = make_topic(cleanup_policy=policy)
        write(client, both, 2)
        assert delete(client, both, 1) == [(NONE, 1)]
