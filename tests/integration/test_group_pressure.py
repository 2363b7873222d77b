"""Requests about groups that are hostile, or only hasty: none costs more than it is worth."""

import itertools
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.scripts import SequencerVerb
from bucketlog.stateless_broker.membership.membership import NAME_CHARS_KEPT
from tests.integration.conftest import MakeTopic
from tests.rigs.broker_rig import Rig
from tests.rigs.wire_client import WireClient

FRESH = itertools.count()


@pytest.fixture
def group() -> str:
    return f"pressed-{next(FRESH)}"


def commit_values(group: str, topic: str, offset: int) -> dict[str, Any]:
    row = {
        "partition_index": 0,
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": topic, "partitions": [row]}],
    }


def wanted_of(group: str) -> dict[str, Any]:
    return {"group_id": group, "topics": None}


def test_a_fetch_shows_the_commits_that_its_connection_sent_before(
    client: WireClient, make_topic: MakeTopic, group: str
) -> None:
    """Without waiting for their answers, and without asking for stable offsets."""
    topic = make_topic()
    for offset in range(1, 20):
        client.send(ApiKey.OFFSET_COMMIT, 8, **commit_values(group, topic, offset))
        client.send(ApiKey.OFFSET_FETCH, 8, groups=[wanted_of(group)], require_stable=False)
        answer = client.receive(ApiKey.OFFSET_COMMIT, 8)
        assert answer.topics[0].partitions[0].error_code is ErrorCode.none
        found = client.receive(ApiKey.OFFSET_FETCH, 8).groups[0]
        assert found.topics[0].partitions[0].committed_offset == offset


def test_a_group_is_described_once_however_often_it_is_named(
    client: WireClient, group: str
) -> None:
    other = f"{group}-other"
    found = client.call(
        ApiKey.DESCRIBE_GROUPS, 5, include_authorized_operations=False, groups=[group, other] * 50
    )
    assert [each.group_id for each in found.groups] == [group, other]


async def test_unknown_groups_are_not_asked_for_in_redis(rig: Rig) -> None:
    names = [f"nobody-{number}" for number in range(5000)]
    for _ in range(2):
        answer = await rig.call(
            ApiKey.DESCRIBE_GROUPS, 6, include_authorized_operations=False, groups=names
        )
        assert [each.group_id for each in answer.groups] == names
        assert {each.error_code for each in answer.groups} == {ErrorCode.group_id_not_found}
    calls = rig.sequencer.calls
    assert (calls[SequencerVerb.TAKE_GROUP], calls[SequencerVerb.LIST_GROUPS]) == (0, 1)


def test_offsets_of_a_group_are_fetched_once_by_a_request(
    client: WireClient, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    client.call(ApiKey.OFFSET_COMMIT, 8, **commit_values(group, topic, 3))
    groups = [wanted_of(group), wanted_of("nobody"), wanted_of(group)]
    found = client.call(ApiKey.OFFSET_FETCH, 8, groups=groups, require_stable=False).groups
    assert [each.group_id for each in found] == [group, "nobody", group]
    errors = [each.error_code for each in found]
    assert errors == [ErrorCode.none, ErrorCode.none, ErrorCode.invalid_request]
    assert [len(each.topics) for each in found] == [1, 0, 0]


def test_a_request_of_too_many_items_ends_its_connection_alone(
    client: WireClient, other: WireClient, group: str
) -> None:
    """They would keep the broker busy for longer than others take it for alive."""
    members = [{"member_id": ""}] * 100_001
    client.send(ApiKey.LEAVE_GROUP, 3, group_id=group, members=members)
    assert client.read_frame() is None
    assert other.call(ApiKey.LIST_GROUPS, 0).error_code is ErrorCode.none


async def test_long_names_are_not_kept(rig: Rig) -> None:
    """Clients invent ids of groups, and ask for their coordinators."""
    membership = rig.membership
    long = "n" * (NAME_CHARS_KEPT + 1)
    membership.coordinator_of(long[1:])
    kept = len(membership._coordinators)
    assert membership.coordinator_of(long) == membership.me
    assert len(membership._coordinators) == kept
