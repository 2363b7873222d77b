"""Batches of an idempotent producer that were in flight when an earlier one was refused.

After OUT_OF_ORDER_SEQUENCE_NUMBER, librdkafka begins a new producer epoch, and may write records
twice that are in the log already.
"""

from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.metadata.sequencer.scripts import SequencerVerb as Ask
from tests.rigs.broker_rig import Rig, create_topic, outcome, produce, send, until
from tests.rigs.several_brokers import Brokers, stored

NONE = ErrorCode.none
AGAIN = ErrorCode.not_enough_replicas
AWAY = ErrorCode.not_leader_or_follower
GAP = ErrorCode.out_of_order_sequence_number
UNKNOWN = ErrorCode.unknown_producer_id
TIMED_OUT = ErrorCode.request_timed_out


async def record(rig: Rig, sequence: int, **values: Any) -> ErrorCode:
    """The outcome of one record of the same idempotent producer."""
    return (await outcome(sent(rig, sequence, **values)))[0]


def sent(rig: Rig, sequence: int, **values: Any) -> Any:
    value = str(sequence).encode()
    return send(rig, value, producer_id=7, producer_epoch=0, base_sequence=sequence, **values)


async def test_a_broker_that_takes_its_roles_back_excuses_what_is_behind_a_refused_batch(
    rig: Rig,
) -> None:
    assert await record(rig, 0) is NONE
    rig.membership.has_handed_over = True
    assert await record(rig, 1) is AWAY
    assert await record(rig, 2) is AWAY
    rig.membership.has_handed_over = False
    assert await record(rig, 3) is AGAIN
    assert await record(rig, 4) is AGAIN
    for sequence in (1, 2, 3, 4):
        assert await record(rig, sequence) is NONE
    assert [value for _, value in await stored(rig)] == [b"0", b"1", b"2", b"3", b"4"]
    assert await record(rig, 6) is GAP


async def test_a_batch_behind_one_that_has_timed_out_is_excused(rig: Rig) -> None:
    assert await record(rig, 0) is NONE
    rig.sequencer.hold(Ask.RESERVE)
    before = send(rig, b"of another producer")
    await until(lambda: rig.sequencer.held == 1)
    first = sent(rig, 1, timeout=1)
    behind = sent(rig, 2)
    assert (await outcome(first))[0] is TIMED_OUT
    rig.sequencer.let_go()
    assert (await outcome(before))[0] is NONE
    assert (await outcome(behind))[0] is AGAIN
    assert await record(rig, 1) is NONE
    assert await record(rig, 2) is NONE


async def test_a_new_producer_behind_a_refused_batch_is_not_unknown(brokers: Brokers) -> None:
    """The topic was created while its batches were in flight."""
    rig = await brokers.start()
    assert await record(rig, 0) is ErrorCode.unknown_topic_or_partition
    await create_topic(rig, "t")
    assert await record(rig, 1) is AGAIN
    assert await record(rig, 0) is NONE
    assert await record(rig, 1) is NONE


async def test_a_producer_whose_refused_batch_does_not_come_again_is_told(brokers: Brokers) -> None:
    rig = await brokers.start()
    assert await record(rig, 0) is ErrorCode.unknown_topic_or_partition
    await create_topic(rig, "t")
    outcomes = [await record(rig, 1) for _ in range(5)]
    assert outcomes == [AGAIN] * 4 + [UNKNOWN]


async def test_a_gap_that_is_the_producers_own_is_out_of_order(rig: Rig) -> None:
    assert await produce(rig) == (NONE, 0)
    assert await record(rig, 0) is NONE
    assert await record(rig, 2) is GAP
