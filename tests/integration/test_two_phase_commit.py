"""Two-phase commit (KIP-939) over the wire: a prepared transaction outlives its producer, its
brokers and Redis, and the next producer of its id commits or aborts it."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.test_transactions import ends_in_bucket, stable_offset, view_end
from tests.rigs.broker_rig import Rig, create_topic, until
from tests.rigs.several_brokers import QUICK, Brokers
from tests.rigs.takeover import wipe
from tests.rigs.transactional_client import TransactionalClient, committed
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
ON = {
    "transactions": True,
    "transaction_two_phase_commit": True,
    "transaction_wait_ms_max": 300,
    "transaction_request_ms_max": 3_000,
}
OUTCOMES = pytest.mark.parametrize("commit", [True, False])


@pytest.fixture
async def rig(brokers: Brokers) -> Rig:
    """A broker with two-phase commit, and topic `t` of 4 partitions."""
    rig = await brokers.start(**ON)
    await create_topic(rig, "t", 4)
    return rig


async def prepared(rig: Rig, transactional_id: str = "x") -> TransactionalClient:
    """A client that has prepared its transaction: all its requests are acknowledged. It sends
    nothing more."""
    client = TransactionalClient(rig, transactional_id)
    assert await client.init(two_phase=True) is NONE
    for partition in range(2):
        assert await client.produce(b"prepared", partition=partition) is NONE
    assert await client.offsets(7) is NONE
    return client


async def successor(rig: Rig, transactional_id: str = "x") -> TransactionalClient:
    """The next client of the transactional id; it keeps the transaction."""
    client = TransactionalClient(rig, transactional_id)
    assert await client.init(two_phase=True, keeps=True) is NONE
    return client


async def assert_shown(rig: Rig, *, commit: bool) -> None:
    """Check that consumers see all of the prepared transaction, or nothing."""
    expected = [b"prepared"] if commit else []
    assert [await committed(rig, number) for number in range(2)] == [expected] * 2
    assert await stable_offset(rig) == (7 if commit else -1)


# The next producer -----------------------------------------------------------------------------


@OUTCOMES
async def test_the_next_producer_ends_what_was_prepared(rig: Rig, commit: bool) -> None:
    first = await prepared(rig)
    second = await successor(rig)
    assert second.kept == first.pair
    assert second.pair == (first.pair[0], first.pair[1] + 1)
    assert [await committed(rig, number) for number in range(2)] == [[], []]
    assert await stable_offset(rig) is ErrorCode.unstable_offset_commit
    assert await second.end(commit=commit) is NONE
    await assert_shown(rig, commit=commit)
    assert second.pair == (first.pair[0], first.pair[1] + 2)
    assert await second.produce(b"next", partition=2) is NONE
    assert await second.end() is NONE
    assert await committed(rig, 2) == [b"next"]
    await assert_shown(rig, commit=commit)


@OUTCOMES
async def test_it_may_need_several_attempts(rig: Rig, commit: bool) -> None:
    first = await prepared(rig)
    for _ in range(3):
        last = await successor(rig)
        assert last.kept == first.pair
    assert await last.end(commit=commit) is NONE
    await assert_shown(rig, commit=commit)
    (end,) = ends_in_bucket(rig)
    assert (end.producer_id, end.producer_epoch) == first.pair


@OUTCOMES
async def test_a_prepared_transaction_outlives_redis_twice(
    rig: Rig, valkey: OwnValkey, commit: bool
) -> None:
    first = await prepared(rig)
    await wipe(rig, valkey)
    second = await successor(rig)
    assert second.kept == first.pair
    await wipe(rig, valkey)
    await assert_only_the_owner_ends_it(rig, first)
    assert await second.end(commit=commit) is NONE
    await assert_shown(rig, commit=commit)
    await wipe(rig, valkey)
    ended = second.pair
    second.pair = (ended[0], ended[1] - 1)
    assert await second.end(commit=commit) is NONE, "a repeat"
    assert second.pair == ended
    await assert_shown(rig, commit=commit)


async def assert_only_the_owner_ends_it(rig: Rig, former: TransactionalClient) -> None:
    """Check that all requests of the former producer are fenced."""
    former.rig = rig
    assert await former.produce(b"zombie") is ErrorCode.invalid_producer_epoch
    assert await former.offsets(9) is ErrorCode.invalid_producer_epoch
    for commit in (True, False):
        assert await former.end(commit=commit) is ErrorCode.producer_fenced
    assert await former.init(expected=former.pair) is ErrorCode.producer_fenced
    assert ends_in_bucket(rig) == []


async def until_alone(rig: Rig) -> None:
    """It then coordinates all groups."""
    await until(lambda: rig.health.ready and len(rig.membership.serving) == 1)


@OUTCOMES
async def test_a_prepared_transaction_outlives_its_broker_and_redis(
    brokers: Brokers, valkey: OwnValkey, commit: bool
) -> None:
    one = await brokers.start(**ON, **QUICK)
    await create_topic(one, "t", 4)
    first = await prepared(one)
    two = await brokers.start(**ON, **QUICK)
    await one.stop()
    await wipe(two, valkey)
    await until_alone(two)
    second = await successor(two)
    assert second.kept == first.pair
    await assert_only_the_owner_ends_it(two, first)
    three = await brokers.start(**ON, **QUICK)
    await two.stop()
    second.rig = three
    await until_alone(three)
    assert await second.end(commit=commit) is NONE
    await assert_shown(three, commit=commit)
    assert view_end(three) == 2


async def test_the_former_producer_is_fenced(rig: Rig) -> None:
    first = await prepared(rig)
    second = await successor(rig)
    await assert_only_the_owner_ends_it(rig, first)
    assert await second.end() is NONE
    await assert_shown(rig, commit=True)
    assert await first.produce(b"zombie") is ErrorCode.invalid_producer_epoch
    assert await first.end() is ErrorCode.producer_fenced


async def test_a_kept_transaction_gets_nothing_more(rig: Rig) -> None:
    """Clients stop after this error. After another error, they could abort the prepared
    transaction."""
    await prepared(rig)
    second = await successor(rig)
    assert await second.produce(b"more") is ErrorCode.invalid_txn_state
    assert await second.offsets(9) is ErrorCode.invalid_txn_state
    second.sequences = {}
    assert await second.end() is NONE
    await assert_shown(rig, commit=True)


async def test_without_a_transaction_nothing_is_kept(rig: Rig) -> None:
    first = await prepared(rig)
    assert await first.end() is NONE
    second = await successor(rig)
    assert second.kept == (-1, -1)
    assert second.pair == (first.pair[0], first.pair[1] + 1)
    assert await second.produce(b"next", partition=3) is NONE
    assert await second.end() is NONE
    assert await committed(rig, 3) == [b"next"]


async def test_an_init_that_does_not_keep_aborts(rig: Rig) -> None:
    await prepared(rig)
    await successor(rig)
    third = TransactionalClient(rig)
    assert await third.init() is NONE
    await assert_shown(rig, commit=False)


# Timeouts --------------------------------------------------------------------------------------


async def time_out(rig: Rig, each: str) -> None:
    """An ordinary transaction begins, and is aborted after its timeout."""
    client = TransactionalClient(rig, each)
    assert await client.init(timeout_ms=50) is NONE
    assert await client.produce(partition=3) is NONE
    await until(lambda: each in {end.id for end in ends_in_bucket(rig)})


async def test_no_timeout_aborts_what_is_prepared(brokers: Brokers) -> None:
    rig = await brokers.start(**ON, transaction_abort_check_interval_ms=20)
    await create_topic(rig, "t", 4)
    first = TransactionalClient(rig)
    assert await first.init(timeout_ms=1, two_phase=True) is NONE
    assert await first.produce(b"prepared") is NONE
    await time_out(rig, "usual")
    second = TransactionalClient(rig)
    assert await second.init(timeout_ms=1, two_phase=True, keeps=True) is NONE
    assert second.kept == first.pair
    await time_out(rig, "another")
    assert {end.id for end in ends_in_bucket(rig)} == {"usual", "another"}
    assert await second.end() is NONE
    assert await committed(rig) == [b"prepared"]


async def test_no_timeout_aborts_what_is_prepared_after_redis_is_lost(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    rig = await brokers.start(**ON, transaction_abort_check_interval_ms=20)
    await create_topic(rig, "t", 4)
    first = TransactionalClient(rig)
    assert await first.init(timeout_ms=1, two_phase=True) is NONE
    assert await first.produce(b"prepared") is NONE
    usual = TransactionalClient(rig, "usual")
    assert await usual.init(timeout_ms=50) is NONE
    assert await usual.produce(partition=3) is NONE
    await wipe(rig, valkey)
    await until(lambda: bool(ends_in_bucket(rig)))
    assert {end.id for end in ends_in_bucket(rig)} == {"usual"}
    assert await first.end() is NONE
    assert await committed(rig) == [b"prepared"]


async def test_the_oldest_is_measured(brokers: Brokers) -> None:
    rig = await brokers.start(**ON, transaction_abort_check_interval_ms=20)
    await create_topic(rig, "t", 4)
    counts = rig.node.parts.counts.transactions
    first = await prepared(rig)
    await until(lambda: counts.oldest_two_phase_ms > 0)
    await first.end()
    await until(lambda: counts.oldest_two_phase_ms == 0)


async def test_a_kept_transaction_with_a_timeout_is_aborted_after_it(brokers: Brokers) -> None:
    rig = await brokers.start(**ON, transaction_abort_check_interval_ms=20)
    await create_topic(rig, "t", 4)
    first = TransactionalClient(rig)
    assert await first.init(timeout_ms=300) is NONE
    assert await first.produce(b"prepared") is NONE
    second = TransactionalClient(rig)
    assert await second.init(timeout_ms=300, keeps=True) is NONE
    assert second.kept == first.pair
    await until(lambda: bool(ends_in_bucket(rig)))
    assert await second.end() is ErrorCode.transaction_abortable
    assert await committed(rig) == []


# What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(("two_phase", "keeps"), [(True, False), (False, True), (True, True)])
async def test_without_the_setting_it_is_refused(
    brokers: Brokers, two_phase: bool, keeps: bool
) -> None:
    rig = await brokers.start(**ON | {"transaction_two_phase_commit": False})
    client = TransactionalClient(rig)
    refused = await client.init(two_phase=two_phase, keeps=keeps)
    assert refused is ErrorCode.transactional_id_authorization_failed
    assert client.kept == (-1, -1)
    assert rig.view.transactions.ids == {}


async def test_wrong_requests_are_refused(rig: Rig) -> None:
    first = await prepared(rig)
    client = TransactionalClient(rig)
    refused = await client.init(two_phase=True, keeps=True, expected=first.pair)
    assert refused is ErrorCode.invalid_request
    assert await client.init(two_phase=True, timeout_ms=0) is ErrorCode.invalid_transaction_timeout
    assert await client.init(keeps=True) is ErrorCode.invalid_txn_state
    assert await first.end() is NONE
    await assert_shown(rig, commit=True)


async def test_the_limit_of_timeouts_is_not_for_two_phase_commit(rig: Rig) -> None:
    client = TransactionalClient(rig)
    assert await client.init(timeout_ms=2**31 - 1) is ErrorCode.invalid_transaction_timeout
    assert await client.init(timeout_ms=2**31 - 1, two_phase=True) is NONE


# Administration --------------------------------------------------------------------------------


async def abort(rig: Rig, pair: tuple[int, int]) -> ErrorCode:
    marker = {
        "producer_id": pair[0],
        "producer_epoch": pair[1],
        "transaction_result": False,
        "topics": ({"name": "t", "partition_indexes": (0,)},),
        "coordinator_epoch": 0,
    }
    answer = await rig.call(ApiKey.WRITE_TXN_MARKERS, 1, markers=(marker,))
    return ErrorCode(answer.markers[0].topics[0].partitions[0].error_code)


async def described(rig: Rig) -> Any:
    answer = await rig.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=("x",))
    return answer.transaction_states[0]


async def test_an_administrator_sees_and_aborts_what_is_prepared(rig: Rig) -> None:
    """Tools abort by the pair in the batches, which they find in the partition."""
    first = await prepared(rig)
    second = await successor(rig)
    found = await described(rig)
    assert (found.transaction_state, found.error_code) == ("Ongoing", NONE)
    assert (found.producer_id, found.producer_epoch) == first.pair
    assert found.transaction_timeout.total_seconds() * 1000 == 2**31 - 1
    listed = await rig.call(
        ApiKey.LIST_TRANSACTIONS, 1, state_filters=("Ongoing",), producer_id_filters=()
    )
    (row,) = listed.transaction_states
    assert (row.transactional_id, row.producer_id) == ("x", first.pair[0])
    assert await abort(rig, second.pair) is ErrorCode.invalid_producer_epoch
    assert await abort(rig, first.pair) is NONE
    await assert_shown(rig, commit=False)
    assert await second.end() is ErrorCode.transaction_abortable
    assert await second.end(commit=False) is NONE
    assert await second.produce(b"next") is NONE
    assert await second.end() is NONE
    assert await committed(rig) == [b"next"]
