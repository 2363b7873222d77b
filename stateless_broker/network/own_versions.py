"""What a broker says of its APIs and versions (ApiVersions).

Invariant: a request of an unknown version gets version 0's answer with UNSUPPORTED_VERSION
(KIP-511).
"""

import struct
from collections.abc import Iterable

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsResponse,
)
from bucketlog.log_format.wire.served_versions import Versions
from bucketlog.stateless_broker.network.features import add_feature
from bucketlog.stateless_broker.network.messages import write_message

ADVERTISED_FROM = {ApiKey.PRODUCE: 0, ApiKey.SASL_HANDSHAKE: 0}
"""Where it is not the first version served: old librdkafka wants to see these (KAFKA-18659). It
logs in by version 1 of SaslHandshake, and only if version 0 is there, too."""


class OwnVersions:
    """`transaction_version` None: the broker does not have this feature (KIP-890)."""

    def __init__(
        self, served: Iterable[tuple[ApiKey, Versions]], transaction_version: int | None
    ) -> None:
        self._rows: list[ApiVersion] = [
            {
                "api_key": key,
                "min_version": ADVERTISED_FROM.get(key, versions.first),
                "max_version": versions.last,
            }
            for key, versions in served
        ]
        self._transaction_version = transaction_version
        self._bodies: dict[int, bytes] = {}
        """The encoded responses, by the version of the request."""

    def body(self, version: int) -> bytes:
        body = self._bodies.get(version)
        if body is None:
            response: ApiVersionsResponse = {
                "error_code": ErrorCode.none,
                "api_keys": self._rows,
            }
            if self._transaction_version is not None:
                add_feature(response, version, self._transaction_version)
            body = self._bodies[version] = write_message(API_VERSIONS, version, response)
        return body

    def unsupported(self, correlation_id: int) -> list[Buffer]:
        """Header and body of the answer to an unknown version of ApiVersions."""
        response: ApiVersionsResponse = {
            "error_code": ErrorCode.unsupported_version,
            "api_keys": [row for row in self._rows if row["api_key"] == ApiKey.API_VERSIONS],
        }
        return [struct.pack(">i", correlation_id), write_message(API_VERSIONS, 0, response)]
