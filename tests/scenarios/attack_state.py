"""Requests that leave something behind in Valkey: rows of `tests.scenarios.attack`."""

import itertools
import socket
from typing import Any

from kio.schema.errors import ErrorCode
from redis import Redis as SyncRedis

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.produced_batches import batch, record
from tests.rigs.patience import Deadline
from tests.rigs.wire_client import WireClient, build_batch
from tests.scenarios.attack import BYSTANDER, MIB, Arena, Row, decoded, request, topic_with
from tests.scenarios.attack_requests import in_a_loop, produce_frame
from tests.servers.own_valkey import SOCKET

PRODUCER_IDS = 720_000
PARTITIONS = 1000
COMMITS = 57
METADATA_CHARS = 4000
WIDE_PARTITIONS = 10_000
WIDE_GROUPS = 50
THROTTLED = ErrorCode.throttling_quota_exceeded
RECOVERED_S = 10.0
FULL_BYTES = 16 * MIB
_numbers = itertools.count(1_000_000_000)


def redis_of(arena: Arena) -> "SyncRedis":
    return SyncRedis(unix_socket_path=str(arena.cluster.folder / SOCKET))


def used_mib(arena: Arena) -> float:
    with redis_of(arena) as redis:
        info: Any = redis.info("memory")
    return round(float(info["used_memory"]) / MIB, 1)


def _invented(number: int) -> list[tuple[str, int, bytes | None]]:
    return [
        ("wide", partition, batch(record(0, None, b""), 1, producer=(number + partition, 0, 0)))
        for partition in range(PARTITIONS)
    ]


def _wide_topic(arena: Arena) -> None:
    topic_with(arena, "wide", PARTITIONS)


def _invent_producers(arena: Arena, _: Any) -> None:
    before_mib = used_mib(arena)
    there = arena.connect()
    for _ in range(PRODUCER_IDS // PARTITIONS):
        answer = arena.ask(there, produce_frame(_invented(next(_numbers) * PARTITIONS)))
        if answer is None:
            arena.note("closed")
            there = arena.connect()
            continue
        (topic,) = decoded(ApiKey.PRODUCE, 9, answer).responses
        refused = sum(1 for row in topic.partition_responses if row.error_code)
        arena.note("accepted", PARTITIONS - refused)
        arena.note("refused", refused)
    arena.notes["valkey_grown_mib"] = round(used_mib(arena) - before_mib, 1)


def commit_frame(group: str, offset: int) -> bytes:
    """A commit of almost 4 MiB without a member, to be kept almost for ever."""
    rows = [
        {
            "partition_index": number,
            "committed_offset": offset,
            "committed_metadata": "m" * METADATA_CHARS,
        }
        for number in range(PARTITIONS)
    ]
    values: dict[str, Any] = {"group_id": group, "generation_id_or_member_epoch": -1}
    values |= {"member_id": "", "retention_time": 2**62}
    topics = [{"name": "wide", "partitions": rows}]
    return request(ApiKey.OFFSET_COMMIT, 2, **values, topics=topics)


def _commit_for_ever(arena: Arena, _: Any) -> None:
    before_mib = used_mib(arena)
    there = arena.connect()
    for number in range(COMMITS):
        answer = arena.ask(there, commit_frame(f"nobody-{number}", number))
        if answer is None:
            arena.note("closed")
            there = arena.connect()
        else:
            arena.note("answers")
    arena.notes["valkey_grown_mib"] = round(used_mib(arena) - before_mib, 1)


def _fill_valkey(arena: Arena, _: Any) -> None:
    """Commit until Valkey is full, and continue. Then an operator gives Valkey more memory."""
    with redis_of(arena) as redis:
        info: Any = redis.info("memory")
        redis.config_set("maxmemory", info["used_memory"] + FULL_BYTES)
    try:
        there = arena.connect()
        deadline = Deadline(bound_s=3 * arena.attack_s)
        number = 0
        while not deadline.is_over:
            number += 1
            answer = arena.ask(there, commit_frame(f"full-{number}", number))
            if answer is None:
                there = arena.connect()
                continue
            (topic,) = decoded(ApiKey.OFFSET_COMMIT, 2, answer).topics
            arena.note("refused" if topic.partitions[0].error_code else "accepted")
        assert arena.notes.get("refused"), "Valkey did not become full"
    finally:
        arena.leave()
        with redis_of(arena) as redis:
            redis.config_set("maxmemory", 0)
    _await_recovery(arena)


def _await_recovery(arena: Arena) -> None:
    deadline = Deadline(f"no produce within {RECOVERED_S:.0f} s after Valkey was full", RECOVERED_S)
    data = [{"index": 0, "records": build_batch([(b"key", b"value")])}]
    topics = [{"name": BYSTANDER, "partition_data": data}]
    for broker in arena.cluster.brokers:
        while True:
            with WireClient(broker.bootstrap) as client:
                answer = client.call(ApiKey.PRODUCE, 9, acks=-1, timeout=2_000, topic_data=topics)
            if not answer.responses[0].partition_responses[0].error_code:
                break
            deadline.pause()
    arena.notes["recovered_s"] = round(RECOVERED_S - deadline.left_s, 2)


def _commit_of_all(group: str) -> bytes:
    rows = [
        {"partition_index": number, "committed_offset": 0, "committed_metadata": ""}
        for number in range(WIDE_PARTITIONS)
    ]
    values: dict[str, Any] = {"group_id": group, "generation_id_or_member_epoch": -1}
    values |= {"member_id": "", "retention_time": -1}
    topics = [{"name": "committed", "partitions": rows}]
    return request(ApiKey.OFFSET_COMMIT, 2, **values, topics=topics)


def _many_offsets(arena: Arena) -> None:
    """500,000 committed offsets. Each group has its coordinator among the two brokers."""
    topic_with(arena, "committed", WIDE_PARTITIONS)
    brokers = [arena.connect(number) for number in range(2)]
    for number in range(WIDE_GROUPS):
        frame = _commit_of_all(f"wide-{number}")
        assert 0 in {_first_error(arena, there, frame) for there in brokers}


def _first_error(arena: Arena, there: socket.socket, frame: bytes) -> int:
    answer = arena.ask(there, frame)
    assert answer is not None
    (topic,) = decoded(ApiKey.OFFSET_COMMIT, 2, answer).topics
    return int(topic.partitions[0].error_code)


def valkey_cpu_s(arena: Arena) -> float:
    with redis_of(arena) as redis:
        info: Any = redis.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def _topics_in_turn(arena: Arena, _: Any) -> None:
    """Create and delete a topic of 10,000 partitions, without waiting if the quota refuses."""
    began_s = valkey_cpu_s(arena)
    there, deadline = arena.connect(), Deadline(bound_s=arena.attack_s)
    new: dict[str, Any] = {
        "name": "brief",
        "num_partitions": WIDE_PARTITIONS,
        "replication_factor": 1,
    }
    new |= {"assignments": [], "configs": []}
    create = request(ApiKey.CREATE_TOPICS, 6, topics=[new], timeout=30_000, validate_only=False)
    delete = request(ApiKey.DELETE_TOPICS, 5, topic_names=["brief"], timeout=30_000)
    while not deadline.is_over:
        answer = arena.ask(there, create)
        assert answer is not None
        arena.note(
            _outcome(decoded(ApiKey.CREATE_TOPICS, 6, answer).topics[0].error_code, "created")
        )
        answer = arena.ask(there, delete)
        assert answer is not None
        (row,) = decoded(ApiKey.DELETE_TOPICS, 5, answer).responses
        arena.note(_outcome(row.error_code, "deleted"))
    arena.notes["valkey_cpu_s"] = round(valkey_cpu_s(arena) - began_s, 2)


def _outcome(code: int, done: str) -> str:
    return done if not code else "throttled" if code == THROTTLED else "refused"


def _ids(arena: Arena) -> bytes:
    return request(ApiKey.INIT_PRODUCER_ID, 1, transactional_id=None, transaction_timeout=60_000)


STATE_ROWS = (
    Row("init-producer-id-flood", in_a_loop, _ids),
    Row(
        "offset-commits-for-ever",
        _commit_for_ever,
        _wide_topic,
        memory_mib_max=500,
        leaves_state=True,
    ),
    Row(
        "720000-invented-producer-ids",
        _invent_producers,
        _wide_topic,
        memory_mib_max=500,
        leaves_state=True,
    ),
    Row("topics-of-10000-partitions-in-turn-beside-500000-offsets", _topics_in_turn, _many_offsets),
    Row("full-valkey", _fill_valkey, _wide_topic, refuses_produce=True, leaves_state=True),
)
