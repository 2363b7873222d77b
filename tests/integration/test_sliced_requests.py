"""Large requests are handled in slices, so that other connections do not wait."""

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.network.turns import SLICE_UNITS
from tests.rigs.broker_rig import Rig, create_topic, end_of
from tests.rigs.wire_client import build_batch, encode_request

PARTITIONS = 3_000
BATCH = build_batch([(None, b"value")])


def produced(name: str, indexes: list[int], *, acks: int = -1) -> dict[str, Any]:
    rows = [{"index": index, "records": BATCH} for index in indexes]
    data = [{"name": name, "partition_data": rows}]
    return {"acks": acks, "timeout": 60_000, "topic_data": data}


async def answered_meanwhile(rig: Rig, large: "asyncio.Task[Any]") -> int:
    """The number of another connection's requests that are answered before `large`."""
    count = 0
    while not large.done():
        await rig.call(ApiKey.API_VERSIONS, 0)
        count += 1
    return count


async def test_a_produce_to_very_many_partitions(rig: Rig) -> None:
    await create_topic(rig, "u", PARTITIONS)
    before = rig.node.parts.turns.slices
    segments = len(rig.segment_keys())
    large = rig.send(ApiKey.PRODUCE, 9, **produced("u", list(range(PARTITIONS + 1))))
    assert await answered_meanwhile(rig, large) >= 3
    (topic,) = (await large).responses
    rows = {
        row.index: (ErrorCode(row.error_code), row.base_offset) for row in topic.partition_responses
    }
    missing = rows.pop(PARTITIONS)
    assert missing == (ErrorCode.unknown_topic_or_partition, -1)
    assert rows == dict.fromkeys(range(PARTITIONS), (ErrorCode.none, 0))
    slices = rig.node.parts.turns.slices - before
    assert slices >= 2 * PARTITIONS // SLICE_UNITS, "decoded, admitted and answered"
    assert len(rig.segment_keys()) - segments >= PARTITIONS / rig.settings.flush_batches_max
    assert rig.budget.held_bytes == 0


async def test_a_partition_that_a_produce_names_again_and_again(rig: Rig) -> None:
    large = rig.send(ApiKey.PRODUCE, 9, **produced("t", [0] * 20_000))
    assert await answered_meanwhile(rig, large) >= 3
    (topic,) = (await large).responses
    (row,) = topic.partition_responses
    assert (ErrorCode(row.error_code), row.base_offset) == (ErrorCode.none, 0)
    assert await end_of(rig) == 1


@pytest.mark.parametrize("acks", [-1, 7])
async def test_the_answer_to_a_produce_does_not_repeat_a_long_name(rig: Rig, acks: int) -> None:
    """Otherwise a small request could have an answer of any size."""
    large = rig.send(ApiKey.PRODUCE, 9, **produced("x" * 30_000, list(range(1_000)), acks=acks))
    answer = await large
    (topic,) = answer.responses
    assert len(topic.partition_responses) == 1_000
    assert {len(row.error_message or "") for row in topic.partition_responses} <= {0, len("acks=7")}


async def test_a_large_produce_that_is_cut_closes_its_connection(rig: Rig) -> None:
    sent = encode_request(ApiKey.PRODUCE, 9, 1, produced("t", [0] * 2_000))
    assert await rig.send_bytes(sent[:-1]) is None
    assert rig.budget.held_bytes == 0


async def test_a_large_produce_without_acks(rig: Rig) -> None:
    await create_topic(rig, "u", 1_000)
    sent = encode_request(ApiKey.PRODUCE, 9, 1, produced("u", list(range(1_000)), acks=0))
    assert await rig.send_bytes(sent) == b""


async def test_a_commit_of_very_many_offsets(rig: Rig) -> None:
    """If a request names a partition twice, only the last offset counts, as in Kafka."""
    await create_topic(rig, "u", PARTITIONS)
    rows = [
        {
            "partition_index": index % PARTITIONS,
            "committed_offset": index,
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        for index in range(2 * PARTITIONS)
    ]
    topics = [{"name": "u", "partitions": rows}]
    before = rig.node.parts.turns.slices
    large = rig.send(
        ApiKey.OFFSET_COMMIT,
        8,
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=topics,
    )
    assert await answered_meanwhile(rig, large) >= 3
    (topic,) = (await large).topics
    assert [row.partition_index for row in topic.partitions] == [
        index % PARTITIONS for index in range(2 * PARTITIONS)
    ]
    assert {ErrorCode(row.error_code) for row in topic.partitions} == {ErrorCode.none}
    assert rig.node.parts.turns.slices - before >= 2 * PARTITIONS // 500
    offsets = rig.view.offsets("g").values()
    assert sorted(row.offset for row in offsets) == list(range(PARTITIONS, 2 * PARTITIONS))


@pytest.mark.parametrize("key", [ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS])
@pytest.mark.parametrize("is_twice", [False, True])
async def test_very_many_configs_are_refused_without_a_check_for_each(
    rig: Rig, key: ApiKey, is_twice: bool
) -> None:
    """The message does not name all of them."""
    configs: list[dict[str, Any]] = [
        {"name": f"c{number // 2 if is_twice else number}", "value": None}
        for number in range(5_000)
    ]
    if key is ApiKey.INCREMENTAL_ALTER_CONFIGS:
        configs = [each | {"config_operation": 0} for each in configs]
    resource = {"resource_type": 2, "resource_name": "t", "configs": configs}
    large = rig.send(key, 1, resources=[resource], validate_only=False)
    assert await answered_meanwhile(rig, large) >= 1
    (answer,) = (await large).responses
    wanted = ErrorCode.invalid_request if is_twice else ErrorCode.invalid_config
    assert ErrorCode(answer.error_code) is wanted
    assert len(answer.error_message) < 100
