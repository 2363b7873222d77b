"""Consumer groups as their bytes: each API's error codes at old and new versions."""

import itertools
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.conftest import MakeTopic
from tests.models.groups import subscription
from tests.rigs.wire_client import WireClient, supported_versions

CLASSIC_APIS = {
    ApiKey.OFFSET_COMMIT: range(2, 11),
    ApiKey.OFFSET_FETCH: range(1, 11),
    ApiKey.FIND_COORDINATOR: range(7),
    ApiKey.JOIN_GROUP: range(10),
    ApiKey.HEARTBEAT: range(5),
    ApiKey.LEAVE_GROUP: range(6),
    ApiKey.SYNC_GROUP: range(6),
    ApiKey.DESCRIBE_GROUPS: range(7),
    ApiKey.LIST_GROUPS: range(6),
    ApiKey.DELETE_GROUPS: range(3),
    ApiKey.OFFSET_DELETE: range(1),
}
"""As Apache Kafka 4.3 has them."""
_groups = itertools.count()


@pytest.fixture
def group() -> str:
    return f"wire-{next(_groups)}"


def join_values(group: str, member_id: str = "", version: int = 5, **wanted: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "group_id": group,
        "session_timeout": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription("t")}],
    }
    if version >= 1:
        values["rebalance_timeout"] = 10_000
    return values | wanted


def join(client: WireClient, group: str, version: int = 5, **wanted: Any) -> Any:
    return client.call(ApiKey.JOIN_GROUP, version, **join_values(group, version=version, **wanted))


def member_of(client: WireClient, group: str) -> tuple[str, int]:
    """Member id and generation of the one member of a stable group."""
    first = join(client, group)
    assert first.error_code is ErrorCode.member_id_required
    joined = join(client, group, member_id=first.member_id)
    assert joined.error_code is ErrorCode.none
    assert joined.leader == joined.member_id
    synced = sync(client, group, joined.member_id, joined.generation_id, b"all")
    assert (synced.error_code, synced.assignment) == (ErrorCode.none, b"all")
    return joined.member_id, joined.generation_id


def sync(
    client: WireClient, group: str, member_id: str, generation: int, assignment: bytes = b""
) -> Any:
    return client.call(
        ApiKey.SYNC_GROUP,
        3,
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        assignments=[{"member_id": member_id, "assignment": assignment}],
    )


def beat(client: WireClient, group: str, member_id: str, generation: int) -> ErrorCode:
    answer = client.call(
        ApiKey.HEARTBEAT, 3, group_id=group, generation_id=generation, member_id=member_id
    )
    return ErrorCode(answer.error_code)


def commit(
    client: WireClient,
    group: str,
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    member: tuple[str, int] = ("", -1),
    version: int = 8,
    metadata: str | None = "m",
) -> ErrorCode:
    row = {"partition_index": partition, "committed_offset": offset}
    answer = client.call(
        ApiKey.OFFSET_COMMIT,
        version,
        group_id=group,
        generation_id_or_member_epoch=member[1],
        member_id=member[0],
        topics=[{"name": topic, "partitions": [row | {"committed_metadata": metadata}]}],
        **({"retention_time": -1} if version <= 4 else {}),
    )
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def described(client: WireClient, group: str, version: int = 5) -> Any:
    answer = client.call(
        ApiKey.DESCRIBE_GROUPS, version, groups=[group], include_authorized_operations=False
    )
    return answer.groups[0]


def fetched(client: WireClient, group: str, topic: str, partitions: tuple[int, ...]) -> list[int]:
    wanted = {"group_id": group, "topics": [{"name": topic, "partition_indexes": partitions}]}
    answer = client.call(ApiKey.OFFSET_FETCH, 8, groups=[wanted], require_stable=True)
    assert answer.groups[0].error_code is ErrorCode.none
    return [row.committed_offset for row in answer.groups[0].topics[0].partitions]


def test_the_versions_are_apache_kafkas(client: WireClient) -> None:
    offered = {
        row.api_key: range(row.min_version, row.max_version + 1)
        for row in client.call(ApiKey.API_VERSIONS, 2).api_keys
    }
    for key, versions in CLASSIC_APIS.items():
        assert offered[key] == versions, key.message_name
        assert set(versions) <= set(supported_versions(key))


@pytest.mark.parametrize("version", range(10))
def test_every_version_of_joining(client: WireClient, group: str, version: int) -> None:
    answer = join(client, group, version)
    if version >= 4:
        assert answer.error_code is ErrorCode.member_id_required
        answer = join(client, group, version, member_id=answer.member_id)
    assert answer.error_code is ErrorCode.none
    assert [each.metadata for each in answer.members] == [subscription("t")]


def test_the_empty_group_id_takes_no_members(client: WireClient) -> None:
    assert join(client, "").error_code is ErrorCode.invalid_group_id
    assert sync(client, "", "m", 1).error_code is ErrorCode.invalid_group_id
    assert beat(client, "", "m", 1) is ErrorCode.invalid_group_id
    left = client.call(ApiKey.LEAVE_GROUP, 3, group_id="", members=[{"member_id": "m"}])
    assert left.error_code is ErrorCode.invalid_group_id
    deleted = client.call(ApiKey.OFFSET_DELETE, 0, group_id="", topics=[])
    assert deleted.error_code is ErrorCode.invalid_group_id


def test_joining_with_what_cannot_be(client: WireClient, group: str) -> None:
    assert join(client, group, session_timeout=1).error_code is ErrorCode.invalid_session_timeout
    assert join(client, group, member_id="x").error_code is ErrorCode.unknown_member_id
    nothing = join(client, group, protocols=[])
    assert nothing.error_code is ErrorCode.inconsistent_group_protocol
    member_of(client, group)
    connect = join(client, group, protocol_type="connect")
    assert connect.error_code is ErrorCode.inconsistent_group_protocol


def test_members_that_are_none(client: WireClient, group: str) -> None:
    member_id, generation = member_of(client, group)
    assert beat(client, group, member_id, generation) is ErrorCode.none
    assert beat(client, group, member_id, generation + 1) is ErrorCode.illegal_generation
    assert beat(client, group, "x", generation) is ErrorCode.unknown_member_id
    assert sync(client, group, "x", generation).error_code is ErrorCode.unknown_member_id
    old = client.call(ApiKey.LEAVE_GROUP, 1, group_id=group, member_id="x")
    assert old.error_code is ErrorCode.unknown_member_id
    members = [{"member_id": member_id}, {"member_id": "x"}]
    left = client.call(ApiKey.LEAVE_GROUP, 3, group_id=group, members=members)
    assert left.error_code is ErrorCode.none
    assert [each.error_code for each in left.members] == [
        ErrorCode.none,
        ErrorCode.unknown_member_id,
    ]


def test_sync_names_its_protocol(client: WireClient, group: str) -> None:
    answer = client.call(
        ApiKey.SYNC_GROUP, 5, group_id=group, generation_id=1, member_id="m", assignments=[]
    )
    assert answer.error_code is ErrorCode.inconsistent_group_protocol


def test_a_member_leaves_behind_its_own_join(
    client: WireClient, other: WireClient, group: str
) -> None:
    """It may be gone before that is answered: nobody is to wait for it then."""
    member_id, generation = member_of(client, group)
    second = join(other, group).member_id
    other.send(ApiKey.JOIN_GROUP, 5, **join_values(group, second))
    while beat(client, group, member_id, generation) is not ErrorCode.rebalance_in_progress:
        pass
    leaving = {"member_id": second, "group_instance_id": None}
    other.send(ApiKey.LEAVE_GROUP, 3, group_id=group, members=[leaving])
    assert other.receive(ApiKey.JOIN_GROUP, 5).error_code is ErrorCode.unknown_member_id
    assert other.receive(ApiKey.LEAVE_GROUP, 3).error_code is ErrorCode.none
    again = join(client, group, member_id=member_id)
    assert again.generation_id == generation + 1
    assert [each.member_id for each in again.members] == [member_id]


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_of_committing(
    client: WireClient, group: str, make_topic: MakeTopic, version: int
) -> None:
    topic = make_topic(2)
    assert commit(client, group, topic, 7, version=version) is ErrorCode.none
    assert commit(client, group, topic, 7, version=version, partition=2) is (
        ErrorCode.unknown_topic_or_partition
    )
    assert fetched(client, group, topic, (0, 1)) == [7, -1]


def test_committing_by_topic_id(client: WireClient, group: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    (found,) = client.call(
        ApiKey.METADATA,
        12,
        topics=[{"name": topic, "topic_id": None}],
        include_topic_authorized_operations=False,
    ).topics
    row = {"partition_index": 0, "committed_offset": 9, "committed_metadata": None}

    def commit_to(topic_id: Any) -> Any:
        return client.call(
            ApiKey.OFFSET_COMMIT,
            10,
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[{"topic_id": topic_id, "partitions": [row]}],
        ).topics[0]

    assert commit_to(found.topic_id).partitions[0].error_code is ErrorCode.none
    assert commit_to(None).partitions[0].error_code is ErrorCode.unknown_topic_id
    answer = client.call(ApiKey.OFFSET_FETCH, 10, groups=[{"group_id": group, "topics": None}])
    (row_of_topic,) = answer.groups[0].topics
    assert row_of_topic.topic_id == found.topic_id
    assert row_of_topic.partitions[0].committed_offset == 9


def test_commits_that_are_refused(client: WireClient, group: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    long = "m" * 4097
    assert commit(client, group, topic, 1, metadata=long) is ErrorCode.offset_metadata_too_large
    assert commit(client, group, "nowhere", 1) is ErrorCode.unknown_topic_or_partition
    stranger = ("m", 1)
    assert commit(client, group, topic, 1, member=stranger) is ErrorCode.illegal_generation
    newer = commit(client, group, topic, 1, member=stranger, version=9)
    assert newer is ErrorCode.group_id_not_found
    member_id, generation = member_of(client, group)
    assert commit(client, group, topic, 1) is ErrorCode.unknown_member_id
    wrong = (member_id, generation + 1)
    assert commit(client, group, topic, 1, member=wrong) is ErrorCode.illegal_generation
    assert commit(client, group, topic, 1, member=(member_id, generation)) is ErrorCode.none


@pytest.mark.parametrize("version", range(1, 8))
def test_fetching_of_one_group(
    client: WireClient, group: str, make_topic: MakeTopic, version: int
) -> None:
    topic = make_topic(3)
    assert commit(client, group, topic, 4, partition=1, metadata=None) is ErrorCode.none
    wanted = [{"name": topic, "partition_indexes": (0, 1)}]
    answer = client.call(ApiKey.OFFSET_FETCH, version, group_id=group, topics=wanted)
    rows = [(row.committed_offset, row.metadata) for row in answer.topics[0].partitions]
    assert rows == [(-1, ""), (4, "")]
    if version >= 2:
        everything = client.call(ApiKey.OFFSET_FETCH, version, group_id=group, topics=None)
        assert [row.partition_index for row in everything.topics[0].partitions] == [1]
        nothing = client.call(ApiKey.OFFSET_FETCH, version, group_id="nobodys", topics=None)
        assert (nothing.error_code, nothing.topics) == (ErrorCode.none, ())


def test_a_deleted_topics_offsets_are_gone(
    client: WireClient, group: str, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    assert commit(client, group, topic, 4) is ErrorCode.none
    client.call(ApiKey.DELETE_TOPICS, 5, topic_names=[topic], timeout=20_000)
    assert fetched(client, group, topic, (0,)) == [-1]
    assert described(client, group, 6).error_code is ErrorCode.group_id_not_found


def test_describing(client: WireClient, group: str) -> None:
    member_id, _ = member_of(client, group)
    found = described(client, group)
    assert (found.group_state, found.protocol_type, found.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (member,) = found.members
    assert (member.member_id, member.client_host) == (member_id, "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (subscription("t"), b"all")
    dead = described(client, "nobodys")
    assert (dead.error_code, dead.group_state) == (ErrorCode.none, "Dead")
    missing = described(client, "nobodys", 6)
    assert missing.error_code is ErrorCode.group_id_not_found


def test_listing_goes_by_state_and_type(
    client: WireClient, group: str, make_topic: MakeTopic
) -> None:
    member_of(client, group)
    simple = f"{group}-simple"
    assert commit(client, simple, make_topic(), 1) is ErrorCode.none

    def listed(version: int, **wanted: Any) -> dict[str, Any]:
        answer = client.call(ApiKey.LIST_GROUPS, version, **wanted)
        return {row.group_id: row for row in answer.groups}

    everything = listed(5)
    assert (everything[group].group_state, everything[group].protocol_type) == (
        "Stable",
        "consumer",
    )
    assert (everything[simple].group_state, everything[simple].protocol_type) == ("Empty", "")
    assert {group, simple} <= set(listed(0))
    assert group in listed(4, states_filter=["stable"])
    assert simple not in listed(4, states_filter=["stable"])
    assert group in listed(5, types_filter=["classic"])
    assert listed(5, types_filter=["consumer"]) == {}


def test_deleting_groups(client: WireClient, group: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    member_id, generation = member_of(client, group)
    assert commit(client, group, topic, 1, member=(member_id, generation)) is ErrorCode.none

    def delete() -> list[ErrorCode]:
        answer = client.call(ApiKey.DELETE_GROUPS, 2, groups_names=[group, "nobodys"])
        return [ErrorCode(row.error_code) for row in answer.results]

    assert delete() == [ErrorCode.non_empty_group, ErrorCode.group_id_not_found]
    client.call(ApiKey.LEAVE_GROUP, 3, group_id=group, members=[{"member_id": member_id}])
    assert delete() == [ErrorCode.none, ErrorCode.group_id_not_found]
    assert fetched(client, group, topic, (0,)) == [-1]
    assert delete() == [ErrorCode.group_id_not_found, ErrorCode.group_id_not_found]


def test_deleting_offsets(client: WireClient, group: str, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    rows = [{"partition_index": number} for number in (0, 1, 5)]
    wanted = [{"name": topic, "partitions": rows}, {"name": "nowhere", "partitions": rows[:1]}]

    def delete() -> Any:
        return client.call(ApiKey.OFFSET_DELETE, 0, group_id=group, topics=wanted)

    assert delete().error_code is ErrorCode.group_id_not_found
    for number in range(2):
        assert commit(client, group, topic, 3, partition=number) is ErrorCode.none
    first, second = delete().topics
    unknown = ErrorCode.unknown_topic_or_partition
    assert [row.error_code for row in first.partitions] == [
        ErrorCode.none,
        ErrorCode.none,
        unknown,
    ]
    assert [row.error_code for row in second.partitions] == [unknown]
    assert fetched(client, group, topic, (0, 1)) == [-1, -1]


@pytest.mark.parametrize("version", range(7))
def test_finding_the_coordinator(client: WireClient, broker: EmbeddedCluster, version: int) -> None:
    if version < 4:
        wanted = {"key": "g"} | ({"key_type": 0} if version else {})
        found = [client.call(ApiKey.FIND_COORDINATOR, version, **wanted)]
    else:
        answer = client.call(
            ApiKey.FIND_COORDINATOR, version, key_type=0, coordinator_keys=["g", "h"]
        )
        found = list(answer.coordinators)
    assert {(each.error_code, each.port) for each in found} == {(ErrorCode.none, broker.port)}
