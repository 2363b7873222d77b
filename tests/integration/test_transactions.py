"""Transactions over the wire, on brokers that lose Redis, PUTs and each other: both generations of
clients."""

import asyncio
from typing import cast

import ormsgpack
import pytest
from kio.schema.errors import ErrorCode
from redis import Redis

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import MalformedRequestError
from bucketlog.metadata.facts import TransactionEnded, decode_fact
from bucketlog.metadata.sequencer.scripts import SequencerVerb
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.faulty import BucketVerb, Fault
from bucketlog.tiered_storage.segment import check_segment, is_seal
from tests.rigs.broker_rig import HELD, Rig, create_topic, until
from tests.rigs.several_brokers import Brokers
from tests.rigs.takeover import wipe
from tests.rigs.transactional_client import TransactionalClient, committed
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
VERSIONS = pytest.mark.parametrize("version", [1, 2])
ON = {"transactions": True, "transaction_wait_ms_max": 300, "transaction_request_ms_max": 3_000}


@pytest.fixture
async def rig(brokers: Brokers) -> Rig:
    """With topic `t` of 4 partitions."""
    rig = await brokers.start(**ON)
    await create_topic(rig, "t", 4)
    return rig


async def started(rig: Rig, version: int) -> TransactionalClient:
    client = TransactionalClient(rig, version=version)
    assert await client.init() is NONE
    return client


def ends_in_bucket(rig: Rig) -> list[TransactionEnded]:
    """The facts of all ends in the bucket's segments."""
    found = []
    for info in rig.memory.list(keys.LOG):
        if not is_seal(info.size_bytes):
            index = check_segment(info.key, rig.memory.get(info.key).data)
            facts = map(decode_fact, index.facts)
            found += [fact for fact in facts if isinstance(fact, TransactionEnded)]
    return found


# One after another -----------------------------------------------------------------------------


@VERSIONS
async def test_what_is_committed_is_shown(rig: Rig, version: int) -> None:
    client = await started(rig, version)
    for turn in range(4):
        for partition in range(2):
            assert await client.produce(b"%d" % turn, partition=partition) is NONE
        shown = [b"0", b"2"][: (turn + 1) // 2]
        assert await committed(rig) == shown
        assert await client.end(commit=not turn % 2) is NONE
    assert await committed(rig) == await committed(rig, 1) == [b"0", b"2"]


async def test_an_end_of_version_2_gives_the_next_pair(rig: Rig) -> None:
    client = await started(rig, 2)
    first = client.pair
    await client.produce()
    assert await client.end() is NONE
    assert client.pair == (first[0], first[1] + 1)
    after, client.pair = client.pair, first
    assert await client.end() is NONE
    assert client.pair == after
    client.pair = first
    assert await client.end(commit=False) is ErrorCode.invalid_txn_state
    client.sequences = {0: 1}
    assert (await client.send()).responses[0].partition_responses[0].error_code is (
        ErrorCode.invalid_producer_epoch
    )


@VERSIONS
async def test_offsets_are_committed_with_the_transaction(rig: Rig, version: int) -> None:
    client = await started(rig, version)
    for turn in range(4):
        assert await client.offsets(turn + 10) is NONE
        assert await stable_offset(rig) is ErrorCode.unstable_offset_commit
        assert await client.end(commit=not turn % 2) is NONE
        assert await stable_offset(rig) == turn - turn % 2 + 10


async def stable_offset(rig: Rig) -> int | ErrorCode:
    answer = await rig.call(
        ApiKey.OFFSET_FETCH,
        7,
        group_id="g",
        topics=[{"name": "t", "partition_indexes": [0]}],
        require_stable=True,
    )
    row = answer.topics[0].partitions[0]
    return row.committed_offset if row.error_code is NONE else ErrorCode(row.error_code)


async def test_version_1_commits_offsets_of_added_groups_alone(rig: Rig) -> None:
    client = await started(rig, 1)
    assert await client.add(0) is NONE
    assert await client.offsets_alone(1) is ErrorCode.invalid_txn_state
    assert await client.offsets(1) is NONE
    assert await client.offsets_alone(2) is NONE
    assert await client.offsets_alone(1, group="h") is ErrorCode.invalid_txn_state


async def test_partitions_are_added_all_or_none(rig: Rig) -> None:
    client = await started(rig, 1)
    values = {"transactional_id": "x", "producer_id": client.pair[0], "producer_epoch": 0}
    answer = await rig.call(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        **{f"v3_and_below_{name}": value for name, value in values.items()},
        v3_and_below_topics=[{"name": "t", "partitions": [0, 9]}],
    )
    (topic,) = answer.results_by_topic_v3_and_below
    codes = [row.partition_error_code for row in topic.results_by_partition]
    assert codes == [ErrorCode.operation_not_attempted, ErrorCode.unknown_topic_or_partition]
    assert await client.end() is ErrorCode.invalid_txn_state


async def test_wrong_requests_are_refused(rig: Rig) -> None:
    client = TransactionalClient(rig, "")
    assert await client.init() is ErrorCode.invalid_request
    client = TransactionalClient(rig)
    assert await client.init(timeout_ms=10**9) is ErrorCode.invalid_transaction_timeout
    assert await client.init(timeout_ms=0) is ErrorCode.invalid_transaction_timeout
    assert await client.init(expected=(5, -1)) is ErrorCode.invalid_request
    client.pair = (5, 0)
    assert await client.end() is ErrorCode.invalid_producer_id_mapping
    assert await client.produce() is ErrorCode.invalid_producer_id_mapping
    assert await client.offsets(1) is ErrorCode.invalid_producer_id_mapping
    client.pair = (5, -2)
    assert await client.offsets(1) is ErrorCode.invalid_producer_epoch
    client.id = "x" * 2_000
    assert await client.produce() is ErrorCode.invalid_request
    assert await client.end() is ErrorCode.invalid_request


async def test_without_the_setting_nothing_is_served(brokers: Brokers) -> None:
    rig = await brokers.start()
    await create_topic(rig, "t", 1)
    client = TransactionalClient(rig)
    assert await client.init() is ErrorCode.transactional_id_authorization_failed
    client.pair = (5, 0)
    assert await client.produce() is ErrorCode.transactional_id_authorization_failed
    with pytest.raises(MalformedRequestError, match="unknown api key"):
        client.send_end()
    versions = await rig.call(
        ApiKey.API_VERSIONS, 4, client_software_name="a", client_software_version="1"
    )
    assert "transaction.version" not in {each.name for each in versions.supported_features}


@pytest.mark.parametrize(("version", "lowest"), [(3, 1), (4, 0)])
async def test_the_feature_is_told(rig: Rig, version: int, lowest: int) -> None:
    answer = await rig.call(
        ApiKey.API_VERSIONS, version, client_software_name="a", client_software_version="1"
    )
    (supported,), (finalized,) = (
        [each for each in features if each.name == "transaction.version"]
        for features in (answer.supported_features, answer.finalized_features)
    )
    assert (supported.min_version, supported.max_version) == (lowest, 2)
    assert (finalized.min_version_level, finalized.max_version_level) == (2, 2)


# What fails ------------------------------------------------------------------------------------


@VERSIONS
async def test_a_transaction_outlives_redis(rig: Rig, valkey: OwnValkey, version: int) -> None:
    client = await started(rig, version)
    await client.produce(b"before")
    await client.offsets(7)
    await wipe(rig, valkey)
    assert await client.produce(b"after", partition=1) is NONE
    assert await client.end() is NONE
    assert await committed(rig) == [b"before"]
    assert await committed(rig, 1) == [b"after"]
    assert await stable_offset(rig) == 7


async def test_redis_gets_the_groups_of_open_transactions_back(rig: Rig, valkey: OwnValkey) -> None:
    """So that the end enters their keys, and commits of the group stay in order."""
    client = await started(rig, 2)
    await client.produce()
    await client.offsets(7)
    await wipe(rig, valkey)
    with Redis(unix_socket_path=str(valkey.path)) as redis:
        (key,) = cast(list[bytes], redis.keys("*:txns"))
        record = ormsgpack.unpackb(cast(bytes, redis.hget(key.decode(), "i:x")))
        parts = cast(bytes, redis.hget(key.decode().replace(":txns", ":txn_parts"), "i:x"))
    assert (record["ongoing"], record["groups"], record["part_count"]) == (True, ["g"], 1)
    assert parts.startswith(b"t/")
    assert name_bytes(valkey) == record["name_bytes"] == len(parts) + len("g")
    assert await client.end() is NONE
    assert name_bytes(valkey) == 0


def name_bytes(valkey: OwnValkey) -> int:
    """Of all transactions together."""
    with Redis(unix_socket_path=str(valkey.path)) as redis:
        (key,) = cast(list[bytes], redis.keys("*:txn_parts"))
        return int(cast(bytes, redis.hget(key.decode(), "total")))


@VERSIONS
async def test_an_end_that_was_written_is_committed_though_redis_is_lost(
    rig: Rig, valkey: OwnValkey, version: int
) -> None:
    """The PUT is the commit: its publication is not needed."""
    client = await started(rig, version)
    await client.produce(b"v")
    rig.sequencer.hold(SequencerVerb.PUBLISH)
    before = rig.segment_keys()
    sent = client.send_end()
    await until(lambda: len(rig.segment_keys()) > len(before))
    valkey.wipe()
    rig.sequencer.let_go()
    assert (await sent).error_code is NONE
    assert await committed(rig) == [b"v"]
    assert len(ends_in_bucket(rig)) == 1


async def test_an_end_that_was_not_written_comes_again(rig: Rig, valkey: OwnValkey) -> None:
    client = await started(rig, 2)
    await client.produce(b"v")
    rig.plan = hold_segments
    sent = client.send_end()
    await until(lambda: rig.held > 0)
    rig.plan = lambda verb, key: None
    await wipe(rig, valkey)
    rig.let_go()
    assert (await sent).error_code is NONE
    assert await committed(rig) == [b"v"]
    assert len(ends_in_bucket(rig)) == 1


def hold_segments(verb: BucketVerb, key: str) -> Fault | None:
    return HELD if verb is BucketVerb.CREATE and key.startswith("log/") else None


async def test_an_end_of_version_1_is_of_one_epoch(rig: Rig, valkey: OwnValkey) -> None:
    client = await started(rig, 1)
    await client.produce(b"v")
    rig.plan = hold_segments
    sent = client.send_end()
    await until(lambda: rig.held > 0)
    rig.plan = lambda verb, key: None
    await wipe(rig, valkey)
    rig.let_go()
    assert (await sent).error_code is ErrorCode.coordinator_not_available
    assert await committed(rig) == []
    assert await client.end() is NONE
    assert await committed(rig) == [b"v"]


async def test_a_version_1_client_is_forgiven_after_redis_is_lost(
    rig: Rig, valkey: OwnValkey
) -> None:
    """What it has added was known to Redis alone."""
    client = await started(rig, 1)
    assert await client.add(0) is NONE
    await wipe(rig, valkey)
    client.sequences = {}
    row = (await client.send(b"v")).responses[0].partition_responses[0]
    assert row.error_code is NONE
    assert await client.end() is NONE
    assert await committed(rig) == [b"v"]


async def test_an_end_of_version_1_goes_with_its_client(rig: Rig) -> None:
    """It waits when the connection is closed: it must not end a later transaction."""
    client = await started(rig, 1)
    await client.produce(b"v")
    rig.sequencer.hold(SequencerVerb.BIND_END)
    sent = client.send_end()
    await until(lambda: rig.sequencer.held > 0)
    rig.client.go()
    rig.sequencer.let_go()
    with pytest.raises((asyncio.CancelledError, ConnectionError, TimeoutError)):
        async with asyncio.timeout(0.2):
            await sent
    assert ends_in_bucket(rig) == []
    assert await committed(rig) == []


# Several brokers -------------------------------------------------------------------------------


@VERSIONS
async def test_any_broker_takes_any_request(brokers: Brokers, version: int) -> None:
    one = await brokers.start(**ON)
    await create_topic(one, "t", 4)
    two = await brokers.start(**ON)
    client = await started(one, version)
    for turn in range(6):
        client.rig = (one, two)[turn % 2]
        assert await client.produce(b"%d" % turn) is NONE
        client.rig = (two, one)[turn % 2]
        assert await client.end(commit=turn != 3) is NONE
    expected = [b"0", b"1", b"2", b"4", b"5"]
    await until(lambda: view_end(one) == view_end(two))
    assert await committed(one) == await committed(two) == expected


def view_end(rig: Rig) -> int:
    topic = rig.view.topic("t")
    log = rig.view.log(TopicIdPartition(topic.topic_id, 0)) if topic is not None else None
    return -1 if log is None else log.last_stable_offset


async def test_another_broker_aborts_after_the_timeout(brokers: Brokers) -> None:
    one = await brokers.start(**ON, transaction_abort_check_interval_ms=0)
    await create_topic(one, "t", 4)
    two = await brokers.start(**ON, transaction_abort_check_interval_ms=20)
    client = TransactionalClient(one)
    assert await client.init(timeout_ms=50) is NONE
    await client.produce(b"late")
    await until(lambda: bool(ends_in_bucket(two)))
    assert await client.end() is ErrorCode.transaction_abortable
    assert await client.end(commit=False) is NONE
    assert await client.produce(b"again") is NONE
    assert await client.end() is NONE
    await until(lambda: view_end(one) == view_end(two))
    assert await committed(two) == [b"again"]


@pytest.mark.parametrize("commit", [True, False])
async def test_a_client_and_its_successor_end_once(brokers: Brokers, commit: bool) -> None:
    one = await brokers.start(**ON)
    await create_topic(one, "t", 4)
    two = await brokers.start(**ON)
    first = await started(one, 2)
    await first.produce(b"v")
    second = TransactionalClient(two)
    results = await asyncio.gather(first.end(commit=commit), second.init())
    assert results[1] in (NONE, ErrorCode.concurrent_transactions)
    ends = ends_in_bucket(one)
    assert len(ends) == 1
    shown = results[0] is NONE and commit
    await until(lambda: view_end(one) == view_end(two))
    assert await committed(two) == ([b"v"] if shown else [])


async def test_idle_ids_expire(brokers: Brokers) -> None:
    rig = await brokers.start(
        **ON,
        transactional_id_expiration_ms=1,
        transactional_id_expiration_check_interval_ms=20,
    )
    await create_topic(rig, "t", 4)
    rig.clock_ms = 2**42
    client = await started(rig, 2)
    await until(lambda: not rig.view.transactions.ids)
    assert await client.produce() is ErrorCode.invalid_producer_id_mapping
    assert await client.init() is NONE


async def test_a_transaction_over_1000_partitions_is_one_segment(brokers: Brokers) -> None:
    rig = await brokers.start(**ON)
    await create_topic(rig, "t", 1_000)
    client = await started(rig, 1)
    assert await client.add(*range(1_000)) is NONE
    assert await client.add(*range(1_001)) is ErrorCode.policy_violation
    for partition in (0, 999):
        assert (await client.send(partition=partition)).responses[0] is not None
    before = len(rig.segment_keys())
    assert await client.end() is NONE
    assert len(rig.segment_keys()) == before + 1
    assert await committed(rig, 999) == [b"value"]
    topic = rig.view.topic("t")
    assert topic is not None
    logs = (rig.view.log(TopicIdPartition(topic.topic_id, number)) for number in range(1_000))
    assert sum(log.high_watermark for log in logs if log is not None) == 1_002
