"""The Produce codec against kio's, which is generated from Kafka's own schemas."""

import uuid
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import RefusedRecord
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire import produce
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import (
    ERROR_MESSAGE_CHARS_MAX,
    FrameReader,
    MalformedRequestError,
)
from bucketlog.log_format.wire.produce import ProducePartitionData, ProduceResult
from tests.rigs.wire_client import (
    build,
    build_batch,
    decode_response,
    encode_entity,
    request_schema,
)

REFUSED = (RefusedRecord(3, "no key"), RefusedRecord(70_000, "the third"))
VERSIONS = range(produce.MIN_VERSION, produce.MAX_VERSION + 1)
BATCH = build_batch([(b"key", b"value")])
IDS = {
    name: uuid.UUID(int=number)
    for number, name in enumerate(["first", "nothing", "später", "a", "b", "t"])
}


def encoded(version: int, **values: Any) -> memoryview:
    """Something before the body: a body need not begin the frame."""
    entity = build(request_schema(ApiKey.PRODUCE, version), values)
    return memoryview(b"header" + encode_entity(entity))


def body_of(frame: memoryview, version: int) -> FrameReader:
    return FrameReader(frame, len("header"), flexible=version >= produce.FLEXIBLE_FROM)


def named(version: int, name: str) -> dict[str, Any]:
    """The field of a request that names a topic."""
    return {"topic_id": IDS[name]} if version >= produce.TOPIC_IDS_FROM else {"name": name}


def name_of(topic_id: TopicId) -> str:
    (name,) = (name for name, each in IDS.items() if each.bytes == topic_id)
    return name


def id_of(version: int, name: str) -> TopicId | None:
    return TopicId(IDS[name].bytes) if version >= produce.TOPIC_IDS_FROM else None


def read(frame: memoryview, version: int) -> produce.ProduceRequest:
    return produce.read_request(body_of(frame, version), version, name_of)


@pytest.mark.parametrize("version", VERSIONS)
def test_requests(version: int) -> None:
    frame = encoded(
        version,
        transactional_id=None if version % 2 else "transaction",
        acks=-1,
        timeout=12_345,
        topic_data=[
            {
                **named(version, "first"),
                "partition_data": [
                    {"index": 0, "records": BATCH},
                    {"index": 2**31 - 1, "records": None},
                ],
            },
            {**named(version, "nothing"), "partition_data": []},
            {**named(version, "später"), "partition_data": [{"index": 7, "records": b""}]},
        ],
    )
    request = read(frame, version)
    assert request.transactional_id == (None if version % 2 else "transaction")
    assert (request.acks, request.timeout_ms) == (-1, 12_345)
    first = id_of(version, "first")
    assert request.partitions == [
        ProducePartitionData("first", 0, memoryview(BATCH), first),
        ProducePartitionData("first", 2**31 - 1, None, first),
        ProducePartitionData("später", 7, memoryview(b""), id_of(version, "später")),
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("items", range(1, 9))
def test_requests_in_slices(version: int, items: int) -> None:
    """For repeated names, in one topic entry or in several, the last records count."""
    rows = [{"index": number, "records": bytes([number])} for number in (0, 1, 2)]
    again = [{"index": 1, "records": b"again"}, {"index": 1, "records": b"last"}]
    topics = [("a", rows), ("nothing", []), ("b", again[:1]), ("a", again)]
    frame = encoded(
        version,
        acks=-1,
        timeout=1,
        topic_data=[{**named(version, name), "partition_data": data} for name, data in topics],
    )
    whole = read(frame, version)
    found = [(part.topic, part.partition, bytes(part.records or b"")) for part in whole.partitions]
    assert found == [("a", 0, b"\0"), ("a", 1, b"last"), ("a", 2, b"\2"), ("b", 1, b"again")]
    reader = produce.RequestReader(body_of(frame, version), version, name_of)
    slices = 1
    while not reader.read(items):
        slices += 1
    assert reader.request() == whole
    assert slices >= 6 / items
    cut = produce.RequestReader(body_of(frame[:-2], version), version, name_of)
    with pytest.raises(MalformedRequestError):
        [cut.read(items) for _ in range(20)]


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_views_of_the_frame(version: int) -> None:
    rows = [{"index": 0, "records": BATCH}]
    topics = [{**named(version, "t"), "partition_data": rows}]
    values = {"acks": 1, "timeout": 1, "topic_data": topics}
    frame = memoryview(bytearray(encoded(version, **values)))
    (part,) = read(frame, version).partitions
    assert part.records is not None
    part.records[0] = 99
    assert bytes(frame).count(b"\x63" + BATCH[1:]) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_responses(version: int) -> None:
    results = [
        ProduceResult("a", 0, ErrorCode.none, 2**40, -1, 0, None),
        ProduceResult("a", 3, ErrorCode.corrupt_message, -1, -1, -1, "the CRC does not hold"),
        ProduceResult("b", 1, ErrorCode.none, 5, 1_700_000_000_123, 2, None),
        ProduceResult("b", 2, ErrorCode.invalid_record, -1, -1, -1, "no key", REFUSED),
    ]
    results = [each._replace(topic_id=id_of(version, each.topic)) for each in results]
    body = produce.write_response(version, results)
    header = b"\0\0\0\x07" + (b"\0" if version >= produce.FLEXIBLE_FROM else b"")
    correlation_id, response = decode_response(ApiKey.PRODUCE, version, header + body)
    assert correlation_id == 7
    key = "topic_id" if version >= produce.TOPIC_IDS_FROM else "name"
    found = [getattr(topic, key) for topic in response.responses]
    assert found == [named(version, name)[key] for name in ("a", "b")]
    rows = [row for topic in response.responses for row in topic.partition_responses]
    assert [(row.index, row.error_code, row.base_offset) for row in rows] == [
        (0, ErrorCode.none, 2**40),
        (3, ErrorCode.corrupt_message, -1),
        (1, ErrorCode.none, 5),
        (2, ErrorCode.invalid_record, -1),
    ]
    assert [row.log_append_time for row in rows[:2]] == [None, None]
    assert round(rows[2].log_append_time.timestamp() * 1000) == 1_700_000_000_123
    if version >= 5:
        assert [row.log_start_offset for row in rows] == [0, -1, 2, -1]
    if version >= 8:
        messages = [row.error_message for row in rows]
        assert messages == [None, "the CRC does not hold", None, "no key"]
        assert [len(row.record_errors) for row in rows] == [0, 0, 0, 2]
        assert [
            (one.batch_index, one.batch_index_error_message) for one in rows[3].record_errors
        ] == [*REFUSED]


@pytest.mark.parametrize("version", range(8, produce.MAX_VERSION + 1))
def test_an_error_message_is_shortened(version: int) -> None:
    """A message may quote a topic of 32,767 bytes, the limit of a string of version 8."""
    topic_id = id_of(version, "t")
    result = ProduceResult("t" * 32_767, 0, 3, -1, -1, -1, "ä" * 40_000, (), topic_id)
    body = produce.write_response(version, [result])
    head = b"\0" * (5 if version >= produce.FLEXIBLE_FROM else 4)
    _, response = decode_response(ApiKey.PRODUCE, version, head + body)
    (row,) = response.responses[0].partition_responses
    assert row.error_message == "ä" * (ERROR_MESSAGE_CHARS_MAX - 1) + "…"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_response(version: int) -> None:
    header = b"\0\0\0\x07" + (b"\0" if version >= produce.FLEXIBLE_FROM else b"")
    _, response = decode_response(
        ApiKey.PRODUCE, version, header + produce.write_response(version, [])
    )
    assert response.responses == ()
