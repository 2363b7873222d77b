"""Requests that depend on the answers before them: members of groups, producers, fetch sessions.

A script yields `Step`s and receives the decoded answers, or None if an answer did not come in time.
Some values of steps are hostile. Pure.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from tests.fuzz.requests import Frame, is_unicode, make_frame
from tests.fuzz.shapes import Shape, request_shape
from tests.fuzz.tree_changes import with_hostile_values
from tests.fuzz.values import World, plausible_tree
from tests.models.produced_batches import batch, record

HOSTILE_STEPS = 0.15
ASSIGNMENT = b"\0\0\0\0\0\1\0\6fuzz-0\0\0\0\1\0\0\0\0\xff\xff\xff\xff"


class Step(NamedTuple):
    """A request with the given values; others are plausible. `versions` limits its versions."""

    key: ApiKey
    values: Mapping[str, Any]
    first: int = 0
    last: int = 99


Script = Generator[Step, Any, None]


def frame_of(number: int, random: Random, world: World, step: Step) -> Frame:
    served = SERVED_VERSIONS[step.key]
    version = random.choice(
        [version for version in served.each() if step.first <= version <= step.last]
    )
    shape = request_shape(step.key, version)
    tree = _with(random, world, shape, step.values)
    if random.random() < HOSTILE_STEPS:
        tree = with_hostile_values(random, world, shape, tree)
        sound = is_unicode(shape, tree)
        return make_frame(number, "hostile sequence", step.key, version, tree, well_formed=sound)
    return make_frame(number, "sequence", step.key, version, tree)


def _with(random: Random, world: World, shape: Shape, values: Mapping[str, Any]) -> dict[str, Any]:
    """A plausible tree with these values, if the version has their fields."""
    tree = plausible_tree(random, world, shape)
    for field in shape.fields:
        if field.name not in values or field.name not in tree:
            continue
        value = values[field.name]
        if field.shape is not None and isinstance(value, list):
            value = [_with(random, world, field.shape, item) for item in value]
        tree[field.name] = value
    return tree


def _group_life(random: Random, world: World) -> Script:
    """A member joins, leads, commits and leaves."""
    group = random.choice(world.groups)
    session = {"session_timeout": 200, "rebalance_timeout": random.choice((50, 200))}
    join: dict[str, Any] = {
        "group_id": group,
        "protocol_type": "consumer",
        "group_instance_id": None,
        **session,
    }
    join["protocols"] = [{"name": "range", "metadata": b"\0" * 8}]
    yield Step(ApiKey.FIND_COORDINATOR, {"key": group, "key_type": 0, "coordinator_keys": [group]})
    answer = yield Step(ApiKey.JOIN_GROUP, {**join, "member_id": ""})
    if answer is not None and answer.error_code.name == "member_id_required":
        answer = yield Step(ApiKey.JOIN_GROUP, {**join, "member_id": answer.member_id}, 4)
    if answer is None or answer.error_code:
        return
    member = {"group_id": group, "member_id": answer.member_id, "group_instance_id": None}
    member["generation_id"] = answer.generation_id
    member["generation_id_or_member_epoch"] = answer.generation_id
    rows = [{"member_id": row.member_id, "assignment": ASSIGNMENT} for row in answer.members]
    leads = answer.leader == answer.member_id
    protocol = {"protocol_type": "consumer", "protocol_name": "range"}
    yield Step(ApiKey.SYNC_GROUP, {**member, **protocol, "assignments": rows if leads else []})
    for _ in range(random.choice((1, 3))):
        yield Step(ApiKey.HEARTBEAT, member)
        yield Step(ApiKey.OFFSET_COMMIT, member)
    yield Step(ApiKey.OFFSET_FETCH, {"group_id": group}, 1, 7)
    yield Step(ApiKey.DESCRIBE_GROUPS, {"groups": [group]})
    leaving = {"member_id": answer.member_id, "group_instance_id": None, "reason": None}
    yield Step(ApiKey.LEAVE_GROUP, {**member, "members": [leaving]})


def _produce(topic: str, partition: int, records: bytes) -> Step:
    data = [{"index": partition, "records": records}]
    values = {"acks": -1, "transactional_id": None, "timeout": 20_000}
    return Step(
        ApiKey.PRODUCE, {**values, "topic_data": [{"name": topic, "partition_data": data}]}, 0, 12
    )


def _idempotent_producer(random: Random, world: World) -> Script:
    """A producer with sequences in order, repeated, with a gap, and of another epoch."""
    fresh = {"transactional_id": None, "producer_id": -1, "producer_epoch": -1}
    answer = yield Step(ApiKey.INIT_PRODUCER_ID, fresh)
    if answer is None or answer.error_code:
        return
    topic, partition = random.choice(list(world.topics)), random.choice((0, 1))
    epoch = answer.producer_epoch
    for sequence in (0, 0, 1, random.choice((2, 5, -1, 2**31 - 1)), 2):
        producer = (answer.producer_id, epoch, sequence)
        yield _produce(topic, partition, batch(record(0), 1, producer=producer))
    producer = (answer.producer_id, epoch + random.choice((1, -1, 100)), random.choice((0, 3)))
    yield _produce(topic, partition, batch(record(0), 1, producer=producer))
    again = {"producer_id": answer.producer_id, "producer_epoch": epoch}
    yield Step(ApiKey.INIT_PRODUCER_ID, {"transactional_id": None, **again}, 3)


def _topic_life(random: Random, world: World) -> Script:
    """A topic is created, extended, filled, read, emptied and deleted."""
    name = f"sometimes-{random.randrange(6)}"
    wanted = {"name": name, "num_partitions": 2, "replication_factor": 1}
    wanted |= {"assignments": [], "configs": []}
    yield Step(ApiKey.CREATE_TOPICS, {"topics": [wanted], "timeout": 5000, "validate_only": False})
    yield Step(ApiKey.METADATA, {"topics": [{"name": name, "topic_id": None}]}, 4)
    yield _produce(name, 0, batch(record(0), 1))
    yield Step(ApiKey.LIST_OFFSETS, {"topics": [_listed(name)]})
    yield Step(ApiKey.FETCH, {"topics": [_fetched(name)], "session_id": 0}, 0, 12)
    emptied = [{"partition_index": 0, "offset": random.choice((-1, 0, 1, 2**40))}]
    yield Step(ApiKey.DELETE_RECORDS, {"topics": [{"name": name, "partitions": emptied}]})
    grown = {"name": name, "count": random.choice((2, 3, 5)), "assignments": None}
    yield Step(ApiKey.CREATE_PARTITIONS, {"topics": [grown]})
    if random.random() < 0.7:
        yield Step(ApiKey.DELETE_TOPICS, {"topic_names": [name]}, 1, 5)
    yield Step(ApiKey.FETCH, {"topics": [_fetched(name)]}, 0, 12)


def _listed(name: str) -> dict[str, Any]:
    row = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    return {"name": name, "partitions": [row]}


def _fetched(name: str) -> dict[str, Any]:
    row = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "last_fetched_epoch": -1}
    row |= {"log_start_offset": -1, "partition_max_bytes": 1 << 20}
    return {"topic": name, "partitions": [row]}


def _fetch_session(random: Random, world: World) -> Script:
    """A fetch session begins, continues, forgets partitions and ends; some ids are wrong."""
    topic = random.choice(list(world.topics))
    answer = yield Step(
        ApiKey.FETCH,
        {"session_id": 0, "session_epoch": 0, "topics": [_fetched(topic)], "max_wait": 0},
        7,
        12,
    )
    if answer is None:
        return
    for epoch in (1, 2, random.choice((3, 9, 2**31 - 1)), -1):
        session = {"session_id": answer.session_id, "session_epoch": epoch, "max_wait": 0}
        forgotten = [{"topic": topic, "partitions": [0]}] if random.random() < 0.3 else []
        yield Step(
            ApiKey.FETCH, {**session, "topics": [], "forgotten_topics_data": forgotten}, 7, 12
        )


SCRIPTS: Sequence[Callable[[Random, World], Script]] = (
    _group_life,
    _idempotent_producer,
    _topic_life,
    _fetch_session,
)
