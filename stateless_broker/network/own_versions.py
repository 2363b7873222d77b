"""The APIs and versions that a broker advertises (ApiVersions).

Invariant: a request of an unknown version gets version 0's answer with UNSUPPORTED_VERSION, and
one with an invalid name or version of the client gets INVALID_REQUEST (KIP-511). Source: Kafka's
ApiVersionsRequest.
"""

import re
import struct
from collections.abc import Iterable, Mapping

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from bucketlog.log_format.wire.served_versions import Versions
from bucketlog.stateless_broker.network.features import add_features
from bucketlog.stateless_broker.network.messages import write_message

ADVERTISED_FROM = {ApiKey.PRODUCE: 0, ApiKey.SASL_HANDSHAKE: 0}
"""First advertised versions that differ from the first served version. Old librdkafka wants to see
these (KAFKA-18659). It logs in by version 1 of SaslHandshake, and only if version 0 is there,
too."""

NAMES_FROM = 3
_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Matches names of client software, and its versions."""


class OwnVersions:
    """`features`: the levels of the broker's features, by name (KIP-584)."""

    def __init__(
        self, served: Iterable[tuple[ApiKey, Versions]], features: Mapping[str, int]
    ) -> None:
        self._rows: list[ApiVersion] = [
            {
                "api_key": key,
                "min_version": ADVERTISED_FROM.get(key, versions.first),
                "max_version": versions.last,
            }
            for key, versions in served
        ]
        self._features = features
        self._bodies: dict[int, bytes] = {}
        """The encoded responses, by the version of the request."""

    def _body(self, version: int) -> bytes:
        body = self._bodies.get(version)
        if body is None:
            response: ApiVersionsResponse = {
                "error_code": ErrorCode.none,
                "api_keys": self._rows,
            }
            if self._features:
                add_features(response, version, self._features)
            body = self._bodies[version] = write_message(API_VERSIONS, version, response)
        return body

    def answer(self, version: int, message: ApiVersionsRequest) -> tuple[bytes, ErrorCode]:
        """The encoded response to a request, and its error."""
        names = (message.client_software_name, message.client_software_version)
        if version >= NAMES_FROM and not all(map(_NAME.fullmatch, names)):
            refused: ApiVersionsResponse = {
                "error_code": ErrorCode.invalid_request,
                "api_keys": (),
            }
            return write_message(API_VERSIONS, version, refused), ErrorCode.invalid_request
        return self._body(version), ErrorCode.none

    def unsupported(self, correlation_id: int) -> list[Buffer]:
        """Header and body of the answer to an unknown version of ApiVersions."""
        response: ApiVersionsResponse = {
            "error_code": ErrorCode.unsupported_version,
            "api_keys": [row for row in self._rows if row["api_key"] == ApiKey.API_VERSIONS],
        }
        return [struct.pack(">i", correlation_id), write_message(API_VERSIONS, 0, response)]
