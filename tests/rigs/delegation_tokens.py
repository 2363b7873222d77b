"""Delegation tokens of connections that tests make by hand."""

import base64
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.logins import log_in
from tests.rigs.wire_client import WireClient


def create_token(client: WireClient) -> Any:
    """The answer to a request for a token of the connection's user."""
    return client.call(
        ApiKey.CREATE_DELEGATION_TOKEN,
        3,
        owner_principal_type=None,
        owner_principal_name=None,
        renewers=[],
        max_lifetime=-1,
    )


def token_login(client: WireClient, created: Any, realm: str = "") -> Any:
    """The answer to a login by the token. `realm` follows the id, as `@acme`."""
    secret = base64.b64encode(created.hmac).decode()
    return log_in(client, f"{created.token_id}{realm}", secret, by_token=True)
