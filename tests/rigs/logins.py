"""Logins of connections that tests make by hand; aiokafka's SCRAM is the client's side."""

from typing import Any

from aiokafka.conn import ScramAuthenticator
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.users import PASSWORD
from tests.rigs.wire_client import WireClient

SHA_256 = "SCRAM-SHA-256"


def handshake(client: WireClient, mechanism: str = SHA_256) -> ErrorCode:
    answer = client.call(ApiKey.SASL_HANDSHAKE, 1, mechanism=mechanism)
    return ErrorCode(answer.error_code)


def authenticate(client: WireClient, token: bytes) -> Any:
    return client.call(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=token)


class TokenScram(ScramAuthenticator):  # type: ignore[misc]  # aiokafka is untyped
    """aiokafka's SCRAM, by a delegation token: aiokafka itself has no such logins."""

    def first_message(self) -> str:
        more = ",tokenauth=true"
        message = str(super().first_message())
        self._auth_message += more
        return message + more


def log_in(
    client: WireClient,
    user: str,
    password: str = PASSWORD,
    mechanism: str = SHA_256,
    *,
    by_token: bool = False,
) -> Any:
    """The answer to the last token that is sent. Kafka refuses an unknown user at the first one,
    bucketlog at the last. A proof of the server is checked. `by_token`: user and password are those
    of a delegation token."""
    kind = TokenScram if by_token else ScramAuthenticator
    asking = kind(
        loop=None,
        sasl_plain_username=user,
        sasl_plain_password=password,
        sasl_mechanism=mechanism,
    )
    assert handshake(client, mechanism) is ErrorCode.none
    first = authenticate(client, asking.first_message().encode())
    if first.error_code != ErrorCode.none:
        return first
    asking.process_server_first_message(first.auth_bytes.decode())
    last = authenticate(client, asking.final_message().encode())
    if last.error_code == ErrorCode.none:
        asking.process_server_final_message(last.auth_bytes.decode())
    return last
