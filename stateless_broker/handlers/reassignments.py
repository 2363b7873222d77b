"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments.

A partition has no replicas: its records are in the bucket, and brokers agree about its leader by
themselves. So no election is ever needed, and no reassignment ever runs. A reassignment to the
broker that leads anyway succeeds, and every other one is refused. Source: KIP-183, KIP-455,
KIP-460; Kafka's ReplicationControlManager (which error for what).
"""

from collections.abc import Iterator

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from bucketlog.log_format.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from bucketlog.log_format.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.sequencer.live_brokers import LiveBroker
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.needs import CLUSTER_NOT_AUTHORIZED
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Turns

PREFERRED, UNCLEAN = 0, 1
NO_REPLICAS = (
    "A partition has no replicas that could be moved: its records are in the bucket. Brokers share "
    "the partitions of a topic equally by themselves."
)
NOT_IN_PROGRESS = "No partition reassignment is in progress."
NOT_NEEDED = "Leader election not needed for topic partition."


class ReassignmentsHandler:
    def __init__(self, *, view: View, membership: Membership, turns: Turns) -> None:
        self._view = view
        self._membership = membership
        self._turns = turns

    async def elect(self, request: Request, message: ElectLeadersRequest) -> ElectLeadersResponse:
        if message.election_type not in (PREFERRED, UNCLEAN):
            return _failed_election(message, ErrorCode.invalid_request)
        results: list[ReplicaElectionResult] = []

        def steps() -> Iterator[int]:
            for topic in message.topic_partitions or ():
                there = self._view.topic(topic.topic)
                rows: list[PartitionResult] = []
                results.append({"topic": topic.topic, "partition_result": rows})
                for partition in topic.partitions:
                    rows.append(_elected(topic.topic, partition, there))
                    yield 1

        await self._turns.work(steps())
        return {"error_code": ErrorCode.none, "replica_election_results": results}

    async def alter(
        self, request: Request, message: AlterPartitionReassignmentsRequest
    ) -> AlterPartitionReassignmentsResponse:
        listener = request.connection.listener
        node_ids = {member.node_id for member in self._membership.members}
        responses: list[ReassignableTopicResponse] = []

        def steps() -> Iterator[int]:
            for topic in message.topics:
                there = self._view.topic(topic.name)
                leaders: list[LiveBroker] = []
                if there is not None:
                    leaders = yield from self._membership.leaders(
                        there.topic_id, there.partitions, "", listener
                    )
                rows: list[ReassignablePartitionResponse] = []
                responses.append({"name": topic.name, "partitions": rows})
                for wanted in topic.partitions:
                    error, why = _altered(topic.name, wanted, there, leaders, node_ids)
                    rows.append(
                        {
                            "partition_index": wanted.partition_index,
                            "error_code": error,
                            "error_message": why,
                        }
                    )
                    yield 1 + len(wanted.replicas or ())

        await self._turns.work(steps())
        return {"error_code": ErrorCode.none, "error_message": None, "responses": responses}

    async def list(
        self, request: Request, message: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        return {"error_code": ErrorCode.none, "error_message": None, "topics": []}


def _elected(name: str, partition: int, topic: TopicState | None) -> PartitionResult:
    error, why = ErrorCode.election_not_needed, NOT_NEEDED
    if topic is None:
        error, why = ErrorCode.unknown_topic_or_partition, f"No such topic as {name}"
    elif not 0 <= partition < topic.partitions:
        error = ErrorCode.unknown_topic_or_partition
        why = f"No such partition as {name}-{partition}"
    return {"partition_id": partition, "error_code": error, "error_message": why}


def _altered(
    name: str,
    wanted: ReassignablePartition,
    topic: TopicState | None,
    leaders: list[LiveBroker],
    node_ids: set[int],
) -> tuple[ErrorCode, str | None]:
    unknown, invalid = ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_replica_assignment
    number, replicas = wanted.partition_index, wanted.replicas
    if topic is None:
        return unknown, f"Unable to find a topic named {name}."
    if not 0 <= number < topic.partitions:
        return unknown, f"Unable to find partition {name}:{number}."
    if replicas is None:
        return ErrorCode.no_reassignment_in_progress, NOT_IN_PROGRESS
    if not replicas:
        return invalid, "The manual partition assignment includes an empty replica list."
    in_order = sorted(replicas)
    for before, node_id in zip([None, *in_order], in_order, strict=False):
        if node_id not in node_ids:
            return (
                invalid,
                f"The manual partition assignment includes broker {node_id}, but no such broker is "
                "registered.",
            )
        if node_id == before:
            return (
                invalid,
                f"The manual partition assignment includes the broker {node_id} more than once.",
            )
    if replicas != (leaders[number].node_id,):
        return invalid, NO_REPLICAS
    return ErrorCode.none, None


def _failed_election(message: ElectLeadersRequest, error: ErrorCode) -> ElectLeadersResponse:
    """Return the response with `error` for each partition, as Kafka's
    ElectLeadersRequest.getErrorResponse does."""
    return {
        "error_code": error,
        "replica_election_results": [
            {
                "topic": topic.topic,
                "partition_result": [
                    {"partition_id": partition, "error_code": error, "error_message": None}
                    for partition in topic.partitions
                ],
            }
            for topic in message.topic_partitions or ()
        ],
    }


def deny_elect(message: ElectLeadersRequest) -> ElectLeadersResponse:
    return _failed_election(message, ErrorCode.cluster_authorization_failed)


def deny_alter(
    message: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse:
    error = ErrorCode.cluster_authorization_failed
    return {
        "error_code": error,
        "error_message": CLUSTER_NOT_AUTHORIZED,
        "responses": [
            {
                "name": topic.name,
                "partitions": [
                    {
                        "partition_index": wanted.partition_index,
                        "error_code": error,
                        "error_message": CLUSTER_NOT_AUTHORIZED,
                    }
                    for wanted in topic.partitions
                ],
            }
            for topic in message.topics
        ],
    }


def deny_list(
    message: ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse:
    return {
        "error_code": ErrorCode.cluster_authorization_failed,
        "error_message": CLUSTER_NOT_AUTHORIZED,
        "topics": [],
    }
