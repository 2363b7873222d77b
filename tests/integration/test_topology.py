"""APIs about brokers, leaders and replicas, in a cluster whose partitions have no replicas."""

from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.handlers.topic_partitions import PARTITIONS_MAX
from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import produce
from tests.rigs.wire_client import WireClient, build_batch

NO_OPERATIONS = -(2**31)
ALL_TOPIC_OPERATIONS = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
ALL_CLUSTER_OPERATIONS = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))


def describe_cluster(client: WireClient, version: int, **more: Any) -> Any:
    asked = {"include_cluster_authorized_operations": False} | more
    if version >= 2:
        asked["include_fenced_brokers"] = False
    return client.call(ApiKey.DESCRIBE_CLUSTER, version, **asked)


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster(client: WireClient, broker: EmbeddedCluster, version: int) -> None:
    answer = describe_cluster(client, version)
    (node,) = answer.brokers
    assert (answer.error_code, answer.error_message) == (ErrorCode.none, None)
    assert (node.host, node.port, node.rack) == (broker.host, broker.port, None)
    assert answer.controller_id == node.broker_id
    assert answer.cluster_authorized_operations == NO_OPERATIONS
    metadata = client.call(ApiKey.METADATA, 5, topics=[], allow_auto_topic_creation=False)
    assert answer.cluster_id == metadata.cluster_id


def test_describe_cluster_with_operations(client: WireClient) -> None:
    answer = describe_cluster(client, 1, include_cluster_authorized_operations=True)
    assert answer.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS


def test_brokers_are_no_controllers(client: WireClient) -> None:
    answer = describe_cluster(client, 1, endpoint_type=2)
    assert answer.error_code == ErrorCode.mismatched_endpoint_type
    assert answer.brokers == ()
    answer = describe_cluster(client, 1, endpoint_type=9)
    assert answer.error_code == ErrorCode.unsupported_endpoint_type
    assert answer.error_message == "Unsupported endpoint type 9"


def pages(client: WireClient, names: list[str], limit: int) -> Iterator[Any]:
    cursor = None
    while True:
        answer = client.call(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            0,
            topics=[{"name": name} for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        yield answer
        if answer.next_cursor is None:
            return
        found = answer.next_cursor
        cursor = {"topic_name": found.topic_name, "partition_index": found.partition_index}


def test_topic_partitions_page_by_page(client: WireClient, make_topic: MakeTopic) -> None:
    names = sorted([make_topic(partitions=5), make_topic(partitions=3), make_topic()])
    found: dict[str, list[int]] = {name: [] for name in names}
    sizes = []
    for page in pages(client, names[::-1], 4):
        sizes.append(sum(len(topic.partitions) for topic in page.topics))
        for topic in page.topics:
            assert topic.error_code == ErrorCode.none
            assert topic.topic_authorized_operations == ALL_TOPIC_OPERATIONS
            found[topic.name] += [row.partition_index for row in topic.partitions]
            for row in topic.partitions:
                assert row.replica_nodes == row.isr_nodes == (row.leader_id,)
                assert (row.eligible_leader_replicas, row.last_known_elr) == ((), ())
    assert sizes == [4, 4, 1]
    assert sorted(map(len, found.values())) == [1, 3, 5]
    assert all(numbers == list(range(len(numbers))) for numbers in found.values())


def test_topic_partitions_of_all_topics(client: WireClient, make_topic: MakeTopic) -> None:
    names = [make_topic(), make_topic()]
    listed = [topic.name for page in pages(client, [], PARTITIONS_MAX) for topic in page.topics]
    assert set(names) <= set(listed)
    assert listed == sorted(listed)


def test_topics_that_are_not_there(client: WireClient) -> None:
    (page,) = pages(client, ["a missing one", "missing"], 10)
    errors = {topic.name: topic.error_code for topic in page.topics}
    assert errors == {
        "a missing one": ErrorCode.invalid_topic_exception,
        "missing": ErrorCode.unknown_topic_or_partition,
    }


@pytest.mark.parametrize("cursor", [("elsewhere", 0), ("wanted", -1)])
def test_bad_cursors(client: WireClient, cursor: tuple[str, int]) -> None:
    answer = client.call(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=[{"name": "wanted"}],
        response_partition_limit=10,
        cursor={"topic_name": cursor[0], "partition_index": cursor[1]},
    )
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.invalid_request]


def epoch_end(client: WireClient, topic: str, partition: int, epoch: int, current: int) -> Any:
    row = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
    answer = client.call(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        replica_id=-1,
        topics=[{"topic": topic, "partitions": [row]}],
    )
    return answer.topics[0].partitions[0]


def test_the_only_leader_epoch_ends_where_the_partition_ends(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    produce(client, topic, build_batch([(None, b"one"), (None, b"two")]))
    for current in (-1, 0):
        row = epoch_end(client, topic, 0, 0, current)
        assert (row.error_code, row.leader_epoch, row.end_offset) == (ErrorCode.none, 0, 2)
    row = epoch_end(client, topic, 0, 1, 0)
    assert (row.error_code, row.leader_epoch, row.end_offset) == (ErrorCode.none, -1, -1)
    assert epoch_end(client, topic, 0, 0, 1).error_code == ErrorCode.unknown_leader_epoch
    assert epoch_end(client, topic, 1, 0, 0).error_code == ErrorCode.unknown_topic_or_partition


@pytest.mark.parametrize("version", range(1, 6))
def test_log_dirs(
    client: WireClient, make_topic: MakeTopic, broker: EmbeddedCluster, version: int
) -> None:
    topic = make_topic(partitions=2)
    batch = build_batch([(None, b"x" * 500)])
    produce(client, topic, batch)
    asked = [{"topic": topic, "partitions": [0, 1, 1, 7]}, {"topic": "none", "partitions": [0]}]
    answer = client.call(ApiKey.DESCRIBE_LOG_DIRS, version, topics=asked)
    (log_dir,) = answer.results
    assert (log_dir.error_code, log_dir.log_dir) == (ErrorCode.none, broker.bucket_url)
    (row,) = log_dir.topics
    sizes = {part.partition_index: part.partition_size for part in row.partitions}
    assert (row.name, sizes) == (topic, {0: len(batch), 1: 0})
    if version >= 4:
        assert (log_dir.total_bytes, log_dir.usable_bytes) == (-1, -1)
    if version >= 5:
        assert not log_dir.is_cordoned
    everything = client.call(ApiKey.DESCRIBE_LOG_DIRS, version, topics=None)
    assert topic in {each.name for each in everything.results[0].topics}


def test_no_election_is_needed(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    rows = [{"topic": topic, "partitions": [0, 1]}, {"topic": "none", "partitions": [0]}]
    for election in (0, 1):
        answer = client.call(
            ApiKey.ELECT_LEADERS, 2, election_type=election, topic_partitions=rows, timeout=1000
        )
        found = {
            (each.topic, row.partition_id): row.error_code
            for each in answer.replica_election_results
            for row in each.partition_result
        }
        assert found == {
            (topic, 0): ErrorCode.election_not_needed,
            (topic, 1): ErrorCode.unknown_topic_or_partition,
            ("none", 0): ErrorCode.unknown_topic_or_partition,
        }
    answer = client.call(
        ApiKey.ELECT_LEADERS, 2, election_type=0, topic_partitions=None, timeout=1000
    )
    assert (answer.error_code, answer.replica_election_results) == (ErrorCode.none, ())
    answer = client.call(
        ApiKey.ELECT_LEADERS, 2, election_type=5, topic_partitions=rows[:1], timeout=1000
    )
    assert answer.error_code == ErrorCode.invalid_request


def test_reassignments(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    (me,) = [node.broker_id for node in describe_cluster(client, 0).brokers]

    def moved(replicas: list[int] | None, partition: int = 0) -> tuple[ErrorCode, str | None]:
        row = {"partition_index": partition, "replicas": replicas}
        answer = client.call(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            0,
            timeout=1000,
            topics=[{"name": topic, "partitions": [row]}],
        )
        assert answer.error_code == ErrorCode.none
        found = answer.responses[0].partitions[0]
        return ErrorCode(found.error_code), found.error_message

    invalid = ErrorCode.invalid_replica_assignment
    assert moved([me]) == (ErrorCode.none, None)
    assert moved(None)[0] == ErrorCode.no_reassignment_in_progress
    assert moved([me], 1)[0] == ErrorCode.unknown_topic_or_partition
    assert moved([])[0] == invalid
    assert moved([me, me]) == (
        invalid,
        f"The manual partition assignment includes the broker {me} more than once.",
    )
    assert moved([me + 1]) == (
        invalid,
        f"The manual partition assignment includes broker {me + 1}, but no such broker is "
        "registered.",
    )
    listed = client.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout=1000, topics=None)
    assert (listed.error_code, listed.topics) == (ErrorCode.none, ())
