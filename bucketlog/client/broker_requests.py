"""Requests that librdkafka cannot send, over connections of this client to chosen brokers.

TLS and logins are those of `connect(security=...)`.
"""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError

from bucketlog.client.admin import Admin
from bucketlog.client.broker_connection import TRANSPORT, Address, open_connection
from bucketlog.client.kafka_errors import CHECK_ADDRESS, log_error
from bucketlog.client.security import Security
from bucketlog.log_format.errors import ConfigurationError, LogError
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter


class BrokerRequests:
    """`if_closed` is the remedy if a broker closes the connection instead of an answer."""

    def __init__(
        self,
        admin: Admin,
        config: Mapping[str, Any],
        security: Security | None = None,
        *,
        if_closed: str,
    ) -> None:
        self._admin = admin
        self._security = security
        protocol = "plaintext" if security is None else security.protocol
        self._protocol = str(config.get("security.protocol", protocol))
        self._is_known = self._protocol.lower() == protocol.lower()
        self._if_closed = if_closed

    def brokers(self, doing: str) -> dict[int, Address]:
        """The addresses of the live brokers, by node id. Raises `LogError`."""
        if not self._is_known:
            raise ConfigurationError(
                f"{doing}: security.protocol {self._protocol} is not supported in `config`",
                remedy="connect with security=Security(...)",
            )
        found = self._admin.metadata(None, doing).brokers
        return {each.id: (str(each.host), each.port) for each in found.values()}

    def ask_any(self, key: ApiKey, version: int, body: FrameWriter, doing: str) -> FrameReader:
        """The answer of the first broker that answers. A broker that does not may have done what
        was asked, so this is for requests that may be repeated. Raises `LogError`."""
        failure = log_error(KafkaError(KafkaError.BROKER_NOT_AVAILABLE), doing)
        for address in self.brokers(doing).values():
            try:
                return self.ask(address, key, version, body, doing)
            except LogError as error:
                if error.kafka_code != TRANSPORT:
                    raise
                failure = error
        raise failure

    def ask(
        self,
        address: Address,
        key: ApiKey,
        version: int,
        body: FrameWriter,
        doing: str,
    ) -> FrameReader:
        """Raises `LogError`."""
        try:
            with open_connection(address, self._security, self._admin.timeout_s) as connection:
                return connection.ask(key, version, body)
        except EOFError:
            what = "closed the connection without an answer"
            raise _transport(doing, address, what, self._if_closed) from None
        except OSError as error:
            why = str(error.strerror or error)
            raise _transport(doing, address, f"does not answer: {why}", CHECK_ADDRESS) from error


def _transport(doing: str, address: Address, what: str, remedy: str) -> LogError:
    where = ":".join(map(str, address))
    return LogError(
        f"{doing}: broker {where} {what}",
        code="TRANSPORT",
        kafka_code=TRANSPORT,
        retriable=True,
        remedy=remedy,
    )
