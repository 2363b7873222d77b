"""A broker that does not know yet that its Redis is not the log's any more: a later epoch is
claimed, and may be active elsewhere."""

from functools import partial
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.broker_rig import Rig, create_topic, produce
from tests.rigs.several_brokers import Brokers, fetch


async def committed(rig: Rig) -> tuple[ErrorCode, int]:
    row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    await rig.call(
        ApiKey.OFFSET_COMMIT,
        8,
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": "t", "partitions": [row]}],
    )
    return await found_offset(rig, require_stable=False)


async def found_offset(rig: Rig, *, require_stable: bool) -> tuple[ErrorCode, int]:
    wanted = {"group_id": "g", "topics": [{"name": "t", "partition_indexes": (0,)}]}
    answer: Any = await rig.call(
        ApiKey.OFFSET_FETCH, 8, groups=[wanted], require_stable=require_stable
    )
    group = answer.groups[0]
    if ErrorCode(group.error_code) is not ErrorCode.none:
        return ErrorCode(group.error_code), -1
    return ErrorCode.none, int(group.topics[0].partitions[0].committed_offset)


async def test_no_offset_is_out_of_range_that_another_epoch_may_have_shown(
    brokers: Brokers,
) -> None:
    rig, _ = await brokers.pair()
    assert await produce(rig) == (ErrorCode.none, 0)
    assert (await fetch(rig, 5)).error_code is ErrorCode.offset_out_of_range
    brokers.claim(2)
    assert (await fetch(rig, 5)).error_code is ErrorCode.offset_not_available
    assert (await fetch(rig, 0)).error_code is ErrorCode.none


async def test_committed_offsets_are_not_told_where_another_epoch_may_have_later_ones(
    brokers: Brokers,
) -> None:
    rig = await brokers.start()
    await create_topic(rig, "t")
    assert await committed(rig) == (ErrorCode.none, 1)
    brokers.claim(2)
    for require_stable in (False, True):
        error, _ = await found_offset(rig, require_stable=require_stable)
        assert error is ErrorCode.coordinator_load_in_progress


async def test_no_producer_is_told_that_it_is_wrong_by_an_epoch_that_may_be_over(
    brokers: Brokers,
) -> None:
    rig, _ = await brokers.pair()
    follows = partial(produce, rig, producer_id=7, producer_epoch=0)
    assert await follows(base_sequence=0) == (ErrorCode.none, 0)
    assert await follows(base_sequence=2) == (ErrorCode.out_of_order_sequence_number, -1)
    foreign = await produce(rig, producer_id=2 << 40, producer_epoch=0, base_sequence=0)
    assert foreign == (ErrorCode.invalid_producer_id_mapping, -1)
    brokers.claim(2)
    unknown = partial(produce, rig, producer_id=8, producer_epoch=0)
    unassigned = partial(produce, rig, producer_id=2 << 40, producer_epoch=0)
    for wrong in (follows, unknown, unassigned):
        assert await wrong(base_sequence=2) == (ErrorCode.not_enough_replicas, -1)
    assert await follows(base_sequence=0) == (ErrorCode.none, 0)
