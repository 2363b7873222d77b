"""Encodes response headers, and says which versions have tagged fields in headers (KIP-482)."""

import struct

from bucketlog.log_format.wire import produce
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.network import messages
from bucketlog.stateless_broker.network.apis import RequestHeader

_CORRELATION_ID = struct.Struct(">i")


def response_header(header: RequestHeader, may_have_tags: bool = True) -> bytes:
    """Encode version 1 (with tagged fields) for flexible responses, version 0 for all others.
    Without `may_have_tags` (default: True), the version is always 0."""
    correlation = _CORRELATION_ID.pack(header.correlation_id)
    flexible = is_flexible(header.api_key, header.api_version)
    return correlation + b"\0" if flexible and may_have_tags else correlation


def is_flexible(key: ApiKey, version: int) -> bool:
    """Return whether this version of the API has tagged fields."""
    if key is ApiKey.PRODUCE:
        return version >= produce.FLEXIBLE_FROM
    return messages.is_flexible(key, version)
