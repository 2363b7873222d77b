"""DescribeQuorum: there is no quorum to describe.

Kafka's controllers agree by a metadata log, `__cluster_metadata`. Here, facts are in the log of the
bucket, and a create-only PUT decides. A quorum with invented voters and lags would mislead whoever
watches it, so every request is refused. Source: KIP-595, KIP-836.
"""

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from bucketlog.stateless_broker.authorization.needs import CLUSTER_NOT_AUTHORIZED
from bucketlog.stateless_broker.network.apis import Request

NO_QUORUM = (
    "The cluster has no metadata quorum: its metadata is in the bucket. /readyz and the metric "
    "bucketlog_epoch of a broker show the state of the log."
)


async def describe_quorum(
    request: Request, message: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    return {
        "error_code": ErrorCode.invalid_request,
        "error_message": NO_QUORUM,
        "topics": [],
        "nodes": [],
    }


def deny_quorum(message: DescribeQuorumRequest) -> DescribeQuorumResponse:
    return {
        "error_code": ErrorCode.cluster_authorization_failed,
        "error_message": CLUSTER_NOT_AUTHORIZED,
        "topics": [],
        "nodes": [],
    }
