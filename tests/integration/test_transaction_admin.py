"""The administration of transactions over the wire."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.handlers import producers
from tests.rigs.broker_rig import Rig, create_topic, until
from tests.rigs.several_brokers import Brokers
from tests.rigs.transactional_client import TransactionalClient, committed

NONE = ErrorCode.none
ON = {"transactions": True, "transaction_wait_ms_max": 300}
T_0 = ({"name": "t", "partition_indexes": (0,)},)


@pytest.fixture
async def rig(brokers: Brokers) -> Rig:
    """A rig with topic `t` of 4 partitions."""
    rig = await brokers.start(**ON)
    await create_topic(rig, "t", 4)
    return rig


async def opened(rig: Rig, transactional_id: str = "x", *, version: int = 2) -> TransactionalClient:
    client = TransactionalClient(rig, transactional_id, version=version)
    assert await client.init() is NONE
    assert await client.produce(b"of " + transactional_id.encode()) is NONE
    return client


async def listed(rig: Rig, version: int = 1, **filters: Any) -> dict[str, str]:
    values: dict[str, Any] = {"state_filters": (), "producer_id_filters": ()}
    answer = await rig.call(ApiKey.LIST_TRANSACTIONS, version, **values | filters)
    assert answer.error_code is NONE
    return {each.transactional_id: each.transaction_state for each in answer.transaction_states}


async def abort(
    rig: Rig, pair: tuple[int, int], *, topics: Any = T_0, commit: bool = False
) -> list[ErrorCode]:
    marker = {
        "producer_id": pair[0],
        "producer_epoch": pair[1],
        "transaction_result": commit,
        "topics": topics,
        "coordinator_epoch": 0,
    }
    answer = await rig.call(ApiKey.WRITE_TXN_MARKERS, 1, markers=(marker,))
    (row,) = answer.markers
    return [ErrorCode(each.error_code) for topic in row.topics for each in topic.partitions]


async def test_ids_are_listed_by_state_producer_and_duration(rig: Rig) -> None:
    one, two = await opened(rig, "one"), await opened(rig, "two")
    await two.end()
    both = {"one": "Ongoing", "two": "CompleteCommit"}
    assert await listed(rig) == await listed(rig, 0) == both
    assert await listed(rig, state_filters=("Ongoing", "Dead")) == {"one": "Ongoing"}
    assert await listed(rig, producer_id_filters=(two.pair[0],)) == {"two": "CompleteCommit"}
    assert await listed(rig, duration_filter=3_600_000) == {}
    assert await listed(rig, state_filters=("Nonsense",)) == {}
    answer = await rig.call(
        ApiKey.LIST_TRANSACTIONS, 1, state_filters=("Nonsense", "Empty"), producer_id_filters=()
    )
    assert answer.unknown_state_filters == ("Nonsense",)
    assert one.pair != two.pair


async def test_each_id_is_listed_by_one_broker(brokers: Brokers, rig: Rig) -> None:
    two = await brokers.start(**ON)
    await until(lambda: len(rig.node.parts.cluster.membership.serving) == 2)
    names = {f"id-{number}" for number in range(20)}
    for each in names:
        assert await TransactionalClient(rig, each).init() is NONE
    first, second = await listed(rig), await listed(two)
    assert first.keys() | second.keys() == names
    assert not first.keys() & second.keys()
    assert first
    assert second


async def test_a_description(rig: Rig) -> None:
    client = await opened(rig)
    await client.produce(partition=2)
    answer = await rig.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=("x", "none", "x"))
    found, missing = answer.transaction_states
    assert missing.error_code is ErrorCode.transactional_id_not_found
    assert (found.transaction_state, found.error_code) == ("Ongoing", NONE)
    assert (found.producer_id, found.producer_epoch) == client.pair
    assert found.transaction_timeout.total_seconds() == 60
    assert [(each.topic, each.partitions) for each in found.topics] == [("t", (0, 2))]


async def test_producers_with_and_without_transactions(rig: Rig) -> None:
    client = await opened(rig)
    await client.end()
    before = (await described(rig)).active_producers
    assert [(each.producer_id, each.current_txn_start_offset) for each in before] == [
        (client.pair[0], -1)
    ]
    await client.produce()
    (row,) = (await described(rig)).active_producers
    assert (row.producer_id, row.producer_epoch) == client.pair
    assert (row.current_txn_start_offset, row.last_sequence) == (2, 0)
    assert row.last_timestamp > 0
    assert (await described(rig, 9)).error_code is ErrorCode.unknown_topic_or_partition
    wrong = await described(rig, topic="a name")
    assert wrong.error_code is ErrorCode.invalid_topic_exception


async def described(rig: Rig, partition: int = 0, *, topic: str = "t") -> Any:
    topics = ({"name": topic, "partition_indexes": (partition,)},)
    answer = await rig.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=topics)
    return answer.topics[0].partitions[0]


async def test_producers_are_limited(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Producers that hold back the last stable offset come first."""
    for number in range(3):
        await (await opened(rig, f"done-{number}")).end()
    clients = [await opened(rig, f"open-{number}") for number in range(2)]
    monkeypatch.setattr(producers, "PRODUCERS_MAX", 3)
    found = (await described(rig)).active_producers
    assert len(found) == 3
    assert [each.producer_id for each in found[:2]] == [each.pair[0] for each in clients]


@pytest.mark.parametrize("version", [1, 2])
async def test_an_abort_ends_the_whole_transaction(rig: Rig, version: int) -> None:
    client = await opened(rig, version=version)
    assert await client.produce(partition=1) is NONE
    pair = client.pair
    assert await abort(rig, pair) == [NONE]
    assert await listed(rig) == {"x": "CompleteAbort"}
    assert await committed(rig) == await committed(rig, 1) == []
    assert await abort(rig, pair) == [NONE], "a repeat"
    error = await client.end()
    assert error is (
        ErrorCode.transaction_abortable if version == 2 else ErrorCode.unknown_producer_id
    )
    assert await client.end(commit=False) is NONE
    if version == 1:
        assert await client.init() is NONE
    assert await client.produce(b"again") is NONE
    assert await client.end() is NONE
    assert await committed(rig) == [b"again"]


async def test_what_is_no_abort_is_refused(rig: Rig) -> None:
    client = await opened(rig)
    producer_id, epoch = client.pair
    assert await abort(rig, client.pair, commit=True) == [ErrorCode.invalid_request]
    assert await abort(rig, (producer_id, epoch + 1)) == [ErrorCode.invalid_producer_epoch]
    assert await abort(rig, (5, 0)) == [ErrorCode.invalid_producer_id_mapping]
    unknown = ({"name": "t", "partition_indexes": (9,)},)
    missing = ErrorCode.unknown_topic_or_partition
    assert await abort(rig, client.pair, topics=unknown) == [missing]
    assert await listed(rig) == {"x": "Ongoing"}
    assert await client.end() is NONE
    assert await committed(rig) == [b"of x"]
    assert await abort(rig, client.pair) == [ErrorCode.invalid_txn_state]
    assert await abort(rig, (producer_id, epoch)) == [ErrorCode.invalid_txn_state]
