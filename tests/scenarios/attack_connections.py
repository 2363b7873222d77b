"""Connections that hold memory, and floods of connections: rows of `tests.scenarios.attack`."""

import socket
import struct
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.produced_batches import batch, record
from tests.rigs.patience import Deadline, eventually, let_pass
from tests.scenarios.attack import (
    MIB,
    SOURCES,
    Arena,
    Row,
    at_once,
    read_answer,
    request,
    topic_with,
)
from tests.scenarios.attack_requests import produce_frame

FRAME_BYTES = 100 * MIB
PROBE = request(ApiKey.API_VERSIONS, 0)
TIERED = {
    "compaction_check_interval_ms": "200",
    "compaction_interval_ms": "500",
    "compaction_age_ms_min": "0",
    "cache_recent_bytes_max": "1000000",
}
"""Records become partition segments at once, and fetches read them from the bucket."""
TIERED_BATCHES = 96


def _announce(arena: Arena, _: Any) -> None:
    for _ in range(12):
        arena.send(arena.connect(), struct.pack(">ihh", FRAME_BYTES, ApiKey.PRODUCE, 9))
    let_pass(arena.attack_s)


def _fifty_thousand(arena: Arena) -> bytes:
    for number in range(10):
        topic_with(arena, f"wide-{number}", 4_999)
    return request(ApiKey.METADATA, 4, topics=None, allow_auto_topic_creation=False)


def _unread_metadata(arena: Arena, frame: bytes) -> None:
    for number in range(20):
        arena.send(arena.connect(source=SOURCES[number % 4]), frame * 5)
    let_pass(arena.attack_s)


def _filled_tier(arena: Arena) -> bytes:
    topic_with(arena, "tiered", 4)
    there = arena.connect()
    big = batch(record(0, b"key", bytes(1_000_000)), 1)
    for number in range(TIERED_BATCHES):
        assert arena.ask(there, produce_frame([("tiered", number % 4, big)]))
    eventually(
        lambda: _split_segments(arena) >= TIERED_BATCHES // 2, "nothing is compacted into a tier"
    )
    return fetch_frame("tiered", 4)


def _split_segments(arena: Arena) -> float:
    return sum(
        broker.running.metrics()["bucketlog_split_segments_total"]
        for broker in arena.cluster.brokers
    )


def fetch_frame(topic: str, partitions: int, *, partition_bytes: int = 50 * MIB) -> bytes:
    part = {"current_leader_epoch": -1, "fetch_offset": 0, "log_start_offset": -1}
    rows = [
        {"partition": number, **part, "partition_max_bytes": partition_bytes}
        for number in range(partitions)
    ]
    values: dict[str, Any] = {"replica_id": -1, "max_wait": 1000, "min_bytes": 1}
    values |= {"max_bytes": 50 * MIB, "isolation_level": 0, "session_id": 0, "session_epoch": -1}
    topics = [{"topic": topic, "partitions": rows}]
    return request(ApiKey.FETCH, 11, **values, topics=topics, forgotten_topics_data=[], rack_id="")


def _unread_fetches(count: int) -> Any:
    def attack(arena: Arena, frame: bytes) -> None:
        for number in range(count):
            arena.send(arena.connect(source=SOURCES[number % 4]), frame)
        let_pass(arena.attack_s)

    return attack


def _slow_readers(arena: Arena, frame: bytes) -> None:
    """Each client reads 1 KB now and then: clients that make progress are not closed."""
    readers = [arena.connect(source=SOURCES[number % 4]) for number in range(100)]
    for there in readers:
        arena.send(there, frame)
    deadline = Deadline(bound_s=2 * arena.attack_s)
    while not deadline.is_over:
        for there in readers:
            there.settimeout(0.001)
            try:
                arena.note("read_bytes", len(there.recv(1024)))
            except OSError:
                continue
        let_pass(0.1)


def _three_bytes(arena: Arena, _: Any) -> None:
    opened = 0
    for number in range(10_000):
        try:
            there = arena.connect(source=SOURCES[number % len(SOURCES)])
        except OSError:
            arena.note("not_opened")
            continue
        opened += arena.send(there, b"\0\0\0")
    arena.note("opened", opened)
    let_pass(arena.attack_s)


def _slow_loris(arena: Arena, _: Any) -> None:
    """Send the header of a request, byte by byte."""
    there = [arena.connect(source=SOURCES[number % 4]) for number in range(500)]
    for at in range(len(PROBE) - 1):
        for one in there:
            arena.send(one, PROBE[at : at + 1])
        let_pass(arena.attack_s / len(PROBE))


def _churn(arena: Arena, _: Any) -> None:
    deadline = Deadline(bound_s=arena.attack_s)
    while not deadline.is_over:
        try:
            with socket.create_connection(
                arena.address(), timeout=1, source_address=(SOURCES[0], 0)
            ) as there:
                arena.send(there, PROBE[:3])
        except OSError:
            arena.note("not_opened")
        arena.note("opened")


def _pipelined(arena: Arena, _: Any) -> None:
    """Send a thousand requests at once on one connection, again and again."""
    there = arena.connect()
    deadline = Deadline(bound_s=arena.attack_s)
    while not deadline.is_over and arena.send(there, PROBE * 1000):
        for _ in range(1000):
            if read_answer(there) is None:
                return
            arena.note("answers")


def _never_read(arena: Arena, _: Any) -> None:
    """The same, without reading any answer."""
    there = arena.connect()
    there.settimeout(arena.attack_s)
    deadline = Deadline(bound_s=arena.attack_s)
    while not deadline.is_over and arena.send(there, PROBE * 1000):
        arena.note("sent", 1000)
    let_pass(deadline.left_s)


def _joins(arena: Arena, _: Any) -> None:
    """Add members to ever new groups, without reading the answers."""

    def one(source: str) -> None:
        there = arena.connect(source=source)
        deadline = Deadline(bound_s=arena.attack_s)
        number = 0
        values: dict[str, Any] = {"session_timeout": 30_000, "rebalance_timeout": 60_000}
        protocols = [{"name": "range", "metadata": bytes(1000)}]
        while not deadline.is_over:
            frames = b""
            for _ in range(20):
                number += 1
                frames += request(
                    ApiKey.JOIN_GROUP,
                    3,
                    group_id=f"{source}-{number}",
                    **values,
                    member_id="",
                    protocol_type="consumer",
                    protocols=protocols,
                )
            if not arena.send(there, frames):
                there = arena.connect(source=source)
            arena.note("joins", 20)
            let_pass(0.02)

    at_once([lambda: one(SOURCES[0]), lambda: one(SOURCES[1])])


CONNECTION_ROWS = (
    Row("12-announced-frames", _announce, memory_mib_max=30),
    Row("metadata-of-50000-partitions-unread", _unread_metadata, _fifty_thousand),
    Row(
        "100-unread-fetches-of-a-tier",
        _unread_fetches(100),
        _filled_tier,
        memory_mib_max=600,
        settings=TIERED,
    ),
    Row(
        "400-unread-fetches-of-a-tier",
        _unread_fetches(400),
        _filled_tier,
        memory_mib_max=600,
        settings=TIERED,
    ),
    Row("slow-readers", _slow_readers, _filled_tier, memory_mib_max=600, settings=TIERED),
    Row("10000-connections-of-3-bytes", _three_bytes),
    Row("slow-loris", _slow_loris, memory_mib_max=50),
    Row("connection-churn", _churn, memory_mib_max=50),
    Row("pipelined-api-versions", _pipelined, memory_mib_max=50),
    Row("unread-api-versions", _never_read, memory_mib_max=100),
    Row("join-group-flood", _joins),
)
