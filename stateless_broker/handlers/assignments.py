"""Manual assignments of replicas in CreateTopics and CreatePartitions: checked, then ignored.

A partition has no replicas here, and brokers share the leaders by themselves. Source for the checks
and their texts: Kafka's ReplicationControlManager (createTopic, createPartitions,
validateManualPartitionAssignment).
"""

from collections.abc import Iterable, Sequence, Set
from itertools import pairwise

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.create_partitions import CreatePartitionsTopic
from bucketlog.log_format.wire.messages.create_topics import CreatableTopic
from bucketlog.stateless_broker.handlers.topic_changes import TopicChangeResult


def refused_topic(wanted: CreatableTopic, brokers: Set[int]) -> TopicChangeResult | None:
    """Why the assignments of a new topic are refused, if they are. `brokers`: the node ids of the
    cluster."""
    if not wanted.assignments:
        return None
    for name, value in (
        ("replication factor", wanted.replication_factor),
        ("numPartitions", wanted.num_partitions),
    ):
        if value != -1:
            text = f"A manual partition assignment was specified, but {name} was not set to -1."
            return TopicChangeResult(ErrorCode.invalid_request, text, None)
    indexes = sorted(each.partition_index for each in wanted.assignments)
    for before, index in pairwise(indexes):
        if before == index:
            return _refused(f"Found multiple manual partition assignments for partition {index}")
    problem = _problem((each.broker_ids for each in wanted.assignments), brokers)
    if problem is not None:
        return _refused(problem)
    if indexes != list(range(len(indexes))):
        return _refused("partitions should be a consecutive 0-based integer sequence")
    return None


def refused_partitions(
    wanted: CreatePartitionsTopic, partitions: int, brokers: Set[int]
) -> TopicChangeResult | None:
    """Why the assignments of new partitions are refused, if they are. `partitions`: the number that
    the topic has."""
    added = wanted.count - partitions
    if wanted.assignments is None or added <= 0:
        return None
    if len(wanted.assignments) != added:
        return _refused(
            f"Attempted to add {added} additional partition(s), but only "
            f"{len(wanted.assignments)} assignment(s) were specified."
        )
    problem = _problem((each.broker_ids for each in wanted.assignments), brokers)
    return None if problem is None else _refused(problem)


def _problem(assignments: Iterable[Sequence[int]], brokers: Set[int]) -> str | None:
    start, factor = "The manual partition assignment includes", None
    for replicas in assignments:
        if not replicas:
            return f"{start} an empty replica list."
        before = None
        for broker in sorted(replicas):
            if broker not in brokers:
                return f"{start} broker {broker}, but no such broker is registered."
            if broker == before:
                return f"{start} the broker {broker} more than once."
            before = broker
        if factor is not None and len(replicas) != factor:
            return (
                f"{start} a partition with {len(replicas)} replica(s), but this is not consistent "
                f"with previous partitions, which have {factor} replica(s)."
            )
        factor = len(replicas)
    return None


def _refused(text: str) -> TopicChangeResult:
    return TopicChangeResult(ErrorCode.invalid_replica_assignment, text, None)
