"""Share groups on the wire: sessions, acknowledgements, refusals, as Apache Kafka answers them."""

from collections.abc import Iterator
from itertools import count
from typing import Any
from uuid import UUID, uuid4

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.kafka_requests import produce
from tests.rigs.wire_client import WireClient, build_batch
from tests.scenarios.round_trip import create_topic

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP_NUMBERS = count()


class Member:
    """One share consumer of one topic with one partition."""

    def __init__(self, client: WireClient, group: str, topic: str) -> None:
        self.client, self.group = client, group
        self.member = str(uuid4())
        self.epoch = 0
        asked = client.call(
            ApiKey.METADATA,
            12,
            topics=[{"name": topic, "topic_id": None}],
            include_topic_authorized_operations=False,
        )
        self.topic_id: UUID = asked.topics[0].topic_id

    def named(self, *batches: tuple[int, int, list[int]]) -> list[dict[str, Any]]:
        rows = [
            {"first_offset": first, "last_offset": last, "acknowledge_types": types}
            for first, last, types in batches
        ]
        part = {"partition_index": 0, "acknowledgement_batches": rows}
        return [{"topic_id": self.topic_id, "partitions": [part]}]

    def fetch(self, *batches: tuple[int, int, list[int]], records: int = 100, **more: Any) -> Any:
        """The answer."""
        values: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member,
            "share_session_epoch": self.epoch,
            "max_wait": 500,
            "min_bytes": 1,
            "max_records": records,
            "batch_size": records,
            "share_acquire_mode": 1,
            "is_renew_ack": False,
            "topics": self.named(*batches),
            "forgotten_topics_data": [],
        }
        answer = self.client.call(ApiKey.SHARE_FETCH, 2, **(values | more))
        if answer.error_code is ErrorCode.none:
            self.epoch += 1
        return answer

    def acquired(self, *batches: tuple[int, int, list[int]], records: int = 100) -> list[Any]:
        """First and last offset, and deliveries."""
        answer = self.fetch(*batches, records=records)
        assert answer.error_code is ErrorCode.none
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for topic in answer.responses
            for part in topic.partitions
            for each in part.acquired_records
        ]

    def acknowledge(self, *batches: tuple[int, int, list[int]], **more: Any) -> Any:
        values: dict[str, Any] = {
            "group_id": self.group,
            "member_id": self.member,
            "share_session_epoch": self.epoch,
            "is_renew_ack": False,
            "topics": self.named(*batches),
        }
        answer = self.client.call(ApiKey.SHARE_ACKNOWLEDGE, 2, **(values | more))
        if answer.error_code is not ErrorCode.none:
            return answer.error_code
        self.epoch += 1
        (topic,) = answer.responses
        return topic.partitions[0].error_code


@pytest.fixture
def topic(broker: EmbeddedCluster) -> str:
    name = f"shared-{next(GROUP_NUMBERS)}"
    create_topic(broker.bootstrap, name, 1)
    return name


@pytest.fixture
def client(broker: EmbeddedCluster) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap) as client:
        yield client


@pytest.fixture
def member(client: WireClient, topic: str) -> Member:
    """Of a group that begins at offset 0 of a topic that has ten records now."""
    member = Member(client, f"group of {topic}", topic)
    assert member.acquired() == []
    for _ in range(5):
        produced = produce(client, topic, build_batch([(None, b"a"), (None, b"b")]))
        assert produced.error == ErrorCode.none
    return member


def test_records_are_acquired_once_and_acknowledged_one_by_one(
    member: Member, client: WireClient, topic: str
) -> None:
    assert member.acquired(records=3) == [(0, 2, 1)]
    other = Member(client, member.group, topic)
    assert other.acquired(records=4) == [(3, 6, 1)]
    assert member.acknowledge((0, 2, [ACCEPT, RELEASE, REJECT])) is ErrorCode.none
    assert member.acquired(records=2) == [(1, 1, 2), (7, 7, 1)]
    assert other.acknowledge((1, 1, [ACCEPT])) is ErrorCode.invalid_record_state
    assert member.acknowledge((0, 0, [ACCEPT])) is ErrorCode.invalid_record_state
    assert member.acquired((1, 1, [ACCEPT]), (7, 7, [ACCEPT])) == [(8, 9, 1)]


def test_a_renewed_lock_and_what_makes_no_sense(member: Member) -> None:
    assert member.acquired(records=3) == [(0, 2, 1)]
    assert member.acknowledge((0, 2, [RENEW])) is ErrorCode.invalid_request
    assert member.acknowledge((0, 2, [RENEW]), is_renew_ack=True) is ErrorCode.none
    assert member.acknowledge((0, 3, [ACCEPT, ACCEPT])) is ErrorCode.invalid_request
    assert member.acknowledge((0, 20, [ACCEPT])) is ErrorCode.invalid_request
    assert member.acknowledge((0, 2, [ACCEPT])) is ErrorCode.none


def test_the_epochs_of_a_session(member: Member, client: WireClient, topic: str) -> None:
    assert member.fetch(share_session_epoch=9).error_code is (ErrorCode.invalid_share_session_epoch)
    assert member.acknowledge(share_session_epoch=0) is ErrorCode.invalid_share_session_epoch
    stranger = Member(client, member.group, topic)
    assert stranger.fetch(share_session_epoch=1).error_code is ErrorCode.share_session_not_found
    with_acknowledgement = stranger.fetch((0, 0, [ACCEPT]))
    assert with_acknowledgement.error_code is ErrorCode.invalid_request


def test_the_end_of_a_session_releases_its_records(
    member: Member, client: WireClient, topic: str
) -> None:
    assert member.acquired(records=4) == [(0, 3, 1)]
    last = member.fetch((0, 0, [ACCEPT]), share_session_epoch=-1)
    (part,) = last.responses[0].partitions
    assert (part.error_code, part.acknowledge_error_code) == (ErrorCode.none, 0)
    other = Member(client, member.group, topic)
    assert other.acquired() == [(1, 3, 2), (4, 9, 1)]


def test_a_lost_connection_releases_its_records(
    broker: EmbeddedCluster, member: Member, client: WireClient, topic: str
) -> None:
    with WireClient(broker.bootstrap) as short:
        gone = Member(short, member.group, topic)
        assert gone.acquired(records=4) == [(0, 3, 1)]
    got: list[Any] = []
    while not any(deliveries == 2 for _, _, deliveries in got):
        got += member.acquired()
    assert sorted(got) == [(0, 3, 2), (4, 9, 1)]


def test_unknown_topics_and_partitions(member: Member) -> None:
    nowhere = [{"topic_id": uuid4(), "partitions": [member.named()[0]["partitions"][0]]}]
    answer = member.fetch(topics=nowhere)
    assert answer.responses[0].partitions[0].error_code is ErrorCode.unknown_topic_id
    part = {"partition_index": 7, "acknowledgement_batches": []}
    answer = member.fetch(topics=[{"topic_id": member.topic_id, "partitions": [part]}])
    rows = {part.error_code for topic in answer.responses for part in topic.partitions}
    assert ErrorCode.unknown_topic_or_partition in rows


def heartbeat(client: WireClient, group: str, member: str, epoch: int, **more: Any) -> Any:
    values: dict[str, Any] = {
        "group_id": group,
        "member_id": member,
        "member_epoch": epoch,
        "rack_id": None,
        "subscribed_topic_names": None,
    }
    return client.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, **(values | more))


def test_members_from_their_join_to_their_leave(client: WireClient, topic: str) -> None:
    group, first, second = f"group of {topic}", str(uuid4()), str(uuid4())
    joined = heartbeat(client, group, first, 0, subscribed_topic_names=[topic])
    assert (joined.error_code, joined.member_id) == (ErrorCode.none, first)
    (row,) = joined.assignment.topic_partitions
    assert row.partitions == (0,)
    same = heartbeat(client, group, first, joined.member_epoch)
    assert (same.error_code, same.assignment) == (ErrorCode.none, None)
    assert heartbeat(client, group, second, 0, subscribed_topic_names=[topic]).assignment
    assert heartbeat(client, group, first, 99).error_code is ErrorCode.fenced_member_epoch
    stranger = heartbeat(client, group, str(uuid4()), 1)
    assert stranger.error_code is ErrorCode.unknown_member_id
    no_topics = heartbeat(client, group, str(uuid4()), 0)
    assert no_topics.error_code is ErrorCode.invalid_request
    (described,) = client.call(
        ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=[group], include_authorized_operations=False
    ).groups
    assert described.group_state == "Stable"
    assert {each.member_id for each in described.members} == {first, second}
    listed = client.call(ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=["share"]).groups
    assert (group, "share", "Stable", "share") in [
        (each.group_id, each.protocol_type, each.group_state, each.group_type) for each in listed
    ]
    for member in (first, second):
        assert heartbeat(client, group, member, -1).member_epoch == -1
    (described,) = client.call(
        ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=[group], include_authorized_operations=False
    ).groups
    assert described.error_code is ErrorCode.group_id_not_found


def test_start_offsets_are_described_set_and_deleted(
    member: Member, client: WireClient, topic: str
) -> None:
    def described() -> tuple[int, int]:
        named = [{"group_id": member.group, "topics": None}]
        answer = client.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=named)
        ((part,),) = [each.partitions for each in answer.groups[0].topics] or [([None])]
        return (-1, -1) if part is None else (part.start_offset, part.lag)

    assert described() == (0, 10)
    assert member.acquired(records=6) == [(0, 5, 1)]
    assert member.acknowledge((0, 1, [ACCEPT]), (4, 4, [REJECT])) is ErrorCode.none
    assert described() == (2, 7)
    wanted = {"partition_index": 0, "start_offset": 8}
    values = {"topic_name": topic, "partitions": [wanted]}
    altered = client.call(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id=member.group, topics=[values]
    )
    assert altered.responses[0].partitions[0].error_code is ErrorCode.none
    assert described() == (8, 2)
    assert member.acknowledge((5, 5, [ACCEPT])) is not ErrorCode.none
    assert member.acquired() == [(8, 9, 1)]
    deleted = client.call(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        group_id=member.group,
        topics=[{"topic_name": topic}],
    )
    assert deleted.responses[0].error_code is ErrorCode.none
    gone = client.call(
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=[{"group_id": member.group, "topics": None}]
    )
    assert gone.groups[0].error_code is ErrorCode.group_id_not_found


def test_setting_offsets_creates_the_group(client: WireClient, topic: str) -> None:
    group = f"new group of {topic}"
    produce(client, topic, build_batch([(None, b"a"), (None, b"b")]))
    start = {"partition_index": 0, "start_offset": 1}
    altered = client.call(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        group_id=group,
        topics=[{"topic_name": topic, "partitions": [start]}],
    )
    assert altered.error_code is ErrorCode.none
    assert altered.responses[0].partitions[0].error_code is ErrorCode.none
    assert Member(client, group, topic).acquired() == [(1, 1, 1)]


def test_a_member_acknowledges_on_another_connection(
    member: Member, broker: EmbeddedCluster, topic: str
) -> None:
    assert member.acquired(records=3) == [(0, 2, 1)]
    first = member.client
    with WireClient(broker.bootstrap) as member.client:
        assert member.acknowledge((0, 1, [ACCEPT])) is ErrorCode.none
    member.client = first
    assert member.acknowledge((2, 2, [RELEASE])) is ErrorCode.none
    assert member.acquired(records=1) == [(2, 2, 2)]


def test_a_group_with_members_keeps_its_offsets(
    member: Member, client: WireClient, topic: str
) -> None:
    heartbeat(client, member.group, member.member, 0, subscribed_topic_names=[topic])
    altered = client.call(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        group_id=member.group,
        topics=[{"topic_name": topic, "partitions": [{"partition_index": 0, "start_offset": 1}]}],
    )
    assert altered.error_code is ErrorCode.non_empty_group
    deleted = client.call(ApiKey.DELETE_GROUPS, 2, groups_names=[member.group])
    assert deleted.results[0].error_code is ErrorCode.non_empty_group
    heartbeat(client, member.group, member.member, -1)
    deleted = client.call(ApiKey.DELETE_GROUPS, 2, groups_names=[member.group])
    assert deleted.results[0].error_code is ErrorCode.none


def test_configs_of_a_group_come_before_those_of_the_broker(client: WireClient, topic: str) -> None:
    group = f"group of {topic}"
    assert produce(client, topic, build_batch([(None, b"a")])).error == ErrorCode.none
    config = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
    resource = {"resource_type": 32, "resource_name": group, "configs": [config]}
    altered = client.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False
    )
    assert altered.responses[0].error_code == ErrorCode.none
    assert Member(client, group, topic).acquired() == [(0, 0, 1)]
