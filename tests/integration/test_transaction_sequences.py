"""Sequences of version 1 transactions: they continue from one transaction to the next."""

import pytest
from kio.schema.errors import ErrorCode

from tests.rigs.broker_rig import Rig, create_topic
from tests.rigs.several_brokers import Brokers
from tests.rigs.takeover import wipe
from tests.rigs.transactional_client import TransactionalClient, committed
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none


@pytest.fixture
async def rig(brokers: Brokers) -> Rig:
    """A broker with transactions, and topic `t`."""
    rig = await brokers.start(transactions=True)
    await create_topic(rig, "t", 1)
    return rig


@pytest.fixture
async def client(rig: Rig) -> TransactionalClient:
    client = TransactionalClient(rig, version=1)
    assert await client.init() is NONE
    return client


async def test_sequences_go_on_after_a_marker(
    rig: Rig, client: TransactionalClient, valkey: OwnValkey
) -> None:
    """A marker does not count as a batch of its producer, even after the fold has filled Redis."""
    for turn in range(3):
        assert await client.produce(b"%d" % turn) is NONE
        assert await client.end() is NONE
        await wipe(rig, valkey)
    assert await committed(rig) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("is_wiped", [False, True])
async def test_a_reused_sequence_is_not_acknowledged(
    rig: Rig, client: TransactionalClient, valkey: OwnValkey, is_wiped: bool
) -> None:
    """The record differs from the one that an earlier transaction wrote with this sequence."""
    assert await client.produce(b"dropped") is NONE
    assert await client.end(commit=False) is NONE
    if is_wiped:
        await wipe(rig, valkey)
    client.sequences.clear()
    assert await client.produce(b"another") is ErrorCode.unknown_producer_id
    assert await client.end(commit=False) is NONE
    assert await client.init(expected=client.pair) is NONE
    assert await client.produce(b"another") is NONE
    client.sequences.clear()
    if is_wiped:
        await wipe(rig, valkey)
    assert await client.produce(b"another") is NONE, "a retry is a duplicate"
    assert await client.end() is NONE
    assert await committed(rig) == [b"another"]
