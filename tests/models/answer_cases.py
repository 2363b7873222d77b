"""Requests at the edges of Kafka's rules: names, duplicates, empty lists, unknown ids.

Each case is sent to Apache Kafka and to bucketlog, and the answers are compared field by field.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.edge_requests import (
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    UNKNOWN_BROKER,
    Around,
    Step,
    add_offsets,
    add_partitions,
    alter_configs,
    assigned,
    commit_request,
    create,
    delete_groups,
    delete_records,
    delete_topics,
    describe_configs,
    describe_groups,
    describe_transactions,
    end_request,
    fetch_request,
    find_request,
    grown,
    init_request,
    list_groups,
    list_offsets,
    metadata,
    offset_delete,
    offset_fetch,
    produce,
    update_features,
    versions,
)


@dataclass(frozen=True, slots=True)
class Case:
    """The answer to the last step counts. `differs`: why the answers are not equal, as
    docs/compatibility.md says. `ignored`: fields that do not count."""

    steps: Callable[[Around], Sequence[Step]]
    differs: str = ""
    ignored: frozenset[str] = frozenset()


def _creates(name: str, around: Around) -> list[Step]:
    return [create(around, name)]


def _produces(name: str, around: Around) -> list[Step]:
    return [produce(name, 0)]


def _updates(version: int, levels: Sequence[tuple[str, int]], around: Around) -> list[Step]:
    return [update_features(version, *levels)]


def _updates_by(kind: int, around: Around) -> list[Step]:
    return [update_features(2, ("group.version", 1), kind=kind)]


def prepared(around: Around) -> list[Step]:
    """What each case begins with; sent again until the answer has no error."""
    return [
        create(around, around.topic),
        produce(around.topic, 0),
        find_request(0, around.group),
        commit_request(around, around.group, around.topic),
        find_request(1, "answers"),
        init_request("answers"),
    ]


OFFSETS, MARKERS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"
METADATA_LOG = "__cluster_metadata"
ONCE = "a long answer could be asked for by a short request"
NO_TOPIC = "groups and transactions are no topics here"

CASES: dict[str, Case] = {
    # Assignments
    "assignment to this broker": Case(lambda a: [assigned(a, [a.me])]),
    "assignment to an unknown broker": Case(lambda a: [assigned(a, [UNKNOWN_BROKER])]),
    "assignment to this and an unknown broker": Case(
        lambda a: [assigned(a, [a.me, UNKNOWN_BROKER])]
    ),
    "assignment to a negative broker": Case(lambda a: [assigned(a, [-1])]),
    "assignment to a broker twice": Case(lambda a: [assigned(a, [a.me, a.me])]),
    "assignment to no broker": Case(lambda a: [assigned(a, [])]),
    "assignment, one partition to no broker": Case(lambda a: [assigned(a, [a.me], [])]),
    "assignment without partition 0": Case(lambda a: [assigned(a, [a.me], first=1)]),
    "assignment of a partition twice": Case(
        lambda a: [
            create(
                a,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[{"partition_index": 0, "broker_ids": [a.me]}] * 2,
            )
        ]
    ),
    "assignment and number of partitions": Case(
        lambda a: [
            create(a, assignments=[{"partition_index": 0, "broker_ids": [a.me]}]),
        ]
    ),
    "assignments with unequal numbers of replicas": Case(
        lambda a: [assigned(a, [a.me], [a.me, UNKNOWN_BROKER])]
    ),
    "new partition on this broker": Case(lambda a: [grown(a, 2, [a.me])]),
    "new partition on an unknown broker": Case(lambda a: [grown(a, 2, [UNKNOWN_BROKER])]),
    "new partition on a broker twice": Case(lambda a: [grown(a, 2, [a.me, a.me])]),
    "new partition on no broker": Case(lambda a: [grown(a, 2, [])]),
    "new partitions, too few assignments": Case(lambda a: [grown(a, 3, [a.me])]),
    "new partitions, too many assignments": Case(lambda a: [grown(a, 2, [a.me], [a.me])]),
    "fewer partitions": Case(lambda a: [grown(a, 0)]),
    "as many partitions": Case(lambda a: [grown(a, 1)]),
    # Groups
    "type of a group": Case(lambda a: [list_groups()]),
    "groups of the classic type": Case(lambda a: [list_groups(types_filter=["Classic"])]),
    "groups of an unknown type": Case(lambda a: [list_groups(types_filter=["t"])]),
    "groups of another type": Case(lambda a: [list_groups(types_filter=["share"])]),
    "groups of an unknown state": Case(lambda a: [list_groups(states_filter=["s"])]),
    "groups of an empty state": Case(lambda a: [list_groups(states_filter=[""])]),
    "group after its last offset was deleted": Case(
        lambda a: [offset_delete(a, 0), describe_groups(a.group)]
    ),
    "listing after the last offset was deleted": Case(
        lambda a: [offset_delete(a, 0), list_groups()]
    ),
    "offsets after the last offset was deleted": Case(
        lambda a: [offset_delete(a, 0), offset_fetch(a, a.group)]
    ),
    "a group is deleted after its last offset": Case(
        lambda a: [offset_delete(a, 0), delete_groups(a.group)]
    ),
    "an offset is deleted twice": Case(lambda a: [offset_delete(a, 0), offset_delete(a, 0)]),
    "an offset of an unknown partition is deleted": Case(lambda a: [offset_delete(a, 7)]),
    "an offset is named twice in OffsetDelete": Case(lambda a: [offset_delete(a, 0, 0)]),
    "a group without a name": Case(lambda a: [describe_groups("")]),
    "an unknown group": Case(lambda a: [describe_groups(a.fresh)]),
    "a group is described twice": Case(lambda a: [describe_groups(a.group, a.group)], differs=ONCE),
    "a group is deleted twice": Case(lambda a: [delete_groups(a.group, a.group)]),
    "a group without a name is deleted": Case(lambda a: [delete_groups("")]),
    "an unknown group is deleted": Case(lambda a: [delete_groups(a.fresh)]),
    "offsets of a group twice": Case(lambda a: [offset_fetch(a, a.group, a.group)], differs=ONCE),
    "offsets of a group without a name": Case(lambda a: [offset_fetch(a, "")]),
    "offsets of an unknown group": Case(lambda a: [offset_fetch(a, a.fresh)]),
    "a group without a name commits": Case(lambda a: [commit_request(a, "", a.topic)]),
    "an offset is committed twice": Case(lambda a: [commit_request(a, a.group, a.topic, a.topic)]),
    "an offset of an unknown topic": Case(lambda a: [commit_request(a, a.group, a.fresh)]),
    "an offset of no topic": Case(lambda a: [commit_request(a, a.group, "")]),
    # Coordinators
    "coordinator of a group": Case(lambda a: [find_request(0, a.group)]),
    "coordinator of a group without a name": Case(lambda a: [find_request(0, "")]),
    "coordinator of a transactional id without a name": Case(lambda a: [find_request(1, "")]),
    "coordinator of a group twice": Case(
        lambda a: [find_request(0, a.group, a.group)], differs=ONCE
    ),
    "coordinator of no group": Case(lambda a: [find_request(0)]),
    "coordinator of an unknown kind": Case(lambda a: [find_request(7, a.group)]),
    # Transactions
    "empty transactional id": Case(lambda a: [init_request("")]),
    "empty transactional id, AddPartitionsToTxn": Case(lambda a: [add_partitions(a, "", (1, 0))]),
    "empty transactional id, AddOffsetsToTxn": Case(lambda a: [add_offsets(a, "", (1, 0))]),
    "empty transactional id, EndTxn": Case(lambda a: [end_request("", (1, 0))]),
    "empty transactional id, DescribeTransactions": Case(lambda a: [describe_transactions("")]),
    "unknown transactional id, DescribeTransactions": Case(
        lambda a: [describe_transactions(a.fresh)]
    ),
    "a transactional id is described twice": Case(
        lambda a: [describe_transactions(a.fresh, a.fresh)], differs=ONCE
    ),
    "empty transactional id, Produce": Case(
        lambda a: [produce(a.topic, 0, transactional_id="")],
        differs="no transaction has an empty id",
    ),
    "new transactional id with a producer id": Case(
        lambda a: [init_request(a.fresh, (12345678, 3))]
    ),
    "transactional id with another's producer id": Case(
        lambda a: [init_request(a.fresh), init_request(a.fresh, (12345678, 3))]
    ),
    "transactional id with a producer id without epoch": Case(
        lambda a: [init_request(a.fresh, (5, -1))]
    ),
    "transactional id with an epoch without producer id": Case(
        lambda a: [init_request(a.fresh, (-1, 5))]
    ),
    "producer id without a transactional id": Case(lambda a: [init_request(None, (12345678, 3))]),
    "producer id without epoch or transactional id": Case(lambda a: [init_request(None, (5, -1))]),
    "epoch without producer id or transactional id": Case(lambda a: [init_request(None, (-1, 5))]),
    "timeout 0": Case(
        lambda a: [
            Step(
                ApiKey.INIT_PRODUCER_ID,
                5,
                dict(init_request(a.fresh).values) | {"transaction_timeout": 0},
            )
        ]
    ),
    # Names
    "configs of an unknown topic": Case(lambda a: [describe_configs((TOPIC, a.fresh))]),
    "configs of a topic twice": Case(
        lambda a: [describe_configs((TOPIC, a.topic), (TOPIC, a.topic))], differs=ONCE
    ),
    "configs of an unknown key": Case(lambda a: [describe_configs((TOPIC, a.topic), keys=["k"])]),
    "configs of an unknown kind": Case(lambda a: [describe_configs((99, a.topic))]),
    "configs of a group without a name": Case(lambda a: [describe_configs((GROUP, ""))]),
    "configs of metrics without a name": Case(lambda a: [describe_configs((CLIENT_METRICS, ""))]),
    "a topic without a name is altered": Case(lambda a: [alter_configs("", ("retention.ms", "1"))]),
    "an unknown topic is altered": Case(lambda a: [alter_configs(a.fresh, ("retention.ms", "1"))]),
    "a config is altered twice": Case(
        lambda a: [alter_configs(a.topic, ("retention.ms", "1"), ("retention.ms", "2"))]
    ),
    "a config without a value": Case(lambda a: [alter_configs(a.topic, ("retention.ms", None))]),
    "segment.bytes of the minimum": Case(
        lambda a: [alter_configs(a.topic, ("segment.bytes", "1048576"))]
    ),
    "a topic with an invalid name": Case(lambda a: [create(a, "a b")]),
    "a topic without a name": Case(lambda a: [create(a, "")]),
    "a topic with the name .": Case(lambda a: [create(a, ".")]),
    "a topic with a long name": Case(lambda a: [create(a, "x" * 250)]),
    "a topic is created again": Case(lambda a: [create(a, a.topic)]),
    "a config is named twice": Case(
        lambda a: [
            create(a, configs=[{"name": "retention.ms", "value": each} for each in ("1", "2")]),
        ]
    ),
    "metadata of a topic with an invalid name": Case(lambda a: [metadata("a b")]),
    "metadata of a topic without a name": Case(lambda a: [metadata("")]),
    "metadata of an unknown topic": Case(lambda a: [metadata(a.fresh)]),
    "metadata of a topic twice": Case(lambda a: [metadata(a.topic, a.topic)]),
    "metadata that creates a topic": Case(lambda a: [metadata(a.fresh, creates=True)]),
    "metadata that creates a topic with an invalid name": Case(
        lambda a: [metadata("a b", creates=True)]
    ),
    "metadata that creates a topic without a name": Case(lambda a: [metadata("", creates=True)]),
    "a topic is deleted twice": Case(lambda a: [delete_topics(a.topic, a.topic)]),
    "an unknown topic is deleted": Case(lambda a: [delete_topics(a.fresh)]),
    "a topic with an invalid name is deleted": Case(lambda a: [delete_topics("a b")]),
    "records of a topic twice": Case(lambda a: [delete_records(a.topic, a.topic)]),
    "records of an unknown topic": Case(lambda a: [delete_records(a.fresh)]),
    "offsets of a topic twice": Case(lambda a: [list_offsets(a.topic, a.topic)]),
    "offsets of an unknown topic": Case(lambda a: [list_offsets(a.fresh)]),
    "offsets of a partition twice": Case(lambda a: [list_offsets(a.topic, times=2)]),
    "a fetch of a topic twice": Case(lambda a: [fetch_request(a.topic, a.topic)]),
    "a fetch of an unknown topic": Case(
        lambda a: [fetch_request(a.fresh)], differs="null instead of an empty list"
    ),
    "a produce to an unknown topic": Case(lambda a: [produce(a.fresh, 0)]),
    "a produce to an unknown partition": Case(lambda a: [produce(a.topic, 7)]),
    "a produce to a topic without a name": Case(lambda a: [produce("", 0)]),
    # Configs
    "configs of a topic with an invalid name": Case(lambda a: [describe_configs((TOPIC, "a b"))]),
    "configs of a topic without a name": Case(lambda a: [describe_configs((TOPIC, ""))]),
    "configs of a topic with a long name": Case(lambda a: [describe_configs((TOPIC, "x" * 250))]),
    "configs of a topic with the name ..": Case(lambda a: [describe_configs((TOPIC, ".."))]),
    "a topic with an invalid name is altered": Case(
        lambda a: [alter_configs("a b", ("retention.ms", "1"))]
    ),
    "segment.bytes below the minimum": Case(
        lambda a: [alter_configs(a.topic, ("segment.bytes", "1048575"))]
    ),
    "a topic with segment.bytes below the minimum": Case(
        lambda a: [create(a, configs=[{"name": "segment.bytes", "value": "1000"}])]
    ),
    # Internal topics
    **{
        f"{name} is created": Case(partial(_creates, name), differs=NO_TOPIC)
        for name in (OFFSETS, MARKERS, SHARES)
    },
    **{
        f"records are produced to {name}": Case(partial(_produces, name))
        for name in (OFFSETS, MARKERS, SHARES, METADATA_LOG)
    },
    f"{METADATA_LOG} is created": Case(lambda a: [create(a, METADATA_LOG)]),
    f"{OFFSETS} is deleted": Case(lambda a: [delete_topics(OFFSETS)], differs=NO_TOPIC),
    f"records of {OFFSETS} are deleted": Case(lambda a: [delete_records(OFFSETS)]),
    f"{OFFSETS} in Metadata": Case(lambda a: [metadata(OFFSETS)], differs=NO_TOPIC),
    f"offsets of {OFFSETS}": Case(lambda a: [list_offsets(OFFSETS)], differs=NO_TOPIC),
    # Names of clients (KIP-511)
    "client software": Case(
        lambda a: [versions("a-b.c", "1.0-x")],
        ignored=frozenset({"supported_features", "finalized_features", "finalized_features_epoch"}),
    ),
    "client software without a name": Case(lambda a: [versions("", "1.0")]),
    "client software without a version": Case(lambda a: [versions("a", "")]),
    "client software with a space in the name": Case(lambda a: [versions("a b", "1.0")]),
    "client software with a hyphen first": Case(lambda a: [versions("-a", "1.0")]),
    "client software with a dot last": Case(lambda a: [versions("a", "1.")]),
    "client software with an underscore": Case(lambda a: [versions("a_b", "1.0")]),
    # Features
    **{
        f"the current levels of features, version {version}": Case(
            partial(_updates, version, [("group.version", 1), ("share.version", 1)])
        )
        for version in (0, 1, 2)
    },
    **{
        f"an unknown feature, version {version}": Case(
            partial(_updates, version, [("nonsense", 1)])
        )
        for version in (0, 1, 2)
    },
    **{
        f"a feature with the level {level}": Case(partial(_updates, 2, [("group.version", level)]))
        for level in (-1, 0, 2)
    },
    "a feature without a name": Case(lambda a: [update_features(1, ("", 1))]),
    "no features": Case(lambda a: [update_features(1)]),
    "one feature of two is unknown": Case(
        lambda a: [update_features(1, ("group.version", 1), ("nonsense", 1))]
    ),
    "a feature with two levels": Case(
        lambda a: [update_features(1, ("group.version", 9), ("group.version", 1))]
    ),
    **{f"an update of the type {kind}": Case(partial(_updates_by, kind)) for kind in (0, 2, 3, 4)},
    "a downgrade of a feature": Case(
        lambda a: [update_features(2, ("group.version", 0), kind=2)],
        differs="levels of features follow from settings",
    ),
}
