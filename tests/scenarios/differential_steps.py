"""Random sequences of requests for two brokers, from a seed. Pure.

Invariant: names begin with `@`, which each run replaces, so that sequences do not meet.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.scenarios import differential_transactions as transactions
from tests.scenarios.differential_members import JOINED_GROUPS, Members
from tests.scenarios.differential_model import LOGGED_IN, Batch, Step, TopicId
from tests.scenarios.differential_rights import (
    create_acls,
    delete_acls,
    deleted_acls,
    describe_acls,
)

TOPICS, GROUPS = ("@t0", "@t1", "@bad name"), ("@g0", "@g1")
CREATED_TOPICS = ("@t0", "@t1", "@.")
CONFIGS = (
    ("retention.ms", "604800000"),
    ("retention.ms", "x"),
    ("retention.ms", "-2"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "delete,compact"),
    ("cleanup.policy", "never"),
    ("max.message.bytes", "100"),
    ("max.message.bytes", "-1"),
    ("compression.type", "lz4"),
    ("message.timestamp.type", "CreateTime"),
    ("no.such.config", "1"),
    ("segment.bytes", "1"),
)
DESCRIBED = ("retention.ms", "cleanup.policy", "max.message.bytes", "message.timestamp.type", "no")
STEPS_MAX = 12


def sequence(seed: int) -> list[Step]:
    """At least one topic is created first, so that most steps find something. Many sequences are
    about one subject besides: members, ACLs, or transactions."""
    random = Random(seed)
    steps = [_create(random, topic="@t0", partitions=random.choice((1, 2)))]
    members = Members(random)
    kinds = random.choice((_KINDS, _KINDS, None, _RIGHTS, _TRANSACTIONS, _IDS))
    if kinds is _RIGHTS:
        steps.append(create_acls(random))
    for _ in range(random.randint(3, STEPS_MAX)):
        if kinds is None and random.random() < 0.8:
            steps += members.steps()
            continue
        own = kinds is not None and random.random() < 0.6
        step = random.choice(kinds if own and kinds is not None else _KINDS)(random)
        is_logged_in = kinds is _RIGHTS and not _is_shared(step) and random.random() < 0.5
        steps.append(step._replace(by=LOGGED_IN) if is_logged_in else step)
    return [*steps, *members.end()]


def _is_shared(step: Step) -> bool:
    """Whoever may write to any topic, of whatever sequence, gets a producer id."""
    return step.api is ApiKey.INIT_PRODUCER_ID and step.values["transactional_id"] is None


def first_steps(steps: Mapping[str, Step]) -> Step:
    """One request for the first steps of sequences, by their prefixes."""
    rows = [
        row | {"name": row["name"].replace("@", prefix)}
        for prefix, step in steps.items()
        for row in step.values["topics"]
    ]
    first = next(iter(steps.values()))
    return Step(first.api, first.version, {**first.values, "topics": rows})


def leftovers(prefixes: Sequence[str]) -> Iterator[Step]:
    """Requests that delete what the sequences with these prefixes have created."""
    topics = [f"{prefix}{name[1:]}" for prefix in prefixes for name in CREATED_TOPICS]
    yield Step(ApiKey.DELETE_TOPICS, 4, {"topic_names": topics, "timeout": 30_000})
    names = (*GROUPS, *JOINED_GROUPS)
    groups = [f"{prefix}{name[1:]}" for prefix in prefixes for name in names]
    yield Step(ApiKey.DELETE_GROUPS, 2, {"groups_names": groups})
    yield deleted_acls(prefixes)


def _topic(random: Random) -> str:
    return random.choice(("@t0", "@t0", "@t0", *TOPICS))


def _partition(random: Random) -> int:
    return random.choice((0, 0, 0, 1, 2, -1))


def _create(random: Random, topic: str = "", partitions: int | None = None) -> Step:
    counts = (1, 2, 3, 0, -1, -2)
    row = {
        "name": topic or random.choice((*TOPICS, "", "@" + "l" * 260, "@.")),
        "num_partitions": random.choice(counts) if partitions is None else partitions,
        "replication_factor": 1 if partitions else random.choice((1, 1, -1, 0, 3)),
        "assignments": [],
        "configs": [],
    }
    if not partitions and random.random() < 0.4:
        name, value = random.choice(CONFIGS)
        row["configs"] = [{"name": name, "value": value}]
    rows = [row] * (2 if not partitions and random.random() < 0.05 else 1)
    values = {"topics": rows, "timeout": 30_000, "validate_only": False}
    if not partitions:
        values["validate_only"] = random.random() < 0.2
    return Step(ApiKey.CREATE_TOPICS, random.randint(4, 7), values)


def _delete(random: Random) -> Step:
    names = [random.choice(("@t1", "@t1", "@t0", "@missing", ""))]
    version = random.randint(1, 5)
    return Step(ApiKey.DELETE_TOPICS, version, {"topic_names": names, "timeout": 30_000})


def _grow(random: Random) -> Step:
    row = {"name": _topic(random), "count": random.choice((1, 2, 3, 4, 0, -1)), "assignments": None}
    values = {"topics": [row], "timeout": 30_000, "validate_only": random.random() < 0.3}
    return Step(ApiKey.CREATE_PARTITIONS, random.randint(0, 3), values)


def _metadata(random: Random) -> Step:
    version = random.randint(4, 9)
    values: dict[str, Any] = {"topics": [{"name": _topic(random)}]}
    values["allow_auto_topic_creation"] = False
    if version >= 8:
        values["include_topic_authorized_operations"] = False
    if version >= 8:
        values["include_cluster_authorized_operations"] = False
    return Step(ApiKey.METADATA, version, values)


def _produce(random: Random) -> Step:
    texts = tuple(f"v{random.randint(0, 9)}" * random.choice((1, 1, 40)) for _ in range(3))
    batch = Batch(texts[: random.randint(1, 3)], random.random() < 0.7)
    rows = [{"index": _partition(random), "records": batch}]
    values = {
        "transactional_id": None,
        "acks": random.choice((-1, -1, 1, 2)),
        "timeout": 30_000,
        "topic_data": [{"name": _topic(random), "partition_data": rows}],
    }
    return Step(ApiKey.PRODUCE, random.randint(3, 11), values)


def _fetch(random: Random) -> Step:
    row = {
        "partition": _partition(random),
        "fetch_offset": random.choice((0, 0, 0, 1, 2, 99, -1)),
        "partition_max_bytes": 1 << 20,
    }
    values = {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
        "isolation_level": random.choice((0, 0, 1)),
        "session_id": 0,
        "session_epoch": -1,
        "rack_id": "",
        "topics": [{"topic": _topic(random), "partitions": [row]}],
    }
    return Step(ApiKey.FETCH, 11, values)


def _list_offsets(random: Random) -> Step:
    times = (-1, -1, -2, -3, 0, 1_700_000_000_001, 1_900_000_000_000, -9)
    row = {
        "partition_index": _partition(random),
        "current_leader_epoch": -1,
        "timestamp": random.choice(times),
    }
    values = {
        "replica_id": -1,
        "isolation_level": random.choice((0, 1)),
        "topics": [{"name": _topic(random), "partitions": [row]}],
    }
    return Step(ApiKey.LIST_OFFSETS, 7, values)


def _delete_records(random: Random) -> Step:
    row = {"partition_index": _partition(random), "offset": random.choice((0, 1, 2, -1, 99, -5))}
    values = {"topics": [{"name": _topic(random), "partitions": [row]}], "timeout": 30_000}
    return Step(ApiKey.DELETE_RECORDS, random.randint(0, 2), values)


def _commit(random: Random) -> Step:
    """The group "" never gets offsets: all sequences would share them."""
    generation = random.choice((-1, -1, -1, 3))
    row = {
        "partition_index": _partition(random),
        "committed_offset": random.choice((0, 1, 5, -1)),
        "committed_leader_epoch": -1,
        "committed_metadata": random.choice(("", "m", None, "x" * 5_000)),
    }
    values = {
        "group_id": random.choice((*GROUPS, "")) if generation > 0 else random.choice(GROUPS),
        "generation_id_or_member_epoch": generation,
        "member_id": random.choice(("", "", "", "nobody")),
        "group_instance_id": None,
        "topics": [{"name": _topic(random), "partitions": [row]}],
    }
    return Step(ApiKey.OFFSET_COMMIT, random.choice((7, 8, 9)), values)


def _offsets(random: Random) -> Step:
    rows = [{"name": _topic(random), "partition_indexes": [0, _partition(random)]}]
    values: dict[str, Any] = {"group_id": random.choice((*GROUPS, "@missing"))}
    values["topics"] = random.choice((rows, rows, None))
    return Step(ApiKey.OFFSET_FETCH, random.choice((5, 5, 6)), values)


def _forget_offsets(random: Random) -> Step:
    rows = [{"name": _topic(random), "partitions": [{"partition_index": _partition(random)}]}]
    values = {"group_id": random.choice((*GROUPS, "@missing", "")), "topics": rows}
    return Step(ApiKey.OFFSET_DELETE, 0, values)


def _describe_groups(random: Random) -> Step:
    values = {
        "groups": [random.choice((*GROUPS, "@missing", ""))],
        "include_authorized_operations": False,
    }
    return Step(ApiKey.DESCRIBE_GROUPS, random.choice((3, 4, 5, 6)), values)


def _delete_groups(random: Random) -> Step:
    names = [random.choice((*GROUPS, "@missing", ""))]
    return Step(ApiKey.DELETE_GROUPS, random.randint(0, 2), {"groups_names": names})


def _heartbeat(random: Random) -> Step:
    values = {
        "group_id": random.choice((*GROUPS, "@missing", "")),
        "generation_id": random.choice((0, 1, -1)),
        "member_id": random.choice(("", "nobody")),
        "group_instance_id": random.choice((None, None, "i")),
    }
    return Step(ApiKey.HEARTBEAT, random.choice((3, 4)), values)


def _join(random: Random) -> Step:
    """Of a member that cannot join: the answer comes at once."""
    protocols = [{"name": "range", "metadata": b"\0\1"}]
    values = {
        "group_id": random.choice((*GROUPS, "@missing", "")),
        "session_timeout": random.choice((10_000, 10_000, 1, 10_000_000)),
        "rebalance_timeout": 10_000,
        "member_id": "nobody",
        "group_instance_id": None,
        "protocol_type": random.choice(("consumer", "consumer", "")),
        "protocols": protocols,
    }
    return Step(ApiKey.JOIN_GROUP, random.choice((5, 6, 7)), values)


def _leave(random: Random) -> Step:
    member = {"member_id": random.choice(("", "nobody")), "group_instance_id": None}
    values = {"group_id": random.choice((*GROUPS, "@missing", "")), "members": [member]}
    return Step(ApiKey.LEAVE_GROUP, random.choice((3, 4)), values)


def _describe_configs(random: Random) -> Step:
    keys = list(DESCRIBED)
    row = {"resource_type": 2, "resource_name": _topic(random), "configuration_keys": keys}
    values = {"resources": [row], "include_synonyms": False, "include_documentation": False}
    return Step(ApiKey.DESCRIBE_CONFIGS, 3, values)


def _alter_configs(random: Random) -> Step:
    name, value = random.choice(CONFIGS)
    change = {
        "name": name,
        "config_operation": random.choice((0, 0, 0, 1, 2, 3)),
        "value": random.choice((value, value, None)),
    }
    row = {"resource_type": 2, "resource_name": _topic(random), "configs": [change]}
    values = {"resources": [row], "validate_only": random.random() < 0.3}
    return Step(ApiKey.INCREMENTAL_ALTER_CONFIGS, random.randint(0, 1), values)


def _added_partitions(random: Random) -> Step:
    return transactions.add_partitions(random, _topic(random), _partition(random))


def _described_producers(random: Random) -> Step:
    return transactions.describe_producers(random, _topic(random), _partition(random))


def _id(random: Random) -> TopicId:
    return TopicId(random.choice(("@t0", "@t0", "@t0", "@t1", "@missing")))


def _metadata_by_id(random: Random) -> Step:
    values = {
        "topics": [{"topic_id": _id(random), "name": None}],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }
    return Step(ApiKey.METADATA, random.choice((12, 13)), values)


def _fetch_by_id(random: Random) -> Step:
    step = _fetch(random)
    (topic,) = step.values["topics"]
    rows = [{"topic_id": _id(random), "partitions": topic["partitions"]}]
    version = random.randint(13, 18)
    values = {name: value for name, value in step.values.items() if name != "replica_id"}
    if version < 15:
        values["replica_id"] = -1
    return Step(ApiKey.FETCH, version, values | {"topics": rows})


def _produce_by_id(random: Random) -> Step:
    values = dict(_produce(random).values)
    (topic,) = values["topic_data"]
    rows = [{"topic_id": _id(random), "partition_data": topic["partition_data"]}]
    return Step(ApiKey.PRODUCE, 13, values | {"topic_data": rows})


def _delete_by_id(random: Random) -> Step:
    row = {"name": None, "topic_id": _id(random)}
    return Step(ApiKey.DELETE_TOPICS, 6, {"topics": [row], "timeout": 30_000})


def _commit_by_id(random: Random) -> Step:
    values = dict(_commit(random).values)
    (topic,) = values["topics"]
    rows = [{"topic_id": _id(random), "partitions": topic["partitions"]}]
    return Step(ApiKey.OFFSET_COMMIT, 10, values | {"topics": rows})


def _offsets_by_id(random: Random) -> Step:
    rows = [{"topic_id": _id(random), "partition_indexes": [0]}]
    group = {
        "group_id": random.choice(GROUPS),
        "member_id": None,
        "member_epoch": -1,
        "topics": random.choice((rows, rows, None)),
    }
    values = {"groups": [group], "require_stable": random.random() < 0.5}
    return Step(ApiKey.OFFSET_FETCH, 10, values)


_KINDS: tuple[Callable[[Random], Step], ...] = (
    *(_create, _delete, _grow, _metadata, _produce, _produce, _produce, _fetch, _fetch),
    *(_list_offsets, _list_offsets, _delete_records, _commit, _commit, _offsets, _offsets),
    *(_forget_offsets, _describe_groups, _delete_groups, _heartbeat, _join, _leave),
    *(_describe_configs, _alter_configs, _alter_configs, transactions.init, _added_partitions),
    *(transactions.produce, transactions.end),
)
_IDS = (
    *(_metadata_by_id, _fetch_by_id, _fetch_by_id, _produce_by_id, _produce_by_id),
    *(_delete_by_id, _commit_by_id, _commit_by_id, _offsets_by_id, _offsets_by_id, _create),
)
_TRANSACTIONS = (
    *(transactions.init, transactions.init, transactions.produce, transactions.produce),
    *(transactions.produce_idempotently, _added_partitions, _added_partitions, transactions.end),
    *(transactions.end, transactions.add_offsets, transactions.commit_offsets, _fetch),
    *(transactions.describe_transactions, transactions.list_transactions, _described_producers),
    *(_list_offsets, _offsets),
)
_RIGHTS = (
    *(create_acls, create_acls, create_acls, describe_acls, delete_acls, _produce, _fetch),
    *(_metadata, _commit, _offsets, _describe_configs, transactions.init, _list_offsets),
)
