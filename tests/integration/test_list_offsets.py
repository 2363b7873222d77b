"""ListOffsets: earliest, latest, by timestamp, max timestamp (KIP-79, KIP-734)."""

import threading
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.record_check import first_since
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.handlers.list_offsets import LOOKUP_BYTES_MAX, LOOKUP_RECORDS_MAX
from bucketlog.tiered_storage.faulty import BucketVerb, Fault
from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    list_offset,
    produce,
)
from tests.rigs.broker_rig import Rig, create_topic, outcome, send, until
from tests.rigs.broker_rig import produce as rig_produce
from tests.rigs.patience import PATIENCE_S
from tests.rigs.several_brokers import Brokers
from tests.rigs.wire_client import WireClient, build_batch, patch_batch

T0 = 1_700_000_000_000
GZIP = 1


def filled_topic(client: WireClient, make_topic: MakeTopic, codec: int = 0) -> str:
    """Offsets 0 to 5 at seconds 10, 20, 30, then 25, 60, 50."""
    topic = make_topic()
    for seconds in ((10, 20, 30), (25, 60, 50)):
        times = [T0 + 1000 * second for second in seconds]
        batch = build_batch([(None, b"x")] * 3, timestamps=times, codec=codec)
        assert produce(client, topic, batch).error == ErrorCode.none
    return topic


@pytest.mark.parametrize("version", range(1, 12))
def test_the_ends(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = filled_topic(client, make_topic)
    assert list_offset(client, topic, EARLIEST, version=version)[:2] == (ErrorCode.none, 0)
    assert list_offset(client, topic, LATEST, version=version)[:2] == (ErrorCode.none, 6)


@pytest.mark.parametrize(("timestamp", "since"), [(-4, 8), (-5, 9), (-6, 11), (-7, 12)])
@pytest.mark.parametrize("version", range(7, 12))
def test_special_timestamps_of_tiered_storage(
    client: WireClient, make_topic: MakeTopic, timestamp: int, since: int, version: int
) -> None:
    """KIP-405, KIP-1005, KIP-1023: no topic has remote storage."""
    topic = filled_topic(client, make_topic)
    offset = 0 if timestamp == -4 else -1
    expected = (ErrorCode.none, offset, -1)
    if version < since:
        expected = (ErrorCode.unsupported_version, -1, -1)
    assert list_offset(client, topic, timestamp, version=version) == expected


def test_an_empty_partition(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert list_offset(client, topic, EARLIEST)[:2] == (ErrorCode.none, 0)
    assert list_offset(client, topic, LATEST)[:2] == (ErrorCode.none, 0)
    assert list_offset(client, topic, T0) == (ErrorCode.none, -1, -1)
    assert list_offset(client, topic, MAX_TIMESTAMP) == (ErrorCode.none, -1, -1)


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize(
    ("second", "offset", "found"),
    [(0, 0, 10), (10, 0, 10), (11, 1, 20), (30, 2, 30), (31, 4, 60), (60, 4, 60)],
)
def test_by_timestamp(
    client: WireClient, make_topic: MakeTopic, codec: int, second: int, offset: int, found: int
) -> None:
    """The first offset whose record is as late or later."""
    topic = filled_topic(client, make_topic, codec)
    answer = list_offset(client, topic, T0 + 1000 * second)
    assert answer == (ErrorCode.none, offset, T0 + 1000 * found)


def test_later_than_all(client: WireClient, make_topic: MakeTopic) -> None:
    topic = filled_topic(client, make_topic)
    assert list_offset(client, topic, T0 + 60_001) == (ErrorCode.none, -1, -1)


@pytest.mark.parametrize("version", [7, 8])
def test_max_timestamp(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = filled_topic(client, make_topic)
    answer = list_offset(client, topic, MAX_TIMESTAMP, version=version)
    assert answer == (ErrorCode.none, 4, T0 + 60_000)


def test_the_first_of_several_with_the_max_timestamp(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    times = [T0 + 1000 * second for second in (10, 20, 20)]
    for _ in range(2):
        batch = build_batch([(None, b"x")] * 3, timestamps=times)
        assert produce(client, topic, batch).error == ErrorCode.none
    assert list_offset(client, topic, MAX_TIMESTAMP) == (ErrorCode.none, 1, T0 + 20_000)


@pytest.mark.parametrize(
    ("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 8), (-(2**63), 8)]
)
def test_a_special_timestamp_that_the_version_does_not_have(
    client: WireClient, make_topic: MakeTopic, timestamp: int, version: int
) -> None:
    """As Kafka's ReplicaManager: not an error that is tried again."""
    code = ErrorCode.unsupported_version
    assert list_offset(client, make_topic(), timestamp, version=version)[0] == code


def test_unknown(client: WireClient, make_topic: MakeTopic) -> None:
    unknown = ErrorCode.unknown_topic_or_partition
    assert list_offset(client, "no-such-topic", LATEST)[0] == unknown
    assert list_offset(client, make_topic(), LATEST, partition=7)[0] == unknown


def test_a_partition_asked_for_twice(client: WireClient, make_topic: MakeTopic) -> None:
    """Which of the two answers would be meant? The others of the request are answered."""
    topic = make_topic(partitions=2)
    rows = [{"partition_index": at, "timestamp": LATEST} for at in (0, 1, 0)]
    answer = client.call(
        ApiKey.LIST_OFFSETS,
        7,
        replica_id=-1,
        isolation_level=0,
        topics=[{"name": topic, "partitions": rows}],
    )
    codes = [(row.partition_index, row.error_code) for row in answer.topics[0].partitions]
    twice = ErrorCode.invalid_request
    assert codes == [(0, twice), (1, ErrorCode.none)]


@pytest.mark.parametrize(("extra", "offset"), [(0, LOOKUP_RECORDS_MAX - 1), (1, 0)])
def test_a_batch_of_too_many_records_is_answered_by_its_header(
    client: WireClient, make_topic: MakeTopic, extra: int, offset: int
) -> None:
    topic = make_topic()
    count = LOOKUP_RECORDS_MAX + extra
    times = [T0] * (count - 1) + [T0 + 1000]
    batch = build_batch([(None, b"")] * count, timestamps=times, codec=GZIP)
    assert produce(client, topic, batch).error == ErrorCode.none
    assert list_offset(client, topic, T0 + 1) == (ErrorCode.none, offset, T0 + 1000)


@pytest.mark.parametrize(("size", "offset"), [(LOOKUP_BYTES_MAX // 2, 1), (LOOKUP_BYTES_MAX, 0)])
def test_a_batch_that_inflates_too_far_is_answered_by_its_header(
    client: WireClient, make_topic: MakeTopic, size: int, offset: int
) -> None:
    topic = make_topic()
    batch = build_batch([(None, b""), (None, bytes(size))], timestamps=[T0, T0 + 1000], codec=GZIP)
    assert produce(client, topic, batch).error == ErrorCode.none
    assert list_offset(client, topic, T0 + 1) == (ErrorCode.none, offset, T0 + 1000)


def test_a_batch_that_does_not_decode_is_answered_by_its_header(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(record_validation="header")
    good = build_batch([(None, b"x")] * 2, timestamps=[T0, T0 + 1000], codec=GZIP)
    broken = patch_batch(good, 61, ">H", 0)
    assert produce(client, topic, broken).error == ErrorCode.none
    assert list_offset(client, topic, T0 + 1) == (ErrorCode.none, 0, T0 + 1000)


async def test_a_look_up_that_takes_long_holds_nobody_up(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look-up may not end before another request is answered."""
    begun, answered = threading.Event(), threading.Event()

    def slow(*args: Any, **values: Any) -> Any:
        begun.set()
        assert answered.wait(PATIENCE_S / 2), "the event loop waited for the look-up"
        return first_since(*args, **values)

    monkeypatch.setattr("bucketlog.stateless_broker.handlers.list_offsets.first_since", slow)
    assert (await outcome(send(rig)))[0] is ErrorCode.none
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": 1}]}]
    looking = rig.send(ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics)
    await until(begun.is_set)
    await rig.call(ApiKey.METADATA, 1, topics=[])
    assert not looking.done()
    answered.set()
    assert (await looking).topics[0].partitions[0].offset == 0


async def test_look_ups_of_one_request_go_side_by_side(brokers: Brokers) -> None:
    rig = await brokers.start(cache_recent_bytes_max=1, history_ranges_in_flight=8)
    assert await create_topic(rig, "t", 20) is ErrorCode.none
    for partition in range(20):
        assert (await rig_produce(rig, b"x", partition=partition))[0] is ErrorCode.none
    reads = 0

    def plan(verb: BucketVerb, key: str) -> Fault | None:
        nonlocal reads
        if verb is not BucketVerb.GET:
            return None
        reads += 1
        return Fault(error=None, delay_ms=200 if reads < 8 else 0)

    rig.plan = plan
    rows = [{"partition_index": number, "timestamp": 1} for number in range(20)]
    topics = [{"name": "t", "partitions": rows}]
    asked = rig.send(ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics)
    await until(lambda: reads >= 8)
    assert not asked.done()
    partitions = (await asked).topics[0].partitions
    assert [(row.partition_index, row.offset) for row in partitions] == [
        (number, 0) for number in range(20)
    ]
