"""Requests that cause much work: rows of `tests.scenarios.attack`."""

import itertools
from functools import partial
from typing import Any

import bucketlog
from bucketlog.log_format.batch import Codec
from bucketlog.log_format.compression import compress
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.fuzz.byte_changes import framed
from tests.fuzz.shapes import Raw, encode_request, uvarint
from tests.models.produced_batches import NOW_MS, batch, record
from tests.rigs.patience import Deadline, let_pass
from tests.rigs.wire_client import WireClient, fetch_values
from tests.scenarios.attack import MIB, Arena, Row, at_once, decoded, request, topic_with

PRODUCE_HEADER_BYTES = 8 + 2 + 4
LARGEST_TIMESTAMP_MS = 2**63 - 1


PACE_S = 0.5
_numbers = itertools.count()
TIMED_PARTITIONS, TIMED_RECORDS = 32, 49_000


def paced(arena: Arena, frame: bytes) -> None:
    """Send the request twice a second."""
    there = arena.connect()
    deadline = Deadline(bound_s=arena.attack_s)
    while not deadline.is_over:
        if arena.ask(there, frame) is None:
            arena.note("closed")
            there = arena.connect()
        else:
            arena.note("answers")
        let_pass(min(PACE_S, deadline.left_s))


def in_a_loop(arena: Arena, frame: bytes) -> None:
    """Send the request as often as the broker answers."""
    arena.repeat(frame)


def _repeated_topic(arena: Arena) -> bytes:
    topic_with(arena, "wide", 1000)
    topics = [{"name": "wide"}] * 20_000
    return request(ApiKey.METADATA, 4, topics=topics, allow_auto_topic_creation=False)


def _repeated_resource(arena: Arena) -> bytes:
    topic_with(arena, "t", 1)
    resource = {"resource_type": 2, "resource_name": "t", "configuration_keys": None}
    resources = [resource] * 40_000
    return request(ApiKey.DESCRIBE_CONFIGS, 1, resources=resources, include_synonyms=True)


def _many_names(arena: Arena) -> bytes:
    for number in range(500):
        topic_with(arena, f"there.{number}", 1)
    wanted = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    topics = [{"name": f"new.{number}", **wanted} for number in range(10_000)]
    return request(ApiKey.CREATE_TOPICS, 4, topics=topics, timeout=20_000, validate_only=True)


def _long_config_value(arena: Arena) -> bytes:
    topic_with(arena, "t", 1)
    config = {"name": "min.cleanable.dirty.ratio", "value": "0" * (3 * MIB) + "x"}
    resource = {"resource_type": 2, "resource_name": "t", "configs": [config]}
    return request(ApiKey.ALTER_CONFIGS, 2, resources=[resource], validate_only=False)


def _many_groups(arena: Arena) -> bytes:
    groups = [f"group-{number}" for number in range(50_000)]
    return request(ApiKey.DESCRIBE_GROUPS, 4, groups=groups, include_authorized_operations=False)


def produce_frame(rows: list[tuple[str, int, bytes | None]], *, version: int = 9) -> bytes:
    """A Produce of (topic, partition, records); rows of one topic must be together."""
    topics = [
        {
            "name": name,
            "partition_data": [
                {"index": number, "records": records} for _, number, records in parts
            ],
        }
        for name, parts in itertools.groupby(rows, key=lambda row: row[0])
    ]
    values: dict[str, Any] = {"transactional_id": None, "acks": -1, "timeout": 20_000}
    return request(ApiKey.PRODUCE, version, **values, topic_data=topics)


def _one_partition(arena: Arena) -> bytes:
    topic_with(arena, "t", 1)
    return produce_frame([("t", 0, batch(record(0), 1))] * 99_000)


def _unknown_partitions(arena: Arena) -> bytes:
    """Each error quotes the topic's name."""
    return produce_frame([("u" * 200, number, None) for number in range(99_000)])


def _bombs(arena: Arena) -> list[bytes]:
    topic_with(arena, "compacted", 25, **{"cleanup.policy": "compact"})
    payload = compress(Codec.ZSTD, record(0, b"key", bytes(127 * 1_000_000)))
    bomb = batch(payload, 1, attributes=Codec.ZSTD)
    return [produce_frame([("compacted", number, bomb)]) for number in range(25)]


def _send_bombs(arena: Arena, frames: list[bytes]) -> None:
    def one(frame: bytes) -> None:
        answer = arena.ask(arena.connect(), frame)
        assert answer is not None
        (topic,) = decoded(ApiKey.PRODUCE, 9, answer).responses
        assert topic.partition_responses[0].error_code, "a bomb was accepted"
        arena.note("refused")

    at_once([partial(one, frame) for frame in frames])


def _tagged_fields(arena: Arena) -> bytes:
    head = encode_request(ApiKey.PRODUCE, 9, 1, Raw(b""), None)[:-1]
    return framed(head + uvarint(20_000_000) + b"\x7f\0" * 20_000_000)


def _send_once(arena: Arena, frame: bytes) -> None:
    arena.note("closed" if arena.ask(arena.connect(), frame) is None else "answers")


def _unreadable(arena: Arena) -> list[bytes]:
    topic_with(arena, "damaged", 1)
    garbage = batch(b"\xde\xad\xbe\xef" * 2, 1, attributes=Codec.ZSTD)
    bad = [garbage, batch(b"\xff" * 8, 1)]
    return [produce_frame([("damaged", 0, records)]) for records in (*bad, batch(record(0), 1))]


def _send_unreadable(arena: Arena, frames: list[bytes]) -> None:
    for frame, is_bad in zip(frames, (True, True, False), strict=True):
        answer = arena.ask(arena.connect(), frame)
        assert answer is not None
        code = decoded(ApiKey.PRODUCE, 9, answer).responses[0].partition_responses[0].error_code
        assert bool(code) == is_bad, code


def _read_on(arena: Arena) -> None:
    """A consumer and replay read the good record of each try, and nothing else."""
    found = sum(1 for _ in bucketlog.replay(arena.cluster.bucket_url, "damaged"))
    with WireClient(arena.cluster.brokers[0].bootstrap) as client:
        answer = client.call(ApiKey.FETCH, 11, **fetch_values("damaged", {0: 0}))
    (row,) = answer.responses[0].partitions
    assert not row.error_code, row.error_code
    assert found == row.high_watermark, (found, row.high_watermark)


def _latest_timestamp(arena: Arena) -> list[bytes]:
    topic_with(arena, "damaged", 1, **{"message.timestamp.after.max.ms": str(2**63 - 1)})
    late = batch(
        record(0),
        1,
        base_timestamp=LARGEST_TIMESTAMP_MS,
        max_timestamp=LARGEST_TIMESTAMP_MS,
    )
    return [produce_frame([("damaged", 0, records)]) for records in (late, batch(record(0), 1))]


def _send_timestamp(arena: Arena, frames: list[bytes]) -> None:
    for frame in frames:
        answer = arena.ask(arena.connect(), frame)
        assert answer is not None
        row = decoded(ApiKey.PRODUCE, 9, answer).responses[0].partition_responses[0]
        arena.note("refused" if row.error_code else "accepted")


def _fetch_of_many(arena: Arena) -> bytes:
    """Fetches once first: the state that brokers keep of each partition then does not count."""
    topic_with(arena, "wide", 10_000)
    assert arena.ask(arena.connect(), _wide_fetch(max_wait_ms=0)) is not None
    return _wide_fetch(max_wait_ms=60_000)


def _wide_fetch(*, max_wait_ms: int) -> bytes:
    part = {"current_leader_epoch": -1, "fetch_offset": 0, "log_start_offset": -1}
    rows = [{"partition": number, **part, "partition_max_bytes": 1} for number in range(10_000)]
    values: dict[str, Any] = {"replica_id": -1, "max_wait": max_wait_ms, "min_bytes": 1}
    values |= {"max_bytes": MIB, "isolation_level": 0, "session_id": 0, "session_epoch": -1}
    topics = [{"topic": "wide", "partitions": rows}]
    return request(ApiKey.FETCH, 11, **values, topics=topics, forgotten_topics_data=[], rack_id="")


def _wait_for_many(arena: Arena, frame: bytes) -> None:
    for _ in range(20):
        arena.send(arena.connect(), frame)
    let_pass(arena.attack_s)


def _times_of_large_batches(arena: Arena) -> bytes:
    """Each partition has one small batch of 49,000 records, and the last record is looked up."""
    topic_with(arena, "timed", TIMED_PARTITIONS)
    late = record(TIMED_RECORDS - 1, timestamp_delta=1)
    body = b"".join(map(record, range(TIMED_RECORDS - 1))) + late
    large = batch(compress(Codec.ZSTD, body), TIMED_RECORDS, attributes=Codec.ZSTD)
    where: list[tuple[str, int, bytes | None]] = [
        ("timed", number, large) for number in range(TIMED_PARTITIONS)
    ]
    assert arena.ask(arena.connect(), produce_frame(where)) is not None
    rows = [
        {"partition_index": number, "current_leader_epoch": -1, "timestamp": NOW_MS + 1}
        for number in range(TIMED_PARTITIONS)
    ]
    topics = [{"name": "timed", "partitions": rows}]
    return request(ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics)


def _busy_partitions(arena: Arena) -> None:
    """10,000 partitions with a batch."""
    topic_with(arena, "busy", 10_000)
    one = batch(record(0), 1)
    for start in range(0, 10_000, 1000):
        where: list[tuple[str, int, bytes | None]] = [
            ("busy", number, one) for number in range(start, start + 1000)
        ]
        assert arena.ask(arena.connect(), produce_frame(where)) is not None


def _delete_in_turn(arena: Arena, _: Any) -> None:
    """Delete the records of one partition after another."""
    there, deadline = arena.connect(), Deadline(bound_s=arena.attack_s)
    while not deadline.is_over:
        rows = [{"partition_index": next(_numbers) % 10_000, "offset": 1}]
        topics = [{"name": "busy", "partitions": rows}]
        answer = arena.ask(there, request(ApiKey.DELETE_RECORDS, 1, topics=topics, timeout=30_000))
        assert answer is not None
        (row,) = decoded(ApiKey.DELETE_RECORDS, 1, answer).topics[0].partitions
        assert row.low_watermark == 1, row
        arena.note("answers")


REQUEST_ROWS = (
    Row("metadata-one-topic-20000-times", paced, _repeated_topic),
    Row("describe-configs-one-topic-40000-times", paced, _repeated_resource),
    Row("create-topics-10000-names", paced, _many_names),
    Row("config-value-of-3-mib", paced, _long_config_value),
    Row("describe-groups-50000-names", paced, _many_groups),
    Row("produce-one-partition-99000-times", paced, _one_partition),
    Row("produce-99000-unknown-partitions", paced, _unknown_partitions),
    Row("metadata-one-topic-20000-times-in-a-loop", in_a_loop, _repeated_topic),
    Row("produce-one-partition-99000-times-in-a-loop", in_a_loop, _one_partition),
    Row("list-offsets-of-49000-records-in-a-loop", in_a_loop, _times_of_large_batches),
    Row("delete-records-in-turn", _delete_in_turn, _busy_partitions),
    Row("zstd-bombs", _send_bombs, _bombs),
    Row("produce-header-of-20-million-tags", _send_once, _tagged_fields),
    Row("unreadable-records", _send_unreadable, _unreadable, check=_read_on),
    Row("latest-timestamp", _send_timestamp, _latest_timestamp, check=_read_on),
    Row("fetch-10000-partitions-waiting", _wait_for_many, _fetch_of_many),
)
