"""Topics that a mirror fills: its batches keep their offsets, and nobody else writes."""

import struct
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import uvarint
from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import (
    LATEST,
    fetch,
    list_offset,
    produce,
    produce_values,
)
from tests.rigs.mirrored_batches import RECORDS, at, gap, mirror
from tests.rigs.wire_client import (
    WireClient,
    decode_response,
    encode_request,
    patch_batch,
)

VERSION = 9
LAST_DELTA_AT, COUNT_AT, ATTRIBUTES_AT, PRODUCER_AT = 23, 57, 21, 43
MIRROR = {"mirror_source": "source-cluster"}


def test_batches_get_the_offsets_that_they_have(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic(**MIRROR)
    five = 5_000_000_000
    start = 0
    while start < five:
        span = min(five - start, 2**31)
        assert mirror(client, topic, gap(start, span))[0] == ErrorCode.none
        start += span
    batch = at(RECORDS, five)
    assert mirror(client, topic, batch)[:2] == (ErrorCode.none, five)
    assert list_offset(client, topic, LATEST)[:2] == (ErrorCode.none, five + 3)
    assert bytes(fetch(client, topic, five).data) == batch
    assert bytes(fetch(client, topic, 0).data).endswith(batch)
    error, _, message = mirror(client, topic, batch)
    assert error == ErrorCode.offset_out_of_range
    assert f"the partition ends at {five + 3}" in str(message)
    assert list_offset(client, topic, LATEST)[:2] == (ErrorCode.none, five + 3)


def test_batches_with_missing_records(client: WireClient, make_topic: MakeTopic) -> None:
    """What compaction has left at the source is found by its timestamp, too."""
    topic = make_topic(**MIRROR)
    holes = bytearray(RECORDS)
    deltas = [place for place in range(61, len(holes)) if holes[place : place + 2] == b"\x04\x02"]
    holes[deltas[-1]] = 9 * 2
    compacted = patch_batch(bytes(holes), LAST_DELTA_AT, ">i", 11)
    assert mirror(client, topic, compacted)[:2] == (ErrorCode.none, 0)
    assert mirror(client, topic, at(RECORDS, 12))[:2] == (ErrorCode.none, 12)
    assert list_offset(client, topic, 1_700_000_000_002)[:2] == (ErrorCode.none, 9)
    assert list_offset(client, topic, LATEST)[:2] == (ErrorCode.none, 15)


@pytest.mark.parametrize(
    "batch",
    [
        patch_batch(RECORDS, ATTRIBUTES_AT, ">h", 0x10),
        patch_batch(RECORDS, ATTRIBUTES_AT, ">h", 0x20),
        patch_batch(RECORDS, ATTRIBUTES_AT, ">h", 0x40),
        patch_batch(RECORDS, PRODUCER_AT, ">q", 5),
        patch_batch(RECORDS, LAST_DELTA_AT, ">i", 1),
        patch_batch(RECORDS, COUNT_AT, ">i", 4),
        patch_batch(RECORDS, COUNT_AT, ">i", -1),
        patch_batch(RECORDS, COUNT_AT, ">i", 0),
        at(RECORDS, -1),
        at(RECORDS, 2**53),
    ],
    ids=range(10),
)
def test_batches_that_no_mirror_sends(
    client: WireClient, make_topic: MakeTopic, batch: bytes
) -> None:
    topic = make_topic(**MIRROR)
    assert mirror(client, topic, batch)[0] == ErrorCode.invalid_record
    assert mirror(client, topic, RECORDS)[:2] == (ErrorCode.none, 0)


def test_others_may_not_write(client: WireClient, make_topic: MakeTopic) -> None:
    mirrored, ordinary = make_topic(**MIRROR), make_topic()
    refused = produce(client, mirrored, RECORDS)
    assert refused.error == ErrorCode.policy_violation
    assert "is a mirror (mirror.source=source-cluster)" in str(refused.message)
    error, _, message = mirror(client, ordinary, RECORDS)
    assert error == ErrorCode.policy_violation
    assert "is not a mirror" in str(message)
    assert mirror(client, mirrored, RECORDS, acks=1)[0] == ErrorCode.invalid_request
    named = mirror(client, mirrored, RECORDS, transactional_id=uuid4().hex)
    assert named[0] == ErrorCode.invalid_request


def test_other_tags_are_skipped(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    plain = encode_request(ApiKey.PRODUCE, VERSION, 7, produce_values(topic, RECORDS))
    client.send_frame(plain[:-1] + b"\1" + uvarint(77) + b"\2" + struct.pack(">h", 5))
    frame = client.read_frame()
    assert frame is not None
    row = decode_response(ApiKey.PRODUCE, VERSION, frame)[1].responses[0].partition_responses[0]
    assert row.error_code == ErrorCode.none
