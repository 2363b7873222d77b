"""ListOffsets: earliest, latest, by timestamp, max timestamp (KIP-79, KIP-734)."""

import pytest
from kio.schema.errors import ErrorCode

from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    list_offset,
    produce,
)
from tests.wire_client import WireClient, build_batch

T0 = 1_700_000_000_000


def filled_topic(client: WireClient, make_topic: MakeTopic, codec: int = 0) -> str:
    """Offsets 0 to 5 at seconds 10, 20, 30, then 25, 60, 50."""
    topic = make_topic()
    for seconds in ((10, 20, 30), (25, 60, 50)):
        times = [T0 + 1000 * second for second in seconds]
        batch = build_batch([(None, b"x")] * 3, timestamps=times, codec=codec)
        assert produce(client, topic, batch).error == ErrorCode.none
    return topic


@pytest.mark.parametrize("version", range(1, 9))
def test_the_ends(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = filled_topic(client, make_topic)
    assert list_offset(client, topic, EARLIEST, version=version)[:2] == (ErrorCode.none, 0)
    assert list_offset(client, topic, LATEST, version=version)[:2] == (ErrorCode.none, 6)


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


def test_unknown(client: WireClient, make_topic: MakeTopic) -> None:
    unknown = ErrorCode.unknown_topic_or_partition
    assert list_offset(client, "no-such-topic", LATEST)[0] == unknown
    assert list_offset(client, make_topic(), LATEST, partition=7)[0] == unknown
