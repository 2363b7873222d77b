"""DescribeClientQuotas: there are no quotas.

Apache Kafka's kafka-configs asks for the quotas of users whenever it describes users. Source:
KIP-546.
"""

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from bucketlog.stateless_broker.authorization.needs import CLUSTER_NOT_AUTHORIZED
from bucketlog.stateless_broker.network.dispatch import Request


async def describe_client_quotas(
    request: Request, message: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    return {"error_code": ErrorCode.none, "error_message": None, "entries": []}


def deny_describe_quotas(message: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    return {
        "error_code": ErrorCode.cluster_authorization_failed,
        "error_message": CLUSTER_NOT_AUTHORIZED,
        "entries": None,
    }
