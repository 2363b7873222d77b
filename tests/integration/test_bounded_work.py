"""Requests for large responses: their cost, their effect on others, and their cancellation."""

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.network.turns import SLICE_UNITS
from tests.rigs.broker_rig import Rig, create_topic

pytestmark = pytest.mark.long


def metadata(rig: Rig, topics: object, version: int = 4) -> "asyncio.Task[Any]":
    return rig.send(ApiKey.METADATA, version, topics=topics, allow_auto_topic_creation=False)


def named(*names: str) -> tuple[dict[str, str], ...]:
    return tuple({"name": name} for name in names)


async def answered_meanwhile(rig: Rig, large: "asyncio.Task[Any]") -> int:
    """The number of another connection's requests that are answered before `large`."""
    count = 0
    while not large.done():
        await rig.call(ApiKey.API_VERSIONS, 0)
        count += 1
    return count


async def test_a_topic_that_is_named_again_and_again_is_answered_once(rig: Rig) -> None:
    await create_topic(rig, "u", 1_000)
    before = rig.node.parts.turns.slices
    answer = await metadata(rig, named(*["u"] * 20_000))
    assert [topic.name for topic in answer.topics] == ["u"]
    assert len(answer.topics[0].partitions) == 1_000
    assert rig.node.parts.turns.slices - before <= 1


async def test_all_partitions_are_answered_slice_by_slice_and_then_from_memory(rig: Rig) -> None:
    for number in range(5):
        await create_topic(rig, f"t{number}", 4_000)
    turns = rig.node.parts.turns
    before = turns.slices
    large = metadata(rig, None)
    assert await answered_meanwhile(rig, large) >= 3
    answer = await large
    assert sum(len(topic.partitions) for topic in answer.topics) == 20_004
    assert turns.slices - before >= 20_000 // SLICE_UNITS - 1
    before = turns.slices
    assert await metadata(rig, None) == answer
    assert turns.slices == before, "each topic was encoded before"


async def test_what_is_kept_of_metadata_follows_partitions_and_topics(rig: Rig) -> None:
    assert len((await metadata(rig, None)).topics[0].partitions) == 4
    grown = ({"name": "t", "count": 6, "assignments": None},)
    await rig.call(ApiKey.CREATE_PARTITIONS, 1, topics=grown, timeout=20_000, validate_only=False)
    (topic,) = (await metadata(rig, None)).topics
    assert [part.partition_index for part in topic.partitions] == [0, 1, 2, 3, 4, 5]
    await rig.call(ApiKey.DELETE_TOPICS, 4, topic_names=("t",), timeout=20_000)
    assert (await metadata(rig, None)).topics == ()
    await create_topic(rig, "t", 1)
    (again,) = (await metadata(rig, None)).topics
    assert len(again.partitions) == 1


async def test_a_resource_that_is_named_again_and_again_is_described_once(rig: Rig) -> None:
    resource = {"resource_type": 2, "resource_name": "t", "configuration_keys": None}
    missing = {"resource_type": 2, "resource_name": "u", "configuration_keys": None}
    answer = await rig.call(
        ApiKey.DESCRIBE_CONFIGS,
        4,
        resources=(*[resource] * 40_000, missing),
        include_synonyms=True,
        include_documentation=False,
    )
    assert [result.resource_name for result in answer.results] == ["t", "u"]
    assert len(answer.results[0].configs) > 10
    assert answer.results[1].error_code == ErrorCode.unknown_topic_or_partition


def wanted(name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "num_partitions": 1, "replication_factor": 1}
    return row | {"configs": (), "assignments": ()}


async def test_names_are_held_against_all_topics_without_looking_at_each(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_topic(rig, "a.b")
    looks: list[View] = []
    monkeypatch.setattr(View, "topics", looks.append)
    topics = tuple(wanted(f"new.{number}") for number in range(3_000))
    large = rig.send(
        ApiKey.CREATE_TOPICS,
        5,
        topics=(*topics, wanted("a_b")),
        timeout=20_000,
        validate_only=True,
    )
    assert await answered_meanwhile(rig, large) >= 3
    answer = await large
    errors = [ErrorCode(topic.error_code) for topic in answer.topics]
    assert errors == [ErrorCode.none] * 3_000 + [ErrorCode.invalid_topic_exception]
    assert not looks


@pytest.mark.parametrize("key", [ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS])
async def test_a_topic_that_is_named_twice_is_refused_once(rig: Rig, key: ApiKey) -> None:
    if key is ApiKey.CREATE_TOPICS:
        topics = (wanted("u"), wanted("v"), wanted("u"))
        answer = await rig.call(key, 5, topics=topics, timeout=20_000, validate_only=False)
        rows = answer.topics
    else:
        answer = await rig.call(key, 4, topic_names=("t", "w", "t"), timeout=20_000)
        rows = answer.responses
    assert [ErrorCode(row.error_code) for row in rows] == [
        ErrorCode.invalid_request,
        ErrorCode.none if key is ApiKey.CREATE_TOPICS else ErrorCode.unknown_topic_or_partition,
    ]
    assert rig.view.topic("t") is not None


async def test_a_request_whose_client_left_is_given_up(rig: Rig) -> None:
    await create_topic(rig, "u", 10_000)
    turns = rig.node.parts.turns
    before = turns.slices
    left = [metadata(rig, None, version) for version in range(4, 8)]
    await asyncio.sleep(0)
    rig.client.go()
    await rig.call(ApiKey.API_VERSIONS, 0)
    for version in (4, 5):
        await metadata(rig, None, version)
    assert turns.slices - before <= 2 * 10 + 4, "those that were given up did nothing more"
    for task in left:
        task.cancel()


async def test_latest_offsets_of_very_many_partitions_are_answered_slice_by_slice(
    rig: Rig,
) -> None:
    await create_topic(rig, "u", 10_000)
    rows = [{"partition_index": number, "timestamp": -1} for number in range(10_000)]
    large = rig.send(
        ApiKey.LIST_OFFSETS,
        1,
        replica_id=-1,
        topics=[{"name": "u", "partitions": rows}],
    )
    assert await answered_meanwhile(rig, large) >= 2
    answer = await large
    assert {part.offset for part in answer.topics[0].partitions} == {0}
