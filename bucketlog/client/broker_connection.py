"""A connection of the SDK's own to one broker, with TLS and a login where `Security` says so.

librdkafka tries again until its timeout where a certificate or a password is wrong. Therefore,
`connect` first opens such a connection, and its errors name the cause and the remedy. Requests that
librdkafka does not have go over it, too. Source: Kafka's protocol guide; KIP-43, KIP-152.
"""

import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from bucketlog.client.access_tokens import bearer_message, checked
from bucketlog.client.login_tokens import ScramClient, ServerTokenError, plain_token
from bucketlog.client.security import Security
from bucketlog.log_format.errors import LogError
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, FrameWriter, MalformedRequestError

TRANSPORT, SSL, AUTHENTICATION = -195, -181, -169
"""librdkafka's codes."""
UNSUPPORTED_MECHANISM, AUTHENTICATION_FAILED = 33, 58
FRAME_BYTES_MAX = 64 << 20
ITEMS_MAX = 10_000_000
_LENGTH = struct.Struct(">i")
_NAMES = {TRANSPORT: "TRANSPORT", SSL: "SSL", AUTHENTICATION: "AUTHENTICATION"}
_UNTRUSTED = frozenset({18, 19, 20, 21})
_OTHER_NAME = frozenset({62, 64})
_EXPIRED, _NOT_YET = 10, 9
"""OpenSSL's codes of verification."""
_WITHOUT_LOGINS = "this listener may have no logins: use one with SASL, or leave out the username"
_CHECK_PASSWORD = "check user, password and mechanism; `bucketlog user` sets passwords"
_CHECK_TOKEN = "the broker's log says why; check issuer, audience and expiry of the token"
_BY_TOKEN = "by token"
_REFUSAL_SEEN = b"\1"
"""The client's answer to the reason of a refusal (RFC 7628). The failure follows."""
Address = tuple[str, int]


class BrokerConnection:
    """An open connection that has logged in. `name` is the broker's address, for errors."""

    def __init__(self, opened: socket.socket, name: str) -> None:
        self._socket = opened
        self._name = name

    def ask(self, key: ApiKey, version: int, body: FrameWriter) -> FrameReader:
        """Send one request and return its answer. Raises `EOFError`, `OSError`."""
        self.send(key, version, body)
        return self.receive(flexible=body.flexible)

    def send(
        self, key: ApiKey, version: int, body: FrameWriter, *, body_tags: bytes = b"\0"
    ) -> None:
        """Send one request. Answers come in the order of the requests. `body_tags`: tagged fields
        at the end of a flexible body, encoded. Raises `OSError`."""
        head = FrameWriter(flexible=False)
        head.int16(key)
        head.int16(version)
        head.int32(1)
        head.nullable_string("bucketlog")
        head_tags, body_tags = (b"\0", body_tags) if body.flexible else (b"", b"")
        length = len(head.data) + len(head_tags) + len(body.data) + len(body_tags)
        self._socket.sendall(
            b"".join((_LENGTH.pack(length), head.data, head_tags, body.data, body_tags))
        )

    def receive(self, *, flexible: bool) -> FrameReader:
        """The answer to the oldest request without one. Raises `EOFError`, `OSError`."""
        (length,) = _LENGTH.unpack(self._received(_LENGTH.size))
        if not _LENGTH.size <= length <= FRAME_BYTES_MAX:
            raise EOFError
        data = self._received(length)
        answer = FrameReader(memoryview(data), 4, flexible=flexible, items_max=ITEMS_MAX)
        answer.tags()
        return answer

    def _received(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            part = self._socket.recv(min(1 << 16, length - len(data)))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def is_served(self) -> None:
        """Ask for the metadata of no topic. A certificate that TLS 1.3 refuses shows only now."""
        body = FrameWriter(flexible=False)
        body.array_length(0)
        body.data += b"\0"  # create no topics
        with _explained(
            self._name, "the listener may require a login: give username and password, or token"
        ):
            self.ask(ApiKey.METADATA, 4, body)

    def log_in(self, security: Security) -> None:
        """Raises `LogError`."""
        user, password = security.username or "", security.password or ""
        with _explained(self._name, _WITHOUT_LOGINS):
            self._shake_hands(security.mechanism)
            if security.token is not None:
                answer = self._authenticate(_BY_TOKEN, bearer_message(checked(security.token())))
                if answer:
                    self._authenticate(_BY_TOKEN, _REFUSAL_SEEN)
                    raise EOFError
                return
            if security.mechanism == "PLAIN":
                self._authenticate(f"of {user!r}", plain_token(user, password))
                return
            exchange = ScramClient(security.mechanism, user, password)
            try:
                answer = self._authenticate(f"of {user!r}", exchange.first())
                exchange.check(self._authenticate(f"of {user!r}", exchange.final(answer)))
            except ServerTokenError as error:
                raise _failure(
                    f"logging in at {self._name} as {user!r}: {error}",
                    AUTHENTICATION,
                    "check that the address is a broker of your cluster",
                ) from error

    def _shake_hands(self, mechanism: str) -> None:
        body = FrameWriter(flexible=False)
        body.nullable_string(mechanism)
        answer = self.ask(ApiKey.SASL_HANDSHAKE, 1, body)
        code = answer.int16()
        offered = [answer.string() for _ in range(answer.array_length(2))]
        if code == UNSUPPORTED_MECHANISM:
            raise LogError(
                f"the listener {self._name} does not offer the mechanism {mechanism}",
                code="UNSUPPORTED_SASL_MECHANISM",
                kafka_code=code,
                retriable=False,
                remedy=f"choose one of {', '.join(offered) or 'none'}",
            )
        if code:
            raise _failure(f"{self._name} refuses logins", AUTHENTICATION, _WITHOUT_LOGINS)

    def _authenticate(self, user: str, token: bytes) -> bytes:
        """`user` is for errors."""
        body = FrameWriter(flexible=False)
        body.bytes_length(len(token))
        body.data += token
        answer = self.ask(ApiKey.SASL_AUTHENTICATE, 0, body)
        code, message = answer.int16(), answer.nullable_string()
        if code:
            raise LogError(
                f"{self._name} refuses the login {user}: {message or f'error {code}'}",
                code="SASL_AUTHENTICATION_FAILED",
                kafka_code=AUTHENTICATION_FAILED,
                retriable=False,
                remedy=_CHECK_TOKEN if user == _BY_TOKEN else _CHECK_PASSWORD,
            )
        return bytes(answer.nullable_bytes() or b"")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def open_connection(
    address: Address, security: Security | None, timeout_s: float
) -> BrokerConnection:
    """`timeout_s` bounds each wait. Raises `OSError` if nothing listens there, `LogError` if TLS or
    the login fails."""
    name = ":".join(map(str, address))
    opened = socket.create_connection(address, timeout_s)
    try:
        if security is not None and security.tls:
            opened = _with_tls(opened, address[0], name, security)
        connection = BrokerConnection(opened, name)
        if security is not None and security.has_login:
            connection.log_in(security)
    except BaseException:
        opened.close()
        raise
    return connection


def _with_tls(opened: socket.socket, host: str, name: str, security: Security) -> socket.socket:
    context = security.ssl_context()
    with _explained(name, "the listener may speak no TLS: use the port of a listener with TLS"):
        return context.wrap_socket(opened, server_hostname=host)


@contextmanager
def _explained(name: str, if_closed: str) -> Iterator[None]:
    """The errors of a connection that is open, with what to do."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise _failure(
            f"the certificate of {name} is refused: {error.verify_message}",
            SSL,
            _advice_on_certificate(error.verify_code),
        ) from error
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, EOFError, ConnectionError) as error:
        raise _failure(f"{name} closed the connection", TRANSPORT, if_closed) from error
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        raise _failure(f"TLS with {name} failed: {reason}", SSL, _advice_on_tls(reason)) from error
    except (TimeoutError, MalformedRequestError) as error:
        why = "does not answer" if isinstance(error, TimeoutError) else "does not speak Kafka"
        raise _failure(
            f"{name} {why}", TRANSPORT, "check the address, and whether its listener has TLS"
        ) from error


def _advice_on_certificate(code: int) -> str:
    if code in _UNTRUSTED:
        return "give ca_file (--ca-file), the certificate of the authority that issued it"
    if code in _OTHER_NAME:
        return "connect by a name that is in the certificate"
    if code in (_EXPIRED, _NOT_YET):
        return "renew the broker's certificate, and check this machine's clock"
    return "check the broker's certificate"


def _advice_on_tls(reason: str) -> str:
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        return "the listener may speak no TLS: use the port of a listener with TLS"
    if "CERTIFICATE_REQUIRED" in reason or "HANDSHAKE_FAILURE" in reason:
        return (
            "the broker wants a certificate of this client: give certificate_file and key_file "
            "(--client-certificate-file, --client-key-file)"
        )
    if "ALERT" in reason:
        return "the broker refuses this client's certificate: see the broker's log"
    return "check the certificates, and that the listener speaks TLS"


def _failure(message: str, code: int, remedy: str) -> LogError:
    return LogError(
        message, code=_NAMES[code], kafka_code=code, retriable=code == TRANSPORT, remedy=remedy
    )
