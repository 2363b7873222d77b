"""Messages of all APIs that are offered: requests are read as kio reads them, answers are what kio
reads back; and what no frame may do to the reader."""

import resource
import struct
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader

from bucketlog.wire.frames import MalformedRequestError
from metadata.view import View
from stateless_broker.epochs.end import EpochEnd
from stateless_broker.fetch.reading import RangeReader
from stateless_broker.handlers.routes import Parts, make_dispatcher
from stateless_broker.network import message_reader
from stateless_broker.network.dispatch import Api
from stateless_broker.network.message_reader import LONGEST_MS
from stateless_broker.network.messages import Values, is_flexible, write_message
from stateless_broker.settings import BrokerSettings
from tests.scenarios.frames import Corpus, frames
from tests.wire_client import API_KEYS, build, decode_response, encode_entity, request_schema

OWN_CODEC = (0, 1)
ITEMS_MAX = 10_000


def read_message(api_key: int, version: int, frame: memoryview, at: int) -> Any:
    return message_reader.read_message(api_key, version, frame, at, items_max=ITEMS_MAX)


def offered() -> dict[int, Api]:
    """What the broker's dispatcher has; nothing here is asked anything."""
    nothing = cast(Any, None)
    settings = BrokerSettings(bucket_url="memory://t", redis_url="redis://t")
    parts = Parts(
        settings=settings,
        view=View(),
        reader=RangeReader.of(nothing, nothing, settings),
        sequencer=nothing,
        intake=cast(Any, SimpleNamespace(add=None, given_up=None)),
        groups=cast(
            Any,
            SimpleNamespace(
                catch_up=None, catch_up_for_certain=None, coordinator=None, offsets=None
            ),
        ),
        membership=cast(Any, SimpleNamespace(me=SimpleNamespace(node_id=0))),
        watchers=nothing,
        supervisor=nothing,
        health=nothing,
        end=EpochEnd(1),
        now_ms=lambda: 0,
        new_uuid=uuid4,
    )
    return dict(make_dispatcher(parts).apis)


def messages() -> list[tuple[str, int]]:
    return [
        (api_key_map[api.key], version)
        for api in offered().values()
        for version in range(api.min_version, api.max_version + 1)
        if api.key not in OWN_CODEC
    ]


def body_of(request: bytes, flexible: bool) -> int:
    (length,) = struct.unpack_from(">h", request, 8)
    return 10 + max(int(length), 0) + flexible


@pytest.mark.parametrize(("name", "version"), messages())
def test_requests_are_read_as_kio_reads_them(name: str, version: int) -> None:
    (request,) = Corpus({name: (version, version)}, "topic").requests
    key = API_KEYS[name]
    at = body_of(request, is_flexible(key, version))
    expected, size = entity_reader(load_request_schema(key, version))(request, at)
    assert at + size == len(request)
    assert read_message(key, version, memoryview(request), at) == expected


@pytest.mark.parametrize(("name", "version"), messages())
def test_no_cut_request_is_read(name: str, version: int) -> None:
    (request,) = Corpus({name: (version, version)}, "topic").requests
    key = API_KEYS[name]
    at = body_of(request, is_flexible(key, version))
    for end in range(at, len(request)):
        with pytest.raises(MalformedRequestError):
            read_message(key, version, memoryview(request)[:end], at)


def test_nothing_but_malformed_comes_of_mutated_requests() -> None:
    corpus = Corpus({name: (version, version) for name, version in messages()}, "topic")
    corpus.requests += [
        request
        for name, version in messages()
        for request in Corpus({name: (version, version)}, "topic").requests
    ]
    known = set(messages())
    read = refused = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for frame in frames(corpus, 20_000, seed=11):
        payload = frame.data[4:]
        if len(payload) < 10:
            continue
        key, version = struct.unpack_from(">hh", payload)
        if (api_key_map.get(key, ""), version) not in known:
            continue
        at = body_of(payload, is_flexible(key, version))
        try:
            read_message(key, version, memoryview(payload), min(at, len(payload)))
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
        read_message(API_KEYS["metadata"], 1, memoryview(body), 0)


def test_all_items_of_a_request_are_counted_together() -> None:
    topic = {"name": "t", "partition_indexes": (1, 2, 3)}
    schema = request_schema("offset_fetch", 5)
    body = encode_entity(build(schema, {"group_id": "g", "topics": [topic, topic]}))

    def read(items_max: int) -> Any:
        key, frame = API_KEYS["offset_fetch"], memoryview(body)
        return message_reader.read_message(key, 5, frame, 0, items_max=items_max)

    assert len(read(8).topics) == 2
    with pytest.raises(MalformedRequestError, match="request_items_max"):
        read(7)


def test_null_where_it_may_not_be_is_refused() -> None:
    with pytest.raises(MalformedRequestError, match="null"):
        read_message(API_KEYS["metadata"], 0, memoryview(struct.pack(">i", -1)), 0)
    assert (
        read_message(API_KEYS["metadata"], 1, memoryview(struct.pack(">i", -1)), 0).topics is None
    )


def test_unknown_tagged_fields_are_skipped() -> None:
    schema = request_schema("metadata", 9)
    values = {
        "topics": [{"name": "t"}],
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": False,
    }
    body = encode_entity(build(schema, values))
    assert body.endswith(b"\0")
    tagged = body[:-1] + b"\x02" + b"\x63\x03abc" + b"\x64\x00"
    message = read_message(API_KEYS["metadata"], 9, memoryview(tagged), 0)
    assert message == build(schema, values)
    with pytest.raises(MalformedRequestError):
        read_message(API_KEYS["metadata"], 9, memoryview(tagged[:-3]), 0)


def test_milliseconds_and_ids() -> None:
    schema = request_schema("delete_topics", 6)
    topic_id = UUID(int=77)
    topics = [{"name": None, "topic_id": topic_id}, {"name": "t", "topic_id": None}]
    body = encode_entity(build(schema, {"topics": topics, "timeout": 12_345}))
    message = read_message(API_KEYS["delete_topics"], 6, memoryview(body), 0)
    assert message.timeout == timedelta(milliseconds=12_345)
    assert [(topic.name, topic.topic_id) for topic in message.topics] == [
        (None, topic_id),
        ("t", None),
    ]


@pytest.mark.parametrize(
    ("sent_ms", "read_ms"),
    [(0, 0), (-1, -1), (86_400_000, 86_400_000), (2**63 - 1, LONGEST_MS), (-(2**63), -LONGEST_MS)],
)
def test_a_time_of_64_bits_is_as_long_as_can_be(sent_ms: int, read_ms: int) -> None:
    body = struct.pack(">h1sih1sqi", 1, b"g", 5, 1, b"m", sent_ms, 0)
    message = read_message(API_KEYS["offset_commit"], 2, memoryview(body), 0)
    assert message.retention_time == timedelta(milliseconds=read_ms)


def test_bytes_may_not_be_null() -> None:
    head = b"\0\1g" + struct.pack(">i", 10_000) + b"\0\0" + b"\0\1c"
    protocol = struct.pack(">ih5s", 1, 5, b"range")
    good = head + protocol + struct.pack(">i2s", 2, b"ok")
    message = read_message(API_KEYS["join_group"], 0, memoryview(good), 0)
    assert message.protocols[0].metadata == b"ok"
    null = head + protocol + struct.pack(">i", -1)
    with pytest.raises(MalformedRequestError, match="null"):
        read_message(API_KEYS["join_group"], 0, memoryview(null), 0)


LIST_OFFSETS: Values = {
    "topics": [
        {
            "name": "t",
            "partitions": [
                {
                    "partition_index": 3,
                    "error_code": ErrorCode.none,
                    "timestamp": -1,
                    "offset": 2**40,
                    "leader_epoch": 0,
                }
            ],
        }
    ]
}


@pytest.mark.parametrize("version", range(1, 9))
def test_answers(version: int) -> None:
    name, key = "list_offsets", API_KEYS["list_offsets"]
    body = write_message(key, version, LIST_OFFSETS)
    header = b"\0\0\0\x07" + (b"\0" if is_flexible(key, version) else b"")
    _, response = decode_response(name, version, header + body)
    row = response.topics[0].partitions[0]
    assert (row.partition_index, row.offset) == (3, 2**40)


def test_a_version_leaves_out_what_it_lacks_and_fills_in_what_nobody_gave() -> None:
    old = write_message(API_KEYS["metadata"], 0, METADATA)
    _, response = decode_response("metadata", 0, b"\0\0\0\x07" + old)
    assert [topic.name for topic in response.topics] == ["t"]
    new = write_message(API_KEYS["metadata"], 12, METADATA)
    _, response = decode_response("metadata", 12, b"\0\0\0\x07\0" + new)
    assert response.cluster_id == "c"
    assert response.throttle_time == timedelta(0)
    assert response.topics[0].topic_id == UUID(int=5)


METADATA: Values = {
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
    "no such field": 1,
}
