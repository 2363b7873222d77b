"""Transactions of hostile and broken clients: their work is bounded, and others are served."""

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.test_transactions import ON, started
from tests.rigs.broker_rig import Rig, create_topic
from tests.rigs.several_brokers import Brokers
from tests.rigs.transactional_client import TransactionalClient

NONE = ErrorCode.none


@pytest.fixture
async def rig(brokers: Brokers) -> Rig:
    """A rig with topic `t` of 4 partitions."""
    rig = await brokers.start(**ON)
    await create_topic(rig, "t", 4)
    return rig


async def test_pending_offsets_count_against_the_limit(brokers: Brokers) -> None:
    """Pending offsets replace no committed offset until their transaction ends."""
    rig = await brokers.start(**ON, offsets_max=3)
    await create_topic(rig, "t", 4)
    clients = [TransactionalClient(rig, f"x{number}") for number in range(4)]
    assert await clients[0].init() is NONE
    assert await clients[0].offsets(1) is NONE
    assert await clients[0].end() is NONE
    codes = []
    for client in clients:
        await client.init()
        codes.append(await client.offsets(2))
    assert codes == [NONE, NONE, ErrorCode.policy_violation, ErrorCode.policy_violation]
    assert await clients[0].end() is NONE
    assert await clients[2].offsets(2) is NONE


# Large requests --------------------------------------------------------------------------------


async def test_very_many_partitions_are_refused_in_slices(rig: Rig) -> None:
    client = await started(rig, 1)
    before = rig.node.parts.turns.slices
    assert await client.add(*range(20_000)) is ErrorCode.policy_violation
    assert rig.node.parts.turns.slices - before >= 19


async def test_very_many_names_are_looked_up_in_slices(rig: Rig) -> None:
    client = await started(rig, 1)
    before = rig.node.parts.turns.slices
    answer = await rig.call(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=client.pair[0],
        v3_and_below_producer_epoch=client.pair[1],
        v3_and_below_topics=[{"name": "t", "partitions": []}] * 20_000,
    )
    assert len(answer.results_by_topic_v3_and_below) == 20_000
    assert rig.node.parts.turns.slices - before >= 39


async def test_a_request_of_very_many_transactions_asks_redis_for_few(brokers: Brokers) -> None:
    rig = await brokers.start(**ON, transaction_partitions_max=10)
    await create_topic(rig, "t", 4)
    client = await started(rig, 2)
    each = {"transactional_id": "x", "producer_id": client.pair[0], "producer_epoch": 0}
    each |= {"verify_only": False, "topics": [{"name": "t", "partitions": [0, 1]}]}
    answer = await rig.call(ApiKey.ADD_PARTITIONS_TO_TXN, 5, transactions=[each] * 1_000)
    codes = [
        row.topic_results[0].results_by_partition[0].partition_error_code
        for row in answer.results_by_transaction
    ]
    assert codes == [NONE] * 5 + [ErrorCode.transaction_abortable] * 995
