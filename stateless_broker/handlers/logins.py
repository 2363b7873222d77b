"""SaslHandshake and SaslAuthenticate: from requests to the connection's login.

Source: KIP-43, KIP-152, KIP-306 (the delay after a failure), KIP-368; Kafka's
SaslServerAuthenticator and KafkaApis.
"""

import asyncio
from datetime import timedelta

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from bucketlog.log_format.wire.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.tenant_choice import choose_by_realm


async def sasl_handshake(request: Request, message: SaslHandshakeRequest) -> SaslHandshakeResponse:
    login = request.connection.login
    if login is None:
        return {"error_code": ErrorCode.illegal_sasl_state, "mechanisms": []}
    error = login.handshake(message.mechanism)
    if login.failure is not None:
        await asyncio.sleep(login.rules.failure_delay_ms / 1000)
    return {"error_code": error, "mechanisms": list(login.rules.mechanisms)}


async def sasl_authenticate(
    request: Request, message: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    connection = request.connection
    login = connection.login
    if login is None:
        return {
            "error_code": ErrorCode.illegal_sasl_state,
            "error_message": "This listener has no logins: use one with SASL",
            "auth_bytes": b"",
        }
    answer = await login.authenticate(message.auth_bytes)
    if login.failure is not None:
        await asyncio.sleep(login.rules.failure_delay_ms / 1000)
    elif login.is_done and login.principal is not None:
        connection.logged_in(login.principal)
        refusal = choose_by_realm(connection, login.tenant)
        if refusal is not None:
            connection.finish_because(refusal)
    return {
        "error_code": answer.error,
        "error_message": answer.message,
        "auth_bytes": answer.token,
        "session_lifetime": timedelta(milliseconds=answer.session_ms),
    }
