"""Rights on groups and transactional ids: what Apache Kafka's KafkaApis answers."""

from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.acl_bindings import AclOperation as Op
from tests.rigs.rights import (
    CLUSTER,
    CLUSTER_DENIED,
    GROUP,
    GROUP_DENIED,
    ID,
    ID_DENIED,
    NOT_SAID,
    OK,
    TOPIC,
    TOPIC_DENIED,
    TwoBrokers,
    code,
    commit_values,
    create_topics,
)
from tests.rigs.wire_client import transactional_values


def test_offsets(rights: TwoBrokers) -> None:
    group, _ = rights.names(0)
    read_group, read_topic = (GROUP, group, Op.READ), (TOPIC, "t", Op.READ)

    def commit() -> ErrorCode:
        return code(rights.call(ApiKey.OFFSET_COMMIT, 7, **commit_values(group)).topics)

    def fetch(topics: Any) -> Any:
        return rights.call(
            ApiKey.OFFSET_FETCH, 7, group_id=group, topics=topics, require_stable=False
        )

    rights.grant(read_topic)
    assert commit() is GROUP_DENIED
    rights.grant(read_group)
    assert commit() is TOPIC_DENIED
    rights.grant(read_group, read_topic)
    assert commit() is OK
    named = [{"name": "t", "partition_indexes": [0]}]
    assert code(fetch(named).topics) is OK
    assert [each.name for each in fetch(None).topics] == ["t"]
    rights.grant((GROUP, group, Op.DESCRIBE))
    assert code(fetch(named).topics) is TOPIC_DENIED
    assert fetch(None).topics == ()
    rights.grant(read_topic)
    assert fetch(named).error_code == GROUP_DENIED

    def delete() -> Any:
        row = {"name": "t", "partitions": [{"partition_index": 0}]}
        return rights.call(ApiKey.OFFSET_DELETE, 0, group_id=group, topics=[row])

    assert delete().error_code == GROUP_DENIED
    rights.grant((GROUP, group, Op.DELETE))
    assert code(delete().topics) is TOPIC_DENIED
    rights.grant((GROUP, group, Op.DELETE), read_topic)
    assert code(delete().topics) is OK


def test_groups(rights: TwoBrokers) -> None:
    groups = mine, other = rights.names(0)
    rights.grant(*((GROUP, group, Op.READ) for group in groups), (TOPIC, "t", Op.READ))
    for group in groups:
        assert code(rights.call(ApiKey.OFFSET_COMMIT, 7, **commit_values(group)).topics) is OK

    def listed() -> set[str]:
        return {each.group_id for each in rights.call(ApiKey.LIST_GROUPS, 3).groups}

    def described(name: str) -> tuple[int, int]:
        (found,) = rights.call(
            ApiKey.DESCRIBE_GROUPS, 5, groups=[name], include_authorized_operations=True
        ).groups
        return found.error_code, found.authorized_operations

    rights.grant((CLUSTER, "kafka-cluster", Op.DESCRIBE))
    assert listed() == {mine, other}
    rights.grant((GROUP, mine, Op.READ))
    assert listed() == {mine}
    assert described(other) == (GROUP_DENIED, NOT_SAID)
    assert described(mine) == (OK, 1 << Op.READ | 1 << Op.DESCRIBE)

    def deleted(name: str) -> int:
        (found,) = rights.call(ApiKey.DELETE_GROUPS, 2, groups_names=[name]).results
        return int(found.error_code)

    assert deleted(mine) == GROUP_DENIED
    rights.grant((GROUP, mine, Op.DELETE))
    assert (deleted(mine), deleted(other)) == (OK, GROUP_DENIED)


def test_coordinators_and_producer_ids(rights: TwoBrokers) -> None:
    def found(kind: int) -> int:
        answer = rights.call(ApiKey.FIND_COORDINATOR, 3, key="x", key_type=kind)
        return int(answer.error_code)

    def init(transactional_id: str | None, *, two_phase: bool = False) -> int:
        answer = rights.call(
            ApiKey.INIT_PRODUCER_ID,
            6,
            transactional_id=transactional_id,
            transaction_timeout=20_000,
            enable2_pc=two_phase,
            keep_prepared_txn=False,
        )
        return int(answer.error_code)

    rights.grant((GROUP, "x", Op.DESCRIBE))
    assert (found(0), found(1)) == (OK, ID_DENIED)
    assert (init("x"), init(None)) == (ID_DENIED, CLUSTER_DENIED)
    rights.grant((ID, "x", Op.DESCRIBE))
    assert (found(0), found(1), init("x")) == (GROUP_DENIED, OK, ID_DENIED)
    rights.grant((ID, "x", Op.WRITE))
    assert (init("x"), init("y"), init("x", two_phase=True)) == (OK, ID_DENIED, ID_DENIED)
    rights.grant((ID, "x", Op.WRITE), (ID, "x", Op.TWO_PHASE_COMMIT))
    assert init("x", two_phase=True) == OK
    assert init(None) == CLUSTER_DENIED
    rights.grant((TOPIC, "any", Op.WRITE))
    assert init(None) == OK
    rights.grant((CLUSTER, "kafka-cluster", Op.IDEMPOTENT_WRITE))
    assert init(None) == OK


def pair_of(rights: TwoBrokers, transactional_id: str) -> tuple[int, int]:
    answer = rights.admin.call(
        ApiKey.INIT_PRODUCER_ID, 4, transactional_id=transactional_id, transaction_timeout=60_000
    )
    assert answer.error_code == OK
    return answer.producer_id, answer.producer_epoch


def test_transactions(rights: TwoBrokers) -> None:
    create_topics(rights.admin, "u")
    (group, _), (own, _) = rights.names(0), rights.names(1)
    producer_id, epoch = pair_of(rights, own)
    write_id, write_topic = (ID, own, Op.WRITE), (TOPIC, "t", Op.WRITE)
    pair = {"producer_id": producer_id, "producer_epoch": epoch}

    def add(*names: str) -> dict[str, ErrorCode]:
        answer = rights.call(
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
        return int(rights.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, **values).error_code)

    def commit_offsets() -> ErrorCode:
        values = commit_values(group) | pair | {"transactional_id": own, "generation_id": -1}
        values.pop("generation_id_or_member_epoch")
        values |= {"group_instance_id": None}
        return code(rights.call(ApiKey.TXN_OFFSET_COMMIT, 3, **values).topics)

    def produce() -> int:
        values = transactional_values(own, (producer_id, epoch), "t", 0, b"v")
        answer = rights.call(ApiKey.PRODUCE, 11, **values)
        return int(answer.responses[0].partition_responses[0].error_code)

    rights.grant(write_topic)
    assert add("t") == {"t": ID_DENIED}
    assert (add_offsets(), commit_offsets(), produce()) == (ID_DENIED, ID_DENIED, ID_DENIED)
    rights.grant(write_id, (TOPIC, "u", Op.WRITE))
    assert add("t", "u") == {"t": TOPIC_DENIED, "u": ErrorCode.operation_not_attempted}
    assert (add_offsets(), commit_offsets(), produce()) == (
        GROUP_DENIED,
        GROUP_DENIED,
        TOPIC_DENIED,
    )
    rights.grant(write_id, (GROUP, group, Op.READ))
    assert commit_offsets() is TOPIC_DENIED
    rights.grant(write_id, (GROUP, group, Op.READ), (TOPIC, "t", Op.READ))
    assert (add_offsets(), commit_offsets()) == (OK, OK)
    rights.grant(write_id, write_topic)
    assert add("t") == {"t": OK}
    assert produce() == OK


def test_ends_and_descriptions_of_transactions(rights: TwoBrokers) -> None:
    own, _ = rights.names(1)
    producer_id, epoch = pair_of(rights, own)
    pair = {"producer_id": producer_id, "producer_epoch": epoch}
    write_id = (ID, own, Op.WRITE)
    rights.grant(write_id, (TOPIC, "t", Op.WRITE))
    values = transactional_values(own, (producer_id, epoch), "t", 0, b"v")
    part = {"name": "t", "partitions": [0]}
    rights.call(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
        v3_and_below_transactional_id=own,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[part],
    )
    produced = rights.call(ApiKey.PRODUCE, 11, **values)
    assert produced.responses[0].partition_responses[0].error_code == OK

    def described() -> Any:
        (state,) = rights.call(
            ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[own]
        ).transaction_states
        return state

    def listed() -> list[str]:
        answer = rights.call(ApiKey.LIST_TRANSACTIONS, 0)
        return [each.transactional_id for each in answer.transaction_states]

    def end() -> int:
        values = pair | {"transactional_id": own, "committed": False}
        return int(rights.call(ApiKey.END_TXN, 3, **values).error_code)

    rights.grant((ID, own, Op.DESCRIBE))
    assert described().transaction_state == "Ongoing"
    assert described().topics == ()
    assert listed() == [own]
    assert end() == ID_DENIED
    rights.grant((ID, own, Op.DESCRIBE), (TOPIC, "t", Op.DESCRIBE))
    assert [each.topic for each in described().topics] == ["t"]
    rights.grant((TOPIC, "t", Op.READ))
    assert described().error_code == ID_DENIED
    assert listed() == []
    producers = {"name": "t", "partition_indexes": [0]}
    answer = rights.call(ApiKey.DESCRIBE_PRODUCERS, 0, topics=[producers])
    assert code(answer.topics) is OK
    rights.grant(write_id)
    assert end() == OK


def test_markers_and_requests_of_brokers(rights: TwoBrokers) -> None:
    marker = {
        "producer_id": 1,
        "producer_epoch": 0,
        "transaction_result": False,
        "topics": [{"name": "t", "partition_indexes": [0]}],
        "coordinator_epoch": 0,
    }

    def write() -> int:
        (found,) = rights.call(ApiKey.WRITE_TXN_MARKERS, 1, markers=[marker]).markers
        return int(found.topics[0].partitions[0].error_code)

    def add() -> int:
        each = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0}
        row = each | {"verify_only": True, "topics": [{"name": "t", "partitions": [0]}]}
        return int(rights.call(ApiKey.ADD_PARTITIONS_TO_TXN, 4, transactions=[row]).error_code)

    rights.grant((CLUSTER, "kafka-cluster", Op.DESCRIBE))
    assert (write(), add()) == (CLUSTER_DENIED, CLUSTER_DENIED)
    rights.grant((CLUSTER, "kafka-cluster", Op.CLUSTER_ACTION))
    assert (write(), add()) == (ErrorCode.invalid_producer_id_mapping, OK)
    rights.grant((CLUSTER, "kafka-cluster", Op.ALTER))
    assert (write(), add()) == (ErrorCode.invalid_producer_id_mapping, CLUSTER_DENIED)
