"""Messages of all APIs that are offered: requests are read as kio reads them, answers are what kio
reads back; and what no frame may do to the reader."""

import dataclasses
import resource
import struct
import types
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages, RequestT
from bucketlog.log_format.wire.frames import ERROR_MESSAGE_CHARS_MAX, MalformedRequestError
from bucketlog.log_format.wire.messages.delete_topics import DELETE_TOPICS
from bucketlog.log_format.wire.messages.find_coordinator import (
    FIND_COORDINATOR,
    FindCoordinatorResponse,
)
from bucketlog.log_format.wire.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdResponse,
)
from bucketlog.log_format.wire.messages.join_group import JOIN_GROUP
from bucketlog.log_format.wire.messages.list_offsets import LIST_OFFSETS
from bucketlog.log_format.wire.messages.metadata import METADATA, MetadataRequest, MetadataResponse
from bucketlog.log_format.wire.messages.offset_commit import OFFSET_COMMIT
from bucketlog.log_format.wire.messages.offset_fetch import OFFSET_FETCH, OffsetFetchRequest
from bucketlog.log_format.wire.served_versions import OWN_CODECS, SERVED_VERSIONS
from bucketlog.stateless_broker.authorization.needs import NOTHING
from bucketlog.stateless_broker.network import message_reader
from bucketlog.stateless_broker.network.apis import Api, Request
from bucketlog.stateless_broker.network.message_reader import LONGEST_MS
from bucketlog.stateless_broker.network.messages import is_flexible, write_message
from bucketlog.stateless_broker.network.request_order import UNORDERED
from tests.fuzz.requests import Generator
from tests.fuzz.values import World
from tests.models.sample_requests import sample_request
from tests.rigs.offered_apis import ITEMS_MAX, offered
from tests.rigs.wire_client import build, decode_response, encode_entity, request_schema

OFFERED = offered()
MESSAGES = {key: api.messages for key, api in OFFERED.apis.items()}
EVERY_VERSION = [
    pytest.param(key, version, id=f"{key.message_name}-{version}")
    for key in MESSAGES
    for version in SERVED_VERSIONS[key].each()
]


def read_message(
    messages: ApiMessages[RequestT, Any], version: int, frame: memoryview, at: int
) -> RequestT:
    return message_reader.read_message(messages, version, frame, at, items_max=ITEMS_MAX)


def check_same(message: object, expected: object) -> None:
    """All fields of kio's `expected` are read, and all others have their default."""
    if isinstance(expected, tuple):
        assert isinstance(message, tuple)
        for one, other in zip(message, expected, strict=True):
            check_same(one, other)
    elif dataclasses.is_dataclass(expected):
        assert dataclasses.is_dataclass(message)
        unread = {field.name: field.default for field in dataclasses.fields(message)}
        for field in dataclasses.fields(expected):
            del unread[field.name]
            check_same(getattr(message, field.name), getattr(expected, field.name))
        assert {name: getattr(message, name) for name in unread} == unread
    else:
        assert message == expected


def test_all_that_is_served_has_a_handler_and_a_module() -> None:
    assert set(OFFERED.apis) == set(SERVED_VERSIONS) - OWN_CODECS
    assert set(OFFERED.versions) == set(SERVED_VERSIONS)


def test_api_keys_are_kafkas() -> None:
    assert {key.value: key.name.lower() for key in ApiKey} == api_key_map
    for key in SERVED_VERSIONS:
        schema = load_request_schema(key, SERVED_VERSIONS[key].last)
        assert schema.__name__ == f"{key.message_name}Request"


def body_of(request: bytes, flexible: bool) -> int:
    (length,) = struct.unpack_from(">h", request, 8)
    return 10 + max(int(length), 0) + flexible


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_requests_are_read_as_kio_reads_them(key: ApiKey, version: int) -> None:
    request = sample_request(key, version, "topic")
    messages = MESSAGES[key]
    at = body_of(request, is_flexible(key, version))
    expected, size = entity_reader(load_request_schema(key, version))(request, at)
    assert at + size == len(request)
    check_same(read_message(messages, version, memoryview(request), at), expected)


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_no_cut_request_is_read(key: ApiKey, version: int) -> None:
    request = sample_request(key, version, "topic")
    messages = MESSAGES[key]
    at = body_of(request, is_flexible(key, version))
    for end in range(at, len(request)):
        with pytest.raises(MalformedRequestError):
            read_message(messages, version, memoryview(request)[:end], at)


def test_nothing_but_malformed_comes_of_mutated_requests() -> None:
    served = [(key, version) for key in MESSAGES for version in SERVED_VERSIONS[key].each()]
    generator = Generator(World({"topic": UUID(int=1)}), 11)
    known = set(served)
    read = refused = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for request_number in range(20_000):
        payload = generator.frame(request_number).data[4:]
        if len(payload) < 10:
            continue
        number, version = struct.unpack_from(">hh", payload)
        if (number, version) not in known:
            continue
        key = ApiKey(number)
        at = body_of(payload, is_flexible(key, version))
        try:
            read_message(MESSAGES[key], version, memoryview(payload), min(at, len(payload)))
            read += 1
        except MalformedRequestError:
            refused += 1
    assert read > 2000
    assert refused > 2000
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 50 * 1024


@pytest.mark.parametrize("count", [2**31 - 1, 2**24, 100, -2, -(2**31)])
def test_a_count_that_the_frame_does_not_hold_is_refused(count: int) -> None:
    body = struct.pack(">i", count) + b"\0\1t" * 5
    with pytest.raises(MalformedRequestError):
        read_message(METADATA, 1, memoryview(body), 0)


def test_all_items_of_a_request_are_counted_together() -> None:
    topic = {"name": "t", "partition_indexes": (1, 2, 3)}
    schema = request_schema(ApiKey.OFFSET_FETCH, 5)
    body = encode_entity(build(schema, {"group_id": "g", "topics": [topic, topic]}))

    def read(items_max: int) -> OffsetFetchRequest:
        frame = memoryview(body)
        return message_reader.read_message(OFFSET_FETCH, 5, frame, 0, items_max=items_max)

    assert len(read(8).topics or ()) == 2
    with pytest.raises(MalformedRequestError, match="REQUEST_ITEMS_MAX"):
        read(7)


def test_null_where_it_may_not_be_is_refused() -> None:
    with pytest.raises(MalformedRequestError, match="null"):
        read_message(METADATA, 0, memoryview(struct.pack(">i", -1)), 0)
    assert read_message(METADATA, 1, memoryview(struct.pack(">i", -1)), 0).topics is None


def test_unknown_tagged_fields_are_skipped() -> None:
    schema = request_schema(ApiKey.METADATA, 9)
    values = {
        "topics": [{"name": "t"}],
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": False,
    }
    body = encode_entity(build(schema, values))
    assert body.endswith(b"\0")
    tagged = body[:-1] + b"\x02" + b"\x63\x03abc" + b"\x64\x00"
    check_same(read_message(METADATA, 9, memoryview(tagged), 0), build(schema, values))
    with pytest.raises(MalformedRequestError):
        read_message(METADATA, 9, memoryview(tagged[:-3]), 0)


def test_milliseconds_and_ids() -> None:
    schema = request_schema(ApiKey.DELETE_TOPICS, 6)
    topic_id = UUID(int=77)
    topics = [{"name": None, "topic_id": topic_id}, {"name": "t", "topic_id": None}]
    body = encode_entity(build(schema, {"topics": topics, "timeout": 12_345}))
    message = read_message(DELETE_TOPICS, 6, memoryview(body), 0)
    assert message.timeout == timedelta(milliseconds=12_345)
    named = [(topic.name, topic.topic_id) for topic in message.topics]
    assert named == [(None, topic_id), ("t", None)]


@pytest.mark.parametrize(
    ("sent_ms", "read_ms"),
    [(0, 0), (-1, -1), (86_400_000, 86_400_000), (2**63 - 1, LONGEST_MS), (-(2**63), -LONGEST_MS)],
)
def test_a_time_of_64_bits_is_as_long_as_can_be(sent_ms: int, read_ms: int) -> None:
    body = struct.pack(">h1sih1sqi", 1, b"g", 5, 1, b"m", sent_ms, 0)
    message = read_message(OFFSET_COMMIT, 2, memoryview(body), 0)
    assert message.retention_time == timedelta(milliseconds=read_ms)


def test_bytes_may_not_be_null() -> None:
    head = b"\0\1g" + struct.pack(">i", 10_000) + b"\0\0" + b"\0\1c"
    protocol = struct.pack(">ih5s", 1, 5, b"range")
    good = head + protocol + struct.pack(">i2s", 2, b"ok")
    message = read_message(JOIN_GROUP, 0, memoryview(good), 0)
    assert message.protocols[0].metadata == b"ok"
    null = head + protocol + struct.pack(">i", -1)
    with pytest.raises(MalformedRequestError, match="null"):
        read_message(JOIN_GROUP, 0, memoryview(null), 0)


def decoded(key: ApiKey, version: int, body: bytes) -> Any:
    """Of kio: every byte must be used."""
    tags = b"\0" if is_flexible(key, version) and key is not ApiKey.API_VERSIONS else b""
    return decode_response(key, version, b"\0\0\0\x07" + tags + body)[1]


def filled(typed_dict: Any) -> dict[str, Any]:
    """A response with a value for every field of every version."""
    return {name: value_of(hint) for name, hint in get_type_hints(typed_dict).items()}


def value_of(hint: Any) -> Any:
    if get_origin(hint) is types.UnionType:
        hint = get_args(hint)[0]
    if get_origin(hint) is Sequence:
        return [value_of(get_args(hint)[0])]
    return filled(hint) if is_typeddict(hint) else VALUES[hint]


VALUES: dict[type, object] = {
    bool: True,
    bytes: b"bytes",
    datetime: datetime(2026, 1, 1, tzinfo=UTC),
    ErrorCode: ErrorCode.invalid_request,
    int: 3,
    float: 0.5,
    str: "text",
    timedelta: timedelta(milliseconds=5),
    UUID: UUID(int=5),
}


def structures(response: Any) -> Iterator[dict[str, Any]]:
    """The response and all structures in it."""
    yield response
    for value in response.values():
        if isinstance(value, list) and isinstance(value[0], dict):
            yield from structures(value[0])


def check_answered(answer: Any, values: Any) -> None:
    """All fields that the version has are as they were given."""
    if isinstance(values, list):
        assert len(answer) == len(values)
        for one, other in zip(answer, values, strict=True):
            check_answered(one, other)
    elif isinstance(values, dict):
        for field in dataclasses.fields(answer):
            check_answered(getattr(answer, field.name), values[field.name])
    else:
        assert answer == values


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_a_response_with_all_fields_is_written_in_every_version(key: ApiKey, version: int) -> None:
    messages = MESSAGES[key]
    values = filled(messages.response)
    check_answered(decoded(key, version, write_message(messages, version, values)), values)


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_an_unknown_field_is_refused_wherever_it_is_written(key: ApiKey, version: int) -> None:
    messages = MESSAGES[key]
    sound = write_message(messages, version, filled(messages.response))
    refused = 0
    for number in range(len([*structures(filled(messages.response))])):
        values = filled(messages.response)
        planted = [*structures(values)][number]
        planted["no_such_field"] = 1
        try:
            assert write_message(messages, version, values) == sound  # the version lacks it whole
        except TypeError as error:
            assert "has no field 'no_such_field'" in str(error)  # noqa: PT017 - either may happen
            refused += 1
    answer = decoded(key, version, sound)
    assert refused == structures_in(answer)


def structures_in(answer: Any) -> int:
    return 1 + sum(
        structures_in(value[0])
        for field in dataclasses.fields(answer)
        if isinstance(value := getattr(answer, field.name), tuple)
        and value
        and dataclasses.is_dataclass(value[0])
    )


@pytest.mark.parametrize("version", [0, 1])
def test_an_error_message_is_shortened(version: int) -> None:
    row = {"error_code": ErrorCode.invalid_config, "error_message": "ä" * 40_000}
    row |= {"resource_type": 2, "resource_name": "t" * 32_767}
    body = write_message(MESSAGES[ApiKey.INCREMENTAL_ALTER_CONFIGS], version, {"responses": [row]})
    (found,) = decoded(ApiKey.INCREMENTAL_ALTER_CONFIGS, version, body).responses
    assert found.error_message == "ä" * (ERROR_MESSAGE_CHARS_MAX - 1) + "…"


def test_a_misspelt_field_is_refused() -> None:
    misspelt: InitProducerIdResponse = {"producer_idd": 7}  # type: ignore[typeddict-item]  # mypy sees it, too
    with pytest.raises(TypeError, match=r"'producer_idd'; did you mean 'producer_id'\?"):
        write_message(INIT_PRODUCER_ID, 5, misspelt)


def test_a_field_that_a_version_needs_is_not_left_out() -> None:
    old: FindCoordinatorResponse = {"error_code": ErrorCode.none}
    with pytest.raises(TypeError, match="coordinators"):
        write_message(FIND_COORDINATOR, 4, old)


def test_a_misspelt_field_of_a_request_is_seen_by_mypy() -> None:
    body = encode_entity(build(request_schema(ApiKey.METADATA, 0), {"topics": []}))
    message = read_message(METADATA, 0, memoryview(body), 0)
    assert message.topics == ()
    with pytest.raises(AttributeError):
        message.topicss  # type: ignore[attr-defined]  # noqa: B018 - mypy sees it


def test_a_handler_of_another_api_is_seen_by_mypy() -> None:
    async def handler(request: Request, message: MetadataRequest) -> MetadataResponse:
        return {"brokers": [], "topics": []}

    assert Api(METADATA, handler, NOTHING, UNORDERED).key is ApiKey.METADATA
    assert Api(LIST_OFFSETS, handler, NOTHING, UNORDERED).key is ApiKey.LIST_OFFSETS  # type: ignore[arg-type]  # mypy sees it


def test_a_version_leaves_out_what_it_lacks_and_fills_in_what_nobody_gave() -> None:
    values: MetadataResponse = {
        "brokers": [{"node_id": 1, "host": "h", "port": 9, "rack": None}],
        "cluster_id": "c",
        "controller_id": 1,
        "topics": [
            {
                "error_code": ErrorCode.none,
                "name": "t",
                "topic_id": UUID(int=5),
                "is_internal": False,
                "partitions": [],
            }
        ],
    }
    old = decoded(ApiKey.METADATA, 0, write_message(METADATA, 0, values))
    assert [topic.name for topic in old.topics] == ["t"]
    new = decoded(ApiKey.METADATA, 12, write_message(METADATA, 12, values))
    assert new.cluster_id == "c"
    assert new.throttle_time == timedelta(0)
    assert new.topics[0].topic_id == UUID(int=5)
