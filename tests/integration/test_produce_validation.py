"""Which produced records a broker rejects, by table, and that other clients are unaffected."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import Codec, read_header
from bucketlog.log_format.compression import compress
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import LATEST, fetch, list_offset, produce, produce_values
from tests.models.produced_batches import NOW_MS, batch, record
from tests.models.validation_cases import CASES, SOUND
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient

NONE, INVALID = ErrorCode.none, ErrorCode.invalid_record
GARBAGE = batch(b"\xff" * 40, 1)
BOMB = batch(compress(Codec.ZSTD, record(0, value=bytes(60 << 20))), 1, attributes=Codec.ZSTD)


def answered(client: WireClient, topic: str, data: bytes) -> Any:
    client.send(ApiKey.PRODUCE, 9, **produce_values(topic, data))
    (row,) = client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses
    return row


@pytest.mark.parametrize("name", CASES)
def test_the_table(client: WireClient, make_topic: MakeTopic, name: str) -> None:
    case = CASES[name]
    topic = make_topic(**{name.replace(".", "_"): text for name, text in case.configs.items()})
    row = answered(client, topic, case.sent_now())
    assert row.error_code is case.expected, row.error_message
    assert tuple(one.batch_index for one in row.record_errors) == case.named
    end = list_offset(client, topic, LATEST)[1]
    assert (row.base_offset, end > 0) == ((0, True) if case.expected is NONE else (-1, False))


def test_each_record_says_why_it_was_refused(client: WireClient, make_topic: MakeTopic) -> None:
    late = record(0) + record(1, timestamp_delta=2**62)
    row = answered(client, make_topic(), batch(late, 2))
    assert row.error_message == "One or more records have been rejected due to invalid timestamp"
    (named,) = row.record_errors
    assert named.batch_index_error_message.startswith(
        f"Timestamp {NOW_MS + 2**62} of message with offset 1 is out of range. The timestamp should"
    )


def test_the_largest_timestamp_is_put_right(client: WireClient, make_topic: MakeTopic) -> None:
    """As in Kafka, with a new CRC."""
    topic = make_topic()
    body = record(0) + record(1, timestamp_delta=-7)
    for codec in (Codec.NONE, Codec.LZ4):
        wrong = batch(compress(codec, body), 2, attributes=codec, max_timestamp=2**63 - 1)
        offset = produce(client, topic, wrong).base_offset
        header = read_header(stored := fetch(client, topic, offset).data)
        assert header.max_timestamp == NOW_MS
        assert stored[17:] == batch(compress(codec, body), 2, attributes=codec)[17:]


@pytest.fixture(params=["full", "header"])
def opaque(request: pytest.FixtureRequest, make_topic: MakeTopic) -> tuple[str, bool]:
    topic = make_topic(record_validation=request.param)
    return topic, request.param == "header"


def test_a_topic_may_have_headers_checked_alone(
    client: WireClient, opaque: tuple[str, bool]
) -> None:
    topic, accepted = opaque
    assert produce(client, topic, GARBAGE).error == (NONE if accepted else INVALID)
    broken = bytearray(SOUND)
    broken[-1] ^= 1
    assert produce(client, topic, bytes(broken)).error == ErrorCode.corrupt_message


def test_compacted_topics_are_checked_in_full(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic(record_validation="header", cleanup_policy="compact")
    assert produce(client, topic, GARBAGE).error == INVALID


def test_batches_of_a_connection_keep_their_order(
    client: WireClient, make_topic: MakeTopic
) -> None:
    """Alternates large batches (validated in threads), small batches and rejected batches."""
    topic = make_topic(max_message_bytes=str(8 << 20))
    large = compress(Codec.GZIP, record(0, value=bytes(4 << 20)))
    sent = [
        batch(large, 1, attributes=Codec.GZIP, max_timestamp=NOW_MS),
        batch(record(0), 1),
        GARBAGE,
        batch(compress(Codec.ZSTD, record(0)), 1, attributes=Codec.ZSTD),
    ] * 8
    for data in sent:
        client.send(ApiKey.PRODUCE, 9, **produce_values(topic, data))
    offsets = []
    for data in sent:
        (row,) = client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses
        assert row.error_code is (INVALID if data is GARBAGE else NONE)
        offsets.append(row.base_offset)
    accepted = [offset for offset in offsets if offset >= 0]
    assert accepted == [*range(24)]
    assert [offset < 0 for offset in offsets] == [data is GARBAGE for data in sent]


def test_acks_0_of_garbage_ends_the_connection(
    client: WireClient, other: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    compressed = batch(b"\xff" * 40, 1, attributes=Codec.ZSTD)
    client.send_unanswered(ApiKey.PRODUCE, 9, **produce_values(topic, compressed, acks=0))
    assert client.read_frame() is None
    assert list_offset(other, topic, LATEST)[1] == 0


def test_what_came_before_a_client_left_is_committed(
    broker: Any, client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    compressed = batch(compress(Codec.GZIP, record(0)), 1, attributes=Codec.GZIP)
    with WireClient(broker.bootstrap) as leaving:
        for _ in range(5):
            leaving.send_unanswered(ApiKey.PRODUCE, 9, **produce_values(topic, compressed, acks=0))
    eventually(lambda: list_offset(client, topic, LATEST)[1] == 5)
