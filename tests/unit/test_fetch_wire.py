"""The Fetch codec against kio's, which is generated from Kafka's own schemas."""

from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicId
from bucketlog.log_format.transactions import AbortedTransaction
from bucketlog.log_format.wire import fetch
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.fetch import FetchedPartition, FetchPartitionData
from bucketlog.log_format.wire.frames import MalformedRequestError
from tests.rigs.wire_client import (
    build,
    build_batch,
    decode_response,
    encode_entity,
    request_schema,
)

VERSIONS = range(fetch.MIN_VERSION, fetch.MAX_VERSION + 1)
A, B = UUID(int=2**100 + 1), UUID(int=2)


def partition_row(version: int, number: int, offset: int, max_bytes: int) -> dict[str, Any]:
    row = {"partition": number, "fetch_offset": offset, "partition_max_bytes": max_bytes}
    if version >= 5:
        row["log_start_offset"] = -1
    if version >= 9:
        row["current_leader_epoch"] = number + 20
    if version >= 12:
        row["last_fetched_epoch"] = 3
    return row


def topic_row(version: int, name: str, topic_id: UUID, rows: list[Any]) -> dict[str, Any]:
    if version >= fetch.TOPIC_IDS_FROM:
        return {"topic_id": topic_id, "partitions": rows}
    return {"topic": name, "partitions": rows}


def request_values(version: int) -> dict[str, Any]:
    values: dict[str, Any] = {
        "max_wait": 500,
        "min_bytes": 1,
        "max_bytes": 50_000_000,
        "isolation_level": 1,
        "topics": [
            topic_row(
                version,
                "a",
                A,
                [partition_row(version, 0, 2**40, 1000), partition_row(version, 5, 0, 2**31 - 1)],
            ),
            topic_row(version, "b", B, [partition_row(version, 1, 17, 1)]),
        ],
    }
    if version < 15:
        values["replica_id"] = -1
    if version >= 7:
        forgotten = {"partitions": [1, 2, 3]}
        name = {"topic_id": B} if version >= fetch.TOPIC_IDS_FROM else {"topic": "b"}
        values |= {
            "session_id": 7,
            "session_epoch": 2,
            "forgotten_topics_data": [name | forgotten],
        }
    if version >= 11:
        values["rack_id"] = "eu-1a"
    if version >= 12:
        values["cluster_id"] = "a tagged field"
    if version >= 15:
        values["replica_state"] = {"replica_id": 4, "replica_epoch": 9}
    return values


@pytest.mark.parametrize("version", VERSIONS)
def test_requests(version: int) -> None:
    entity = build(request_schema(ApiKey.FETCH, version), request_values(version))
    frame = memoryview(b"header" + encode_entity(entity))
    request = fetch.read_request(frame, len("header"), version)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 50_000_000)
    assert request.isolation_level == 1
    assert (request.session_id, request.session_epoch) == ((7, 2) if version >= 7 else (0, -1))
    by_id = version >= fetch.TOPIC_IDS_FROM
    wanted = [("a", A, 0, 2**40, 1000), ("a", A, 5, 0, 2**31 - 1), ("b", B, 1, 17, 1)]
    assert list(request.partitions) == [
        FetchedPartition(
            "" if by_id else name,
            TopicId(topic_id.bytes) if by_id else None,
            number,
            number + 20 if version >= 9 else -1,
            offset,
            max_bytes,
        )
        for name, topic_id, number, offset, max_bytes in wanted
    ]


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 7])
def test_forgotten_partitions(version: int) -> None:
    entity = build(request_schema(ApiKey.FETCH, version), request_values(version))
    request = fetch.read_request(memoryview(encode_entity(entity)), 0, version)
    by_id = version >= fetch.TOPIC_IDS_FROM
    topic = ("", TopicId(B.bytes)) if by_id else ("b", None)
    assert request.forgotten == [(topic, 1), (topic, 2), (topic, 3)]
    assert not request.is_full


def test_topics_and_partitions_of_a_request_are_counted_together() -> None:
    entity = build(request_schema(ApiKey.FETCH, 12), request_values(12))
    frame = memoryview(encode_entity(entity))
    least = next(count for count in range(100) if _is_taken(frame, count))
    assert least >= 2 + 3, "2 topics, 3 partitions"
    with pytest.raises(MalformedRequestError, match="REQUEST_ITEMS_MAX"):
        fetch.read_request(frame, 0, 12, items_max=least - 1)


def _is_taken(frame: memoryview, items_max: int) -> bool:
    try:
        fetch.read_request(frame, 0, 12, items_max=items_max)
    except MalformedRequestError:
        return False
    return True


@pytest.mark.parametrize("version", VERSIONS)
def test_responses(version: int) -> None:
    batches = [build_batch([(None, b"value-%d" % number)]) for number in range(3)]
    by_id = version >= fetch.TOPIC_IDS_FROM

    def result(
        name: str,
        topic_id: UUID,
        number: int,
        error: ErrorCode,
        records: list[bytes],
        aborted: list[AbortedTransaction] | None = None,
    ) -> FetchPartitionData:
        known = error is ErrorCode.none
        return FetchPartitionData(
            "" if by_id else name,
            TopicId(topic_id.bytes) if by_id else None,
            number,
            error,
            2**40 if known else -1,
            2**40 - 1 if known else -1,
            3 if known else -1,
            [memoryview(data) for data in records],
            aborted,
        )

    aborted = [AbortedTransaction(2**62, 7, 9), AbortedTransaction(5, 2**53, 2**53 + 1)]
    parts = fetch.write_response(
        version,
        ErrorCode.none,
        [
            result("a", A, 0, ErrorCode.none, batches[:2]),
            result("a", A, 4, ErrorCode.offset_out_of_range, []),
            result("b", B, 1, ErrorCode.none, batches[2:], aborted),
            result("b", B, 2, ErrorCode.none, [], []),
        ],
    )
    assert sum(isinstance(part, memoryview) for part in parts) == 3  # not copied
    header = b"\0\0\0\x07" + (b"\0" if version >= fetch.FLEXIBLE_FROM else b"")
    correlation_id, response = decode_response(ApiKey.FETCH, version, header + b"".join(parts))
    assert correlation_id == 7
    names = [topic.topic_id if by_id else topic.topic for topic in response.responses]
    assert names == ([A, B] if by_id else ["a", "b"])
    rows = [row for topic in response.responses for row in topic.partitions]
    assert [(row.partition_index, row.error_code, row.records or b"") for row in rows] == [
        (0, ErrorCode.none, batches[0] + batches[1]),
        (4, ErrorCode.offset_out_of_range, b""),
        (1, ErrorCode.none, batches[2]),
        (2, ErrorCode.none, b""),
    ]
    assert [row.high_watermark for row in rows] == [2**40, -1, 2**40, 2**40]
    assert [row.last_stable_offset for row in rows] == [2**40 - 1, -1, 2**40 - 1, 2**40 - 1]
    if version >= 5:
        assert [row.log_start_offset for row in rows] == [3, -1, 3, 3]
    told = [row.aborted_transactions for row in rows]
    assert told[:2] == [None, None]
    assert [[(each.producer_id, each.first_offset) for each in some] for some in told[2:]] == [
        [(2**62, 7), (5, 2**53)],
        [],
    ]


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 7])
def test_an_error_of_the_whole(version: int) -> None:
    parts = fetch.write_response(
        version, ErrorCode.invalid_fetch_session_epoch, [], session_id=2**31 - 1
    )
    header = b"\0\0\0\x07" + (b"\0" if version >= fetch.FLEXIBLE_FROM else b"")
    _, response = decode_response(ApiKey.FETCH, version, header + b"".join(parts))
    assert response.error_code is ErrorCode.invalid_fetch_session_epoch
    assert response.session_id == 2**31 - 1
    assert response.responses == ()
