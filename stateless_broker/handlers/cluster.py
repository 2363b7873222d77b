"""DescribeCluster: the brokers that serve on the listener of the connection.

Source: KIP-700, KIP-919 (types of endpoints), KIP-1073 (fenced brokers); Kafka's
AuthHelper.computeDescribeClusterResponse.
"""

from collections.abc import Mapping

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from bucketlog.log_format.wire.metadata import NO_OPERATIONS_KNOWN
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.apis import Request

BROKERS = 1
_NAMES: Mapping[int, str] = {1: "BROKER", 2: "CONTROLLER"}


class ClusterHandler:
    """Describes the cluster. No broker is ever fenced: a broker that does not serve is not in the
    response."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    async def describe(
        self, request: Request, message: DescribeClusterRequest
    ) -> DescribeClusterResponse:
        if message.endpoint_type != BROKERS:
            return self._refused(message.endpoint_type)
        listener = request.connection.listener
        brokers: list[DescribeClusterBroker] = [
            {
                "broker_id": member.node_id,
                "host": at.host,
                "port": at.port,
                "rack": member.address.zone or None,
                "is_fenced": False,
            }
            for member in self._membership.listed_on(listener)
            if (at := member.address.of(listener)) is not None
        ]
        asks = message.include_cluster_authorized_operations
        return {
            "error_code": ErrorCode.none,
            "cluster_id": self._membership.cluster_id,
            "controller_id": self._membership.controller(listener).node_id,
            "brokers": brokers,
            "cluster_authorized_operations": (
                request.access.cluster_operations() if asks else NO_OPERATIONS_KNOWN
            ),
        }

    @staticmethod
    def _refused(endpoint_type: int) -> DescribeClusterResponse:
        name = _NAMES.get(endpoint_type)
        error, why = (
            (ErrorCode.unsupported_endpoint_type, f"Unsupported endpoint type {endpoint_type}")
            if name is None
            else (
                ErrorCode.mismatched_endpoint_type,
                f"The request was sent to an endpoint of type {_NAMES[BROKERS]}, but we wanted an "
                f"endpoint of type {name}",
            )
        )
        return {"error_code": error, "error_message": why, "cluster_id": "", "brokers": []}
