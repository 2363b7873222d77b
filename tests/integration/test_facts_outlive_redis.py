"""What a client was told is so after Redis has lost everything: asked for in every way a client can
ask, before and after; and what producers, groups and administrators do next fits."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.broker_rig import Rig, create_topic, outcome, produce, send, until
from tests.rigs.patience import Deadline
from tests.rigs.several_brokers import Brokers
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
BASE_MS = 1_700_000_000_000
Forget = Callable[[OwnValkey, Brokers, Rig], Awaitable[Rig]]


async def create(rig: Rig, name: str, partitions: int, **configs: str) -> None:
    pairs = [{"name": key.replace("_", "."), "value": text} for key, text in configs.items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    topic |= {"configs": pairs, "assignments": ()}
    answer = await rig.call(
        ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout=20_000, validate_only=False
    )
    assert answer.topics[0].error_code is NONE


async def delete(rig: Rig, name: str) -> None:
    answer = await rig.call(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout=20_000)
    assert answer.responses[0].error_code is NONE


async def commit(rig: Rig, group: str, rows: list[tuple[int, int, int, str]]) -> None:
    """Partition of `t`, offset, leader epoch, metadata. A broker whose heartbeat is late does not
    coordinate until the next one."""
    names = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")
    partitions = [dict(zip(names, row, strict=True)) for row in rows]
    deadline = Deadline("the broker coordinates no group")
    errors = {ErrorCode.not_coordinator}
    while errors == {ErrorCode.not_coordinator}:
        deadline.check()
        answer = await rig.call(
            ApiKey.OFFSET_COMMIT,
            8,
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            topics=[{"name": "t", "partitions": partitions}],
        )
        errors = {ErrorCode(row.error_code) for row in answer.topics[0].partitions}
        await asyncio.sleep(0)
    assert errors == {NONE}


async def told(rig: Rig) -> dict[object, Any]:
    """Everything that a client can be told of what is kept."""
    metadata = await rig.call(
        ApiKey.METADATA,
        12,
        topics=None,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    said: dict[object, Any] = {
        "topics": {
            topic.name: (topic.topic_id, len(topic.partitions)) for topic in metadata.topics
        },
    }
    for name, (_, count) in said["topics"].items():
        resource = {"resource_type": 2, "resource_name": name, "configuration_keys": None}
        configs = await rig.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource])
        said[name, "configs"] = sorted(
            (row.name, row.value, row.config_source) for row in configs.results[0].configs
        )
        for at in (EARLIEST, LATEST, MAX_TIMESTAMP, BASE_MS, BASE_MS + 1):
            rows = [{"partition_index": number, "timestamp": at} for number in range(count)]
            offsets = await rig.call(
                ApiKey.LIST_OFFSETS,
                7,
                replica_id=-1,
                isolation_level=0,
                topics=[{"name": name, "partitions": rows}],
            )
            said[name, at] = [
                (row.partition_index, row.offset, row.timestamp, row.error_code)
                for row in offsets.topics[0].partitions
            ]
    listed = await rig.call(ApiKey.LIST_GROUPS, 4, states_filter=[])
    said["groups"] = sorted(row.group_id for row in listed.groups)
    wanted = [{"group_id": name, "topics": None} for name in (*said["groups"], "h", "never")]
    fetched = await rig.call(ApiKey.OFFSET_FETCH, 8, groups=wanted, require_stable=True)
    said["offsets"] = [
        (
            group.group_id,
            topic.name,
            row.partition_index,
            row.committed_offset,
            row.committed_leader_epoch,
            row.metadata,
        )
        for group in fetched.groups
        for topic in group.topics
        for row in topic.partitions
    ]
    return said


async def wiped(valkey: OwnValkey, brokers: Brokers, rig: Rig) -> Rig:
    valkey.wipe()
    await until(lambda: rig.epoch > 1 and rig.health.ready)
    return rig


async def restarted_empty(valkey: OwnValkey, brokers: Brokers, rig: Rig) -> Rig:
    valkey.kill()
    valkey.start()
    await until(lambda: rig.epoch > 1 and rig.health.ready)
    return rig


async def cold(valkey: OwnValkey, brokers: Brokers, rig: Rig) -> Rig:
    """Everything ends, and another broker begins."""
    await rig.stop()
    valkey.wipe()
    return await brokers.start()


async def cold_from_a_checkpoint(valkey: OwnValkey, brokers: Brokers, rig: Rig) -> Rig:
    assert await rig.checkpointer.write() is not None
    return await cold(valkey, brokers, rig)


EVERY_WAY = pytest.mark.parametrize(
    "forget", [wiped, restarted_empty, cold, cold_from_a_checkpoint], ids=lambda way: way.__name__
)


@EVERY_WAY
async def test_what_was_told_is_told_again(
    valkey: OwnValkey, brokers: Brokers, forget: Forget
) -> None:
    rig = await brokers.start()
    await create(rig, "t", 2, retention_ms="86400000", max_message_bytes="500000")
    await create(rig, "stamped", 1, message_timestamp_type="LogAppendTime")
    await create(rig, "gone", 3)
    await create(rig, "again", 1)
    row = {"name": "t", "count": 3, "assignments": None}
    grown = await rig.call(
        ApiKey.CREATE_PARTITIONS, 2, topics=[row], timeout=20_000, validate_only=False
    )
    assert grown.results[0].error_code is NONE
    for partition in range(3):
        assert (await produce(rig, b"x", partition=partition))[0] is NONE
    await commit(rig, "g", [(0, 1, 0, "where I was"), (1, 0, -1, ""), (2, 1, 5, "é")])
    await commit(rig, "h", [(0, 1, -1, "")])
    await commit(rig, "k", [(0, 1, -1, ""), (1, 1, -1, "")])
    await commit(rig, "g", [(0, 2, 1, "and am")])
    deleted = await rig.call(ApiKey.DELETE_GROUPS, 2, groups_names=["h"])
    assert deleted.results[0].error_code is NONE
    some = [{"name": "t", "partitions": [{"partition_index": 1}]}]
    forgotten = await rig.call(ApiKey.OFFSET_DELETE, 0, group_id="k", topics=some)
    assert forgotten.error_code is NONE
    await delete(rig, "gone")
    await delete(rig, "again")
    await create(rig, "again", 2)
    assert (await produce(rig, b"y"))[0] is NONE
    before = await told(rig)
    assert set(before["topics"]) == {"t", "stamped", "again"}
    assert before["groups"] == ["g", "k"]
    assert len(before["offsets"]) == 4
    rig = await forget(valkey, brokers, rig)
    assert await told(rig) == before


@EVERY_WAY
async def test_idempotent_producers_go_on(
    valkey: OwnValkey, brokers: Brokers, forget: Forget
) -> None:
    rig = await brokers.start()
    await create_topic(rig, "t", 4)

    async def new_id(rig: Rig) -> int:
        answer = await rig.call(
            ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=0
        )
        assert answer.error_code is NONE
        return int(answer.producer_id)

    one, unused = await new_id(rig), await new_id(rig)
    for sequence in range(7):
        found = await produce(
            rig, b"%d" % sequence, producer_id=one, producer_epoch=1, base_sequence=sequence
        )
        assert found == (NONE, sequence)
    await create(rig, "u", 1)  # the producer's batches are below the next low ticket
    await create(rig, "v", 1)
    rig = await forget(valkey, brokers, rig)

    async def again(sequence: int, *, epoch: int = 1) -> tuple[ErrorCode, int]:
        return await produce(
            rig, b"%d" % sequence, producer_id=one, producer_epoch=epoch, base_sequence=sequence
        )

    for sequence in range(2, 7):
        assert await again(sequence) == (NONE, sequence), "the last five are known"
    assert (await again(1))[0] is ErrorCode.duplicate_sequence_number, (
        "in the log, offset forgotten"
    )
    assert (await again(8))[0] is ErrorCode.out_of_order_sequence_number
    assert (await again(7, epoch=0))[0] is ErrorCode.invalid_producer_epoch
    assert await again(7) == (NONE, 7)
    assert await again(0, epoch=2) == (NONE, 8), "it began anew"
    first = await produce(rig, producer_id=unused, producer_epoch=0, base_sequence=0)
    assert first == (NONE, 9)
    assert len({one, unused, await new_id(rig), await new_id(rig)}) == 4


async def test_a_batch_that_was_on_its_way_comes_once(brokers: Brokers, valkey: OwnValkey) -> None:
    """Its producer sends it again, and what follows it, without knowing."""
    rig = await brokers.start()
    await create_topic(rig, "t", 4)
    as_one = {"producer_id": 9, "producer_epoch": 0}
    sent = [send(rig, b"%d" % at, **as_one, base_sequence=at) for at in range(3)]
    valkey.wipe()
    assert [await outcome(one) for one in sent] == [(NONE, at) for at in range(3)]
    for at in range(4):
        assert await produce(rig, b"%d" % at, **as_one, base_sequence=at) == (NONE, at)
