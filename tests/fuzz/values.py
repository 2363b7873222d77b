"""Values for the fields of requests: plausible ones, and hostile ones of the field's type. Pure.

Names come from small pools. So requests use each other's topics, groups and members, and a run of
any length leaves few of them behind.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.compression import compress
from tests.fuzz.shapes import LIMITS, Field, Raw, Shape, encode_value, length_of_array, uvarint
from tests.models.produced_batches import batch, mutated, sound

FEW = (0, 1, 1, 1, 2, 3)
"""Lengths of plausible arrays."""
STRANGE_TEXTS: tuple[str | bytes, ...] = (
    *("", ".", "..", "a" * 249, "a" * 250, "a" * 1025, "a" * 32_767, "a" * 40_000, "\0"),
    *("with space", "tab\t"),
    *("__consumer_offsets", "ünïcödé", "日本", "\U0001f4a9" * 20, "\u202eabc", "e\u0301", "A"),
    *("-1", "2147483648", "9" * 400, "../../etc", "a/b", "{tag}", "'; --", "%s%n", "NaN"),
    *(b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
)
"""The last ones are not UTF-8."""
CONFIG_NAMES = (
    *("cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes", "segment.bytes"),
    *("message.timestamp.type", "min.cleanable.dirty.ratio", "record.validation", "no.such.config"),
    *("message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "delete.retention.ms"),
)
CONFIG_VALUES = (
    *("compact", "delete", "compact,delete", "-1", "0", "1", "1000", "604800000", "0.5", "header"),
    *("CreateTime", "LogAppendTime", "", "full", str(2**63 - 1), str(2**63), "1e999", "9" * 5000),
    "compact," * 6000 + "compact",
    "0" * 30_000 + "x",
)
NOTHING = Field("", "string", False, True, None, None)


@dataclass(frozen=True, slots=True)
class World:
    """The names and ids that a run's requests use. `topics` exist at the start, with these ids."""

    topics: Mapping[str, uuid.UUID]
    groups: Sequence[str] = tuple(f"group-{number}" for number in range(12))
    members: Sequence[str] = ("", "member-0", "member-1")
    transactional_ids: Sequence[str] = tuple(f"transaction-{number}" for number in range(6))
    producer_ids: int = 2000

    @property
    def names(self) -> list[str]:
        return [*self.topics, *(f"sometimes-{number}" for number in range(6)), "absent"]


def _topic(random: Random, world: World) -> Any:
    return random.choice(world.names)


def _group(random: Random, world: World) -> Any:
    return random.choice(world.groups)


def _member(random: Random, world: World) -> Any:
    return random.choice(world.members)


def _topic_id(random: Random, world: World) -> Any:
    if random.random() < 0.1:
        return None
    return random.choice([*world.topics.values(), uuid.UUID(int=1)])


def _producer_id(random: Random, world: World) -> Any:
    return random.choice((-1, random.randrange(world.producer_ids)))


def batch_of(random: Random, producer_ids: int) -> bytes:
    """A batch that brokers mostly accept; some batches are of idempotent producers."""
    codec = random.choice((0, 0, 0, 1, 2, 3, 4))
    count = random.choice((1, 1, 3, 20))
    payload = compress(codec, sound(random, codec, count)[0])
    producer = (-1, -1, -1)
    if random.random() < 0.3:
        sequence = random.choice((0, 0, 1, 5))
        producer = random.randrange(producer_ids), random.choice((0, 0, 1)), sequence
    return batch(payload, count, attributes=codec, producer=producer)


def records_of(random: Random, world: World) -> Any:
    choice = random.random()
    if choice < 0.6:
        return batch_of(random, world.producer_ids)
    if choice < 0.9:
        return mutated(random, random.choice(list(Codec)))
    if choice < 0.95:
        return b"".join(batch_of(random, world.producer_ids) for _ in range(2))
    return random.choice((None, b"", b"\0" * 61, random.randbytes(100)))


Choice = Callable[[Random, World], Any]


def _one_of(*values: Any) -> Choice:
    return lambda random, world: random.choice(values)


BY_NAME: Mapping[str, Choice] = {
    **dict.fromkeys(("topic", "topic_names"), _topic),
    **dict.fromkeys(("group_id", "groups", "groups_names"), _group),
    **dict.fromkeys(("key", "coordinator_keys"), _group),
    **dict.fromkeys(("member_id", "group_instance_id"), _member),
    **dict.fromkeys(("partition", "partition_index", "index"), _one_of(0, 0, 1, 2, 3, 9)),
    **dict.fromkeys(("partition_indexes", "partitions", "broker_ids"), _one_of(0, 1, 2, 3)),
    **dict.fromkeys(("generation_id", "generation_id_or_member_epoch"), _one_of(-1, 0, 1, 2, 3)),
    **dict.fromkeys(("fetch_offset", "offset", "committed_offset"), _one_of(0, 0, 1, 5, -1, 1000)),
    **dict.fromkeys(("max_bytes", "partition_max_bytes"), _one_of(0, 1, 1000, 1 << 20, 2**31 - 1)),
    **dict.fromkeys(("session_timeout", "rebalance_timeout"), _one_of(100, 1000, 6000)),
    **dict.fromkeys(("current_leader_epoch", "last_fetched_epoch"), _one_of(-1, -1, 0, 1)),
    **dict.fromkeys(("topic_id", "replica_directory_id"), _topic_id),
    "acks": _one_of(-1, -1, -1, 1, 0),
    "assignment": _one_of(b"", b"\0" * 20),
    "committed_metadata": _one_of("", "meta", None),
    "config_operation": _one_of(0, 1, 2, 3),
    "configuration_keys": _one_of(*CONFIG_NAMES),
    "count": _one_of(1, 2, 5, 8),
    "isolation_level": _one_of(0, 1),
    "key_type": _one_of(0, 0, 1, 2),
    "max_wait": _one_of(0, 0, 5, 100),
    "metadata": _one_of(b"", b"\0\1\0\0\0\1\0\6fuzz-0\xff\xff\xff\xff"),
    "min_bytes": _one_of(0, 1, 100),
    "num_partitions": _one_of(-1, 1, 2, 5),
    "producer_epoch": _one_of(-1, 0, 1),
    "producer_id": _producer_id,
    "protocol_name": _one_of("range", "sticky", None),
    "protocol_type": _one_of("consumer", "consumer", "connect", None),
    "records": records_of,
    "replication_factor": _one_of(-1, 1, 3),
    "resource_type": _one_of(2, 2, 2, 4, 8, 0),
    "retention_time": _one_of(-1, 1000, 2**62),
    "session_epoch": _one_of(-1, 0, 1),
    "session_id": _one_of(0, 0, 1),
    "states_filter": _one_of("Stable", "Empty", "stable", "NoSuchState"),
    "timeout": _one_of(0, 100, 20_000),
    "timestamp": _one_of(-1, -2, -3, -4, -5, -6, 0, 1_700_000_000_000),
    "transaction_timeout": _one_of(1, 50, 60_000, -1),
    "transactional_id": _one_of(None, None, None, "transaction-0", "transaction-1"),
    "v3_and_below_producer_epoch": _one_of(-1, 0, 1),
    "v3_and_below_producer_id": _producer_id,
    "v3_and_below_transactional_id": _one_of("transaction-0", "transaction-1"),
    "types_filter": _one_of("consumer", "classic", ""),
    "value": _one_of(*CONFIG_VALUES),
}
BY_SHAPE: Mapping[tuple[str, str], Choice] = {
    ("name", "JoinGroupRequestProtocol"): _one_of("range", "range", "sticky"),
    **dict.fromkeys(
        (
            ("name", "AlterableConfig"),
            ("name", "CreatableTopicConfig"),
            ("name", "CreateableTopicConfig"),
        ),
        _one_of(*CONFIG_NAMES),
    ),
}
"""Values of fields called a name that do not name a topic."""


def plausible_tree(random: Random, world: World, shape: Shape) -> dict[str, Any]:
    """A request that a real client could send."""
    return {
        field.name: plausible(random, world, shape, field)
        for field in shape.fields
        if field.tag is None or random.random() < 0.3
    }


def plausible(random: Random, world: World, shape: Shape, field: Field) -> Any:
    if field.is_array:
        if field.nullable and random.random() < 0.2:
            return None
        return [_item(random, world, shape, field) for _ in range(random.choice(FEW))]
    return _item(random, world, shape, field)


def _item(random: Random, world: World, shape: Shape, field: Field) -> Any:
    if field.shape is not None:
        if field.nullable and not field.is_array and random.random() < 0.2:
            return None
        return plausible_tree(random, world, field.shape)
    choose = BY_SHAPE.get((field.name, shape.name)) or BY_NAME.get(field.name)
    if choose is None and field.name in {"name", "resource_name"}:
        choose = _topic
    value = choose(random, world) if choose else _plain(random, field.kind)
    return "" if value is None and not _takes_null(field) else value


def _takes_null(field: Field) -> bool:
    return field.nullable or field.kind in {"uuid", "records"}


def _plain(random: Random, kind: str) -> Any:
    if kind == "string":
        return random.choice(("", "fuzz", "1"))
    if kind == "bytes":
        return b""
    if kind == "bool":
        return random.random() < 0.5
    if kind == "uuid":
        return uuid.UUID(int=random.choice((0, 1)))
    return random.choice((-1, 0, 1))


def hostile(random: Random, world: World, field: Field) -> Any:
    """A value that the field's type allows: the request stays well-formed, unless a text is not
    UTF-8 or too long for its length."""
    if field.is_array:
        return [] if not field.nullable or random.random() < 0.7 else None
    if field.nullable and random.random() < 0.2:
        return None
    kind = field.kind
    if field.shape is not None:
        return plausible_tree(random, world, field.shape)
    if kind == "bool":
        return random.random() < 0.5
    if kind in LIMITS:
        limit = LIMITS[kind]
        near = random.choice((0, limit - 1, -limit, limit // 2, 127, 128, 10_000, -1, -2, 1 << 24))
        return max(-limit, min(limit - 1, near + random.choice((0, 0, 1, -1))))
    if kind == "string":
        return random.choice(STRANGE_TEXTS)
    if kind == "uuid":
        return uuid.UUID(int=random.choice((0, 1, 2**128 - 1, random.getrandbits(128))))
    if kind == "records":
        return records_of(random, world)
    return random.choice((b"", b"\0", random.randbytes(2000), b"\xff" * 64))


def misfit(random: Random, field: Field, value: Any, flexible: bool) -> Raw:
    """Bytes that are wrong for the field: a wrong length, a forbidden null, a cut value."""
    wrong = random.choice((-1, -2, 2**31 - 1, -(2**31), 2**24, 100_001, 65_535, 1000, 3))
    if field.is_array or field.kind in {"bytes", "records"}:
        head = length_of_array(wrong, flexible)
    elif field.kind == "string":
        head = uvarint(wrong + 1) if flexible else (wrong % 65_536).to_bytes(2, "big")
    else:
        return Raw(random.choice((b"", b"\xff" * 11, random.randbytes(3))))
    if field.is_array or value is None or isinstance(value, Raw):
        return Raw(head)
    body = encode_value(NOTHING, value, False)[2:]
    return Raw(head + body[: random.choice((0, 1, 1000))])
