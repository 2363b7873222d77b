"""Requests that depend on the answers before them: group members, producers, fetch sessions.

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
TRANSACTIONAL = 0x10
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


def _produce(
    topic: str,
    partition: int,
    records: bytes,
    transactional_id: str | None = None,
    versions: tuple[int, int] = (0, 12),
) -> Step:
    data = [{"index": partition, "records": records}]
    values = {"acks": -1, "transactional_id": transactional_id, "timeout": 20_000}
    topics = [{"name": topic, "partition_data": data}]
    return Step(ApiKey.PRODUCE, {**values, "topic_data": topics}, *versions)


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


def _transactional_producer(random: Random, world: World) -> Script:
    """Transactions with old pairs, repeated ends and mixed versions. Other clients often use the
    same id."""
    each = random.choice(world.transactional_ids)
    started = {"transactional_id": each, "transaction_timeout": random.choice((100, 60_000))}
    pair = {"producer_id": -1, "producer_epoch": -1}
    for _ in range(random.choice((1, 2, 3))):
        answer = yield Step(ApiKey.INIT_PRODUCER_ID, {**started, **pair})
        if answer is None or answer.error_code:
            return
        pair = {"producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}
        yield from _transaction(random, world, each, pair)
        committed = random.random() < 0.5
        for again in (False, random.random() < 0.3):
            owner = {"transactional_id": each, **(_wrong(random, pair) if again else pair)}
            end = {**owner, "committed": committed != (again and random.random() < 0.5)}
            yield Step(ApiKey.END_TXN, end, *random.choice(((0, 4), (5, 5))))
        pair = random.choice((pair, _wrong(random, pair)))


def _wrong(random: Random, pair: Mapping[str, int]) -> dict[str, int]:
    """A wrong pair, mostly with an earlier or later epoch."""
    name = random.choice(("producer_epoch", "producer_epoch", "producer_id"))
    return {**pair, name: max(0, pair[name] + random.choice((-1, 0, 1, 100)))}


def _transaction(random: Random, world: World, each: str, pair: Mapping[str, int]) -> Script:
    topic, partition = random.choice(list(world.topics)), random.choice((0, 1))
    owner = {"transactional_id": each, **pair}
    added = {f"v3_and_below_{name}": value for name, value in owner.items()}
    topics = [{"name": topic, "partitions": [partition] * random.choice((1, 1, 3))}]
    added |= {"v3_and_below_topics": topics}
    many = [{**owner, "verify_only": random.random() < 0.5, "topics": topics}]
    yield Step(ApiKey.ADD_PARTITIONS_TO_TXN, {**added, "transactions": many})
    for sequence in (0, 0, 1, random.choice((2, 5))):
        used = _wrong(random, pair) if random.random() < 0.2 else pair
        numbers = used["producer_id"], min(used["producer_epoch"], 2**15 - 1), sequence
        flags = random.choice((TRANSACTIONAL,) * 9 + (0,))
        records = batch(record(0), 1, attributes=flags, producer=numbers)
        yield _produce(topic, partition, records, each, random.choice(((3, 11), (12, 12))))
    group = {**owner, "group_id": random.choice(world.groups)}
    yield Step(ApiKey.ADD_OFFSETS_TO_TXN, group)
    rows = [{"partition_index": partition, "committed_offset": random.choice((0, 7, -1))}] * 2
    offsets = {"member_id": "", "generation_id": -1, "group_instance_id": None}
    offsets |= {"topics": [{"name": topic, "partitions": rows}]}
    yield Step(ApiKey.TXN_OFFSET_COMMIT, {**group, **offsets})
    stable = {"group_id": group["group_id"], "require_stable": True, "topics": None}
    yield Step(ApiKey.OFFSET_FETCH, stable, 7, 7)
    yield Step(ApiKey.FETCH, {"topics": [_fetched(topic)], "isolation_level": 1}, 4, 12)
    strange = random.random()
    if strange < 0.1:
        yield Step(ApiKey.DELETE_GROUPS, {"groups_names": [group["group_id"]]})
    elif strange < 0.2:
        yield Step(ApiKey.DELETE_RECORDS, {"topics": [{"name": topic, "partitions": []}]})


def _topic_life(random: Random, world: World) -> Script:
    """A topic is created, extended, filled, read, emptied and deleted, in a transaction, too."""
    name = f"sometimes-{random.randrange(6)}"
    wanted = {"name": name, "num_partitions": 2, "replication_factor": 1}
    wanted |= {"assignments": [], "configs": []}
    yield Step(ApiKey.CREATE_TOPICS, {"topics": [wanted], "timeout": 5000, "validate_only": False})
    yield Step(ApiKey.METADATA, {"topics": [{"name": name, "topic_id": None}]}, 4)
    yield _produce(name, 0, batch(record(0), 1))
    each = random.choice(world.transactional_ids)
    started = {"transactional_id": each, "transaction_timeout": 60_000}
    fresh = {"producer_id": -1, "producer_epoch": -1}
    answer = yield Step(ApiKey.INIT_PRODUCER_ID, {**started, **fresh})
    owner: dict[str, Any] = {"transactional_id": each, **fresh}
    if answer is not None:
        owner = {
            **owner,
            "producer_id": answer.producer_id,
            "producer_epoch": answer.producer_epoch,
        }
    numbers = owner["producer_id"], owner["producer_epoch"], 0
    records = batch(record(0), 1, attributes=TRANSACTIONAL, producer=numbers)
    yield _produce(name, 1, records, each, (12, 12))
    yield Step(ApiKey.LIST_OFFSETS, {"topics": [_listed(name)]})
    yield Step(ApiKey.FETCH, {"topics": [_fetched(name)], "session_id": 0}, 0, 12)
    emptied = [{"partition_index": 0, "offset": random.choice((-1, 0, 1, 2**40))}]
    yield Step(ApiKey.DELETE_RECORDS, {"topics": [{"name": name, "partitions": emptied}]})
    grown = {"name": name, "count": random.choice((2, 3, 5)), "assignments": None}
    yield Step(ApiKey.CREATE_PARTITIONS, {"topics": [grown]})
    if random.random() < 0.7:
        yield Step(ApiKey.DELETE_TOPICS, {"topic_names": [name]}, 1, 5)
    yield Step(ApiKey.END_TXN, {**owner, "committed": random.random() < 0.5}, 5)
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
    _transactional_producer,
    _topic_life,
    _fetch_session,
)
