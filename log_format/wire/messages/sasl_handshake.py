"""SaslHandshake: its request and response, versions 1 to 1.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeRequest:
    mechanism: str


class SaslHandshakeResponse(TypedDict):
    error_code: ErrorCode
    mechanisms: NotRequired[Sequence[str]]


SASL_HANDSHAKE = ApiMessages(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest, SaslHandshakeResponse)
