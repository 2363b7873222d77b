"""Clients with some rights: what Apache Kafka's KafkaApis and ControllerApis answer.

Two brokers of a cluster: at one, everybody is a super user; at the other, ACLs decide.
"""

import uuid
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.acl_bindings import AclOperation as Op
from bucketlog.metadata.acl_bindings import PatternType, Permission, ResourceType
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient, build_batch, transactional_values
from tests.servers.broker_process import Start

TOPIC, GROUP, ID, CLUSTER = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.CLUSTER,
)
OK = ErrorCode.none
TOPIC_DENIED = ErrorCode.topic_authorization_failed
GROUP_DENIED = ErrorCode.group_authorization_failed
CLUSTER_DENIED = ErrorCode.cluster_authorization_failed
ID_DENIED = ErrorCode.transactional_id_authorization_failed
EVERYTHING = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
NOT_SAID = -(2**31)
Rule = tuple[ResourceType, str, Op]


class TwoBrokers:
    """`client` asks the broker at which ACLs decide."""

    def __init__(self, admin: WireClient, client: WireClient, node_id: int) -> None:
        self.admin, self.client = admin, client
        self.call = client.call
        self._node_id = node_id
        self._markers = count()

    def names(self, kind: int) -> list[str]:
        """Two groups (0) or transactional ids (1) that the broker of `client` coordinates."""
        found: list[str] = []
        for number in count():
            key = f"key-{number}"
            answer = self.admin.call(ApiKey.FIND_COORDINATOR, 3, key=key, key_type=kind)
            if answer.node_id == self._node_id:
                found.append(key)
            if len(found) == 2:
                break
        return found

    def grant(self, *rules: Rule) -> None:
        """From now on, everybody has these rights and no others."""
        self.admin.call(ApiKey.DELETE_ACLS, 3, filters=[EVERYTHING])
        marker = f"marker-{next(self._markers)}"
        creations = [
            {
                "resource_type": kind,
                "resource_name": name,
                "resource_pattern_type": PatternType.LITERAL,
                "principal": "User:ANONYMOUS",
                "host": "127.0.0.1",
                "operation": operation,
                "permission_type": Permission.ALLOW,
            }
            for kind, name, operation in (*rules, (TOPIC, marker, Op.DESCRIBE))
        ]
        created = self.admin.call(ApiKey.CREATE_ACLS, 3, creations=creations)
        assert {each.error_code for each in created.results} == {OK}

        def is_here() -> bool:
            found = self.call(
                ApiKey.METADATA, 7, topics=[{"name": marker}], allow_auto_topic_creation=False
            )
            return bool(found.topics[0].error_code != TOPIC_DENIED)

        eventually(is_here, "the rules do not reach the other broker")


@pytest.fixture
def brokers(start: Start) -> Iterator[TwoBrokers]:
    more = {"transactions": "true", "transaction_two_phase_commit": "true"}
    first = start(authorization="true", super_users="User:ANONYMOUS", **more).wait_until_ready()
    second = start(authorization="true", **more).wait_until_ready()
    with WireClient(first.bootstrap) as admin, WireClient(second.bootstrap) as client:
        create(admin, "t")
        yield TwoBrokers(admin, client, second.ready["node_id"])


def create(client: WireClient, *names: str) -> Any:
    """The rows of the answer."""
    wanted = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    topics = [wanted | {"name": name} for name in names]
    return client.call(
        ApiKey.CREATE_TOPICS, 7, topics=topics, timeout=20_000, validate_only=False
    ).topics


def commit_values(group: str) -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": "t", "partitions": [partition]}],
    }


def code(rows: Any) -> ErrorCode:
    """Of the only partition of the only topic."""
    return ErrorCode(rows[0].partitions[0].error_code)


def test_offsets(brokers: TwoBrokers) -> None:
    group, _ = brokers.names(0)
    read_group, read_topic = (GROUP, group, Op.READ), (TOPIC, "t", Op.READ)

    def commit() -> ErrorCode:
        return code(brokers.call(ApiKey.OFFSET_COMMIT, 7, **commit_values(group)).topics)

    def fetch(topics: Any) -> Any:
        return brokers.call(
            ApiKey.OFFSET_FETCH, 7, group_id=group, topics=topics, require_stable=False
        )

    brokers.grant(read_topic)
    assert commit() is GROUP_DENIED
    brokers.grant(read_group)
    assert commit() is TOPIC_DENIED
    brokers.grant(read_group, read_topic)
    assert commit() is OK
    named = [{"name": "t", "partition_indexes": [0]}]
    assert code(fetch(named).topics) is OK
    assert [each.name for each in fetch(None).topics] == ["t"]
    brokers.grant((GROUP, group, Op.DESCRIBE))
    assert code(fetch(named).topics) is TOPIC_DENIED
    assert fetch(None).topics == ()
    brokers.grant(read_topic)
    assert fetch(named).error_code == GROUP_DENIED

    def delete() -> Any:
        row = {"name": "t", "partitions": [{"partition_index": 0}]}
        return brokers.call(ApiKey.OFFSET_DELETE, 0, group_id=group, topics=[row])

    assert delete().error_code == GROUP_DENIED
    brokers.grant((GROUP, group, Op.DELETE))
    assert code(delete().topics) is TOPIC_DENIED
    brokers.grant((GROUP, group, Op.DELETE), read_topic)
    assert code(delete().topics) is OK


def test_groups(brokers: TwoBrokers) -> None:
    groups = mine, other = brokers.names(0)
    brokers.grant(*((GROUP, group, Op.READ) for group in groups), (TOPIC, "t", Op.READ))
    for group in groups:
        assert code(brokers.call(ApiKey.OFFSET_COMMIT, 7, **commit_values(group)).topics) is OK

    def listed() -> set[str]:
        return {each.group_id for each in brokers.call(ApiKey.LIST_GROUPS, 3).groups}

    def described(name: str) -> tuple[int, int]:
        (found,) = brokers.call(
            ApiKey.DESCRIBE_GROUPS, 5, groups=[name], include_authorized_operations=True
        ).groups
        return found.error_code, found.authorized_operations

    brokers.grant((CLUSTER, "kafka-cluster", Op.DESCRIBE))
    assert listed() == {mine, other}
    brokers.grant((GROUP, mine, Op.READ))
    assert listed() == {mine}
    assert described(other) == (GROUP_DENIED, NOT_SAID)
    assert described(mine) == (OK, 1 << Op.READ | 1 << Op.DESCRIBE)

    def deleted(name: str) -> int:
        (found,) = brokers.call(ApiKey.DELETE_GROUPS, 2, groups_names=[name]).results
        return int(found.error_code)

    assert deleted(mine) == GROUP_DENIED
    brokers.grant((GROUP, mine, Op.DELETE))
    assert (deleted(mine), deleted(other)) == (OK, GROUP_DENIED)


def test_coordinators_and_producer_ids(brokers: TwoBrokers) -> None:
    def found(kind: int) -> int:
        answer = brokers.call(ApiKey.FIND_COORDINATOR, 3, key="x", key_type=kind)
        return int(answer.error_code)

    def init(transactional_id: str | None, *, two_phase: bool = False) -> int:
        answer = brokers.call(
            ApiKey.INIT_PRODUCER_ID,
            6,
            transactional_id=transactional_id,
            transaction_timeout=20_000,
            enable2_pc=two_phase,
            keep_prepared_txn=False,
        )
        return int(answer.error_code)

    brokers.grant((GROUP, "x", Op.DESCRIBE))
    assert (found(0), found(1)) == (OK, ID_DENIED)
    assert (init("x"), init(None)) == (ID_DENIED, CLUSTER_DENIED)
    brokers.grant((ID, "x", Op.DESCRIBE))
    assert (found(0), found(1), init("x")) == (GROUP_DENIED, OK, ID_DENIED)
    brokers.grant((ID, "x", Op.WRITE))
    assert (init("x"), init("y"), init("x", two_phase=True)) == (OK, ID_DENIED, ID_DENIED)
    brokers.grant((ID, "x", Op.WRITE), (ID, "x", Op.TWO_PHASE_COMMIT))
    assert init("x", two_phase=True) == OK
    assert init(None) == CLUSTER_DENIED
    brokers.grant((TOPIC, "any", Op.WRITE))
    assert init(None) == OK
    brokers.grant((CLUSTER, "kafka-cluster", Op.IDEMPOTENT_WRITE))
    assert init(None) == OK


def pair_of(brokers: TwoBrokers, transactional_id: str) -> tuple[int, int]:
    answer = brokers.admin.call(
        ApiKey.INIT_PRODUCER_ID, 4, transactional_id=transactional_id, transaction_timeout=60_000
    )
    assert answer.error_code == OK
    return answer.producer_id, answer.producer_epoch


def test_transactions(brokers: TwoBrokers) -> None:
    create(brokers.admin, "u")
    (group, _), (own, _) = brokers.names(0), brokers.names(1)
    producer_id, epoch = pair_of(brokers, own)
    write_id, write_topic = (ID, own, Op.WRITE), (TOPIC, "t", Op.WRITE)
    pair = {"producer_id": producer_id, "producer_epoch": epoch}

    def add(*names: str) -> dict[str, ErrorCode]:
        answer = brokers.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            3,
            v3_and_below_transactional_id=own,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[{"name": name, "partitions": [0]} for name in names],
        )
        return {
            each.name: ErrorCode(each.results_by_partition[0].partition_error_code)
            for each in answer.results_by_topic_v3_and_below
        }

    def add_offsets() -> int:
        values = pair | {"transactional_id": own, "group_id": group}
        return int(brokers.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, **values).error_code)

    def commit_offsets() -> ErrorCode:
        values = commit_values(group) | pair | {"transactional_id": own, "generation_id": -1}
        values.pop("generation_id_or_member_epoch")
        values |= {"group_instance_id": None}
        return code(brokers.call(ApiKey.TXN_OFFSET_COMMIT, 3, **values).topics)

    def produce() -> int:
        values = transactional_values(own, (producer_id, epoch), "t", 0, b"v")
        answer = brokers.call(ApiKey.PRODUCE, 11, **values)
        return int(answer.responses[0].partition_responses[0].error_code)

    brokers.grant(write_topic)
    assert add("t") == {"t": ID_DENIED}
    assert (add_offsets(), commit_offsets(), produce()) == (ID_DENIED, ID_DENIED, ID_DENIED)
    brokers.grant(write_id, (TOPIC, "u", Op.WRITE))
    assert add("t", "u") == {"t": TOPIC_DENIED, "u": ErrorCode.operation_not_attempted}
    assert (add_offsets(), commit_offsets(), produce()) == (
        GROUP_DENIED,
        GROUP_DENIED,
        TOPIC_DENIED,
    )
    brokers.grant(write_id, (GROUP, group, Op.READ))
    assert commit_offsets() is TOPIC_DENIED
    brokers.grant(write_id, (GROUP, group, Op.READ), (TOPIC, "t", Op.READ))
    assert (add_offsets(), commit_offsets()) == (OK, OK)
    brokers.grant(write_id, write_topic)
    assert add("t") == {"t": OK}
    assert produce() == OK

    def described() -> Any:
        (state,) = brokers.call(
            ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[own]
        ).transaction_states
        return state

    def listed() -> list[str]:
        answer = brokers.call(ApiKey.LIST_TRANSACTIONS, 0)
        return [each.transactional_id for each in answer.transaction_states]

    def end() -> int:
        values = pair | {"transactional_id": own, "committed": False}
        return int(brokers.call(ApiKey.END_TXN, 3, **values).error_code)

    brokers.grant((ID, own, Op.DESCRIBE))
    assert described().transaction_state == "Ongoing"
    assert described().topics == ()
    assert listed() == [own]
    assert end() == ID_DENIED
    brokers.grant((ID, own, Op.DESCRIBE), (TOPIC, "t", Op.DESCRIBE))
    assert [each.topic for each in described().topics] == ["t"]
    brokers.grant((TOPIC, "t", Op.READ))
    assert described().error_code == ID_DENIED
    assert listed() == []
    producers = {"name": "t", "partition_indexes": [0]}
    answer = brokers.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[producers])
    assert code(answer.topics) is OK
    brokers.grant(write_id)
    assert end() == OK


def test_markers_and_requests_of_brokers(brokers: TwoBrokers) -> None:
    marker = {
        "producer_id": 1,
        "producer_epoch": 0,
        "transaction_result": False,
        "topics": [{"name": "t", "partition_indexes": [0]}],
        "coordinator_epoch": 0,
    }

    def write() -> int:
        (found,) = brokers.call(ApiKey.WRITE_TXN_MARKERS, 1, markers=[marker]).markers
        return int(found.topics[0].partitions[0].error_code)

    def add() -> int:
        each = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0}
        row = each | {"verify_only": True, "topics": [{"name": "t", "partitions": [0]}]}
        return int(brokers.call(ApiKey.ADD_PARTITIONS_TO_TXN, 4, transactions=[row]).error_code)

    brokers.grant((CLUSTER, "kafka-cluster", Op.DESCRIBE))
    assert (write(), add()) == (CLUSTER_DENIED, CLUSTER_DENIED)
    brokers.grant((CLUSTER, "kafka-cluster", Op.CLUSTER_ACTION))
    assert (write(), add()) == (ErrorCode.invalid_producer_id_mapping, OK)
    brokers.grant((CLUSTER, "kafka-cluster", Op.ALTER))
    assert (write(), add()) == (ErrorCode.invalid_producer_id_mapping, CLUSTER_DENIED)


def test_configs(brokers: TwoBrokers) -> None:
    kinds = {2: "t", 4: "0", 32: "g"}

    def describe() -> list[int]:
        rows = [
            {"resource_type": kind, "resource_name": name, "configuration_keys": None}
            for kind, name in kinds.items()
        ]
        answer = brokers.call(
            ApiKey.DESCRIBE_CONFIGS,
            4,
            resources=rows,
            include_synonyms=False,
            include_documentation=False,
        )
        return [each.error_code for each in answer.results]

    def alter(key: ApiKey) -> list[int]:
        rows = [
            {"resource_type": kind, "resource_name": name, "configs": []}
            for kind, name in kinds.items()
        ]
        answer = brokers.call(key, 1, resources=rows, validate_only=True)
        return [each.error_code for each in answer.responses]

    denied = [TOPIC_DENIED, CLUSTER_DENIED, GROUP_DENIED]
    unknown = ErrorCode.invalid_request
    alters = (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS)
    cluster = "kafka-cluster"
    brokers.grant()
    assert describe() == denied
    assert [alter(key) for key in alters] == [denied, denied]
    brokers.grant((TOPIC, "t", Op.DESCRIBE_CONFIGS), (CLUSTER, cluster, Op.DESCRIBE_CONFIGS))
    assert describe() == [OK, OK, GROUP_DENIED]
    assert [alter(key) for key in alters] == [denied, denied]
    brokers.grant((TOPIC, "t", Op.ALTER_CONFIGS), (GROUP, "g", Op.ALTER_CONFIGS))
    assert describe() == [OK, CLUSTER_DENIED, unknown]
    assert [alter(key) for key in alters] == [[OK, CLUSTER_DENIED, unknown]] * 2
    brokers.grant((CLUSTER, cluster, Op.ALTER_CONFIGS))
    assert [alter(key) for key in alters] == [[TOPIC_DENIED, unknown, GROUP_DENIED]] * 2


def test_creation_of_topics(brokers: TwoBrokers) -> None:
    brokers.grant((TOPIC, "new-1", Op.CREATE), (TOPIC, "new-2", Op.DESCRIBE_CONFIGS))
    (made, refused) = create(brokers.client, "new-1", "new-2")
    assert (made.error_code, made.topic_config_error_code) == (OK, TOPIC_DENIED)
    assert (made.num_partitions, made.replication_factor, made.configs) == (-1, -1, ())
    assert made.topic_id is not None
    assert (refused.error_code, refused.error_message) == (TOPIC_DENIED, "Authorization failed.")
    assert refused.topic_id is None
    brokers.grant(
        (CLUSTER, "kafka-cluster", Op.CREATE),
        (TOPIC, "new-2", Op.DESCRIBE_CONFIGS),
        (TOPIC, "new-1", Op.ALTER),
    )
    (made,) = create(brokers.client, "new-2")
    assert (made.error_code, made.topic_config_error_code, made.num_partitions) == (OK, 0, 1)
    assert made.configs
    grown = brokers.call(
        ApiKey.CREATE_PARTITIONS,
        3,
        topics=[{"name": name, "count": 2, "assignments": None} for name in ("new-1", "new-2")],
        timeout=20_000,
        validate_only=False,
    )
    assert [each.error_code for each in grown.results] == [OK, TOPIC_DENIED]


def test_deletion_of_topics(brokers: TwoBrokers) -> None:
    rows = create(brokers.admin, "a", "b", "c")
    ids = {row.name: row.topic_id for row in rows}

    def delete(name: str | None = None, topic_id: uuid.UUID | None = None) -> tuple[Any, ...]:
        (row,) = brokers.call(
            ApiKey.DELETE_TOPICS,
            6,
            topics=[{"name": name, "topic_id": topic_id}],
            timeout=20_000,
        ).responses
        return row.error_code, row.name, row.topic_id

    brokers.grant((TOPIC, "b", Op.DESCRIBE))
    assert delete("a") == (TOPIC_DENIED, "a", None)
    assert delete(topic_id=ids["a"]) == (TOPIC_DENIED, None, ids["a"])
    assert delete("b") == (TOPIC_DENIED, "b", None)
    assert delete(topic_id=ids["b"]) == (TOPIC_DENIED, "b", ids["b"])
    assert delete("none") == (TOPIC_DENIED, "none", None)
    brokers.grant((TOPIC, "a", Op.DELETE), (TOPIC, "none", Op.DESCRIBE))
    assert delete("none")[0] == ErrorCode.unknown_topic_or_partition
    assert delete("a")[0] == OK
    brokers.grant((TOPIC, "b", Op.DELETE))
    assert delete(topic_id=ids["b"]) == (OK, "b", ids["b"])
    brokers.grant((CLUSTER, "kafka-cluster", Op.DELETE))
    assert delete("c")[0] == OK
    assert delete("none")[0] == ErrorCode.unknown_topic_or_partition


def test_metadata(brokers: TwoBrokers) -> None:
    create(brokers.admin, "u")

    def shown(version: int, topics: Any, **more: bool) -> Any:
        flags = {
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        }
        return brokers.call(ApiKey.METADATA, version, topics=topics, **flags | more)

    brokers.grant((TOPIC, "t", Op.READ))
    found = shown(8, None)
    assert [each.name for each in found.topics] == ["t"]
    bits = 1 << Op.READ | 1 << Op.DESCRIBE
    assert found.topics[0].topic_authorized_operations == bits
    assert found.cluster_authorized_operations == 0
    off = {"include_topic_authorized_operations": False}
    found = shown(8, None, **off, include_cluster_authorized_operations=False)
    assert found.topics[0].topic_authorized_operations == NOT_SAID
    assert found.cluster_authorized_operations == NOT_SAID
    (denied,) = shown(8, [{"name": "u"}]).topics
    assert (denied.error_code, denied.topic_authorized_operations) == (TOPIC_DENIED, NOT_SAID)

    everything = brokers.admin.call(
        ApiKey.METADATA,
        12,
        topics=None,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )
    ids = {each.name: each.topic_id for each in everything.topics}
    by_id: list[Mapping[str, Any]] = [{"name": None, "topic_id": ids[name]} for name in "tu"]
    flags = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": False}
    (there, hidden) = brokers.call(ApiKey.METADATA, 12, topics=by_id, **flags).topics
    assert (there.error_code, there.name) == (OK, "t")
    assert (hidden.error_code, hidden.name, hidden.topic_id) == (TOPIC_DENIED, None, ids["u"])

    brokers.grant((CLUSTER, "kafka-cluster", Op.DESCRIBE), (TOPIC, "new", Op.DESCRIBE))
    found = shown(8, [{"name": "new"}], allow_auto_topic_creation=True)
    assert found.cluster_authorized_operations == 1 << Op.DESCRIBE
    assert found.topics[0].error_code == TOPIC_DENIED
    unknown = shown(8, [{"name": "new"}]).topics[0]
    assert unknown.error_code == ErrorCode.unknown_topic_or_partition
    brokers.grant((TOPIC, "new", Op.CREATE), (TOPIC, "new", Op.DESCRIBE))
    (made,) = shown(8, [{"name": "new"}], allow_auto_topic_creation=True).topics
    assert made.error_code in {ErrorCode.leader_not_available, OK}


def test_records(brokers: TwoBrokers) -> None:
    create(brokers.admin, "u")
    (topic,) = brokers.admin.call(
        ApiKey.METADATA,
        12,
        topics=[{"name": "t", "topic_id": None}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    ).topics

    def produce() -> list[int]:
        batch = build_batch([(None, b"v")])
        rows = [{"name": name, "partition_data": [{"index": 0, "records": batch}]} for name in "tu"]
        values = {"transactional_id": None, "acks": -1, "timeout": 20_000, "topic_data": rows}
        answer = brokers.call(ApiKey.PRODUCE, 9, **values)
        return [each.partition_responses[0].error_code for each in answer.responses]

    def fetch() -> int:
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        answer = brokers.call(
            ApiKey.FETCH,
            13,
            max_wait=0,
            min_bytes=0,
            max_bytes=1000,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            rack_id="",
            topics=[{"topic_id": topic.topic_id, "partitions": [part]}],
            replica_id=-1,
        )
        return int(answer.responses[0].partitions[0].error_code)

    brokers.grant((TOPIC, "t", Op.WRITE))
    assert produce() == [OK, TOPIC_DENIED]
    assert fetch() == TOPIC_DENIED
    brokers.grant((TOPIC, "t", Op.READ))
    assert produce() == [TOPIC_DENIED, TOPIC_DENIED]
    assert fetch() == OK
