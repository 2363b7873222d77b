"""TLS between a socket and a connection: the socket's protocol, and the connection's transport.

Invariants: the connection is admitted before its handshake, which is bounded in time. No request
is taken before the handshake has ended. Bytes in memory are bounded: little is decrypted ahead of
what the connection wants, little is encrypted ahead of what the kernel takes, and unsent bytes are
counted until the kernel has them. A failed handshake ends with TLS's alert, not with a traceback.

It works on `ssl.SSLObject` and its own memory, because the event loop's TLS hides how many bytes
the kernel has not taken, and handles clients before they are admitted.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from bucketlog.log_format.model import Buffer
from bucketlog.stateless_broker.network.audit import BY_CERTIFICATE, AuditLog
from bucketlog.stateless_broker.network.connection import ANONYMOUS, Connection
from bucketlog.stateless_broker.network.server_names import server_name
from bucketlog.stateless_broker.network.tenant_choice import choose_by_server_name

ENCRYPTED_AT_ONCE_BYTES = 256 * 1024
SMALL_BYTES = 16 * 1024
"""Responses up to this size go into one TLS record."""

_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})
"""OpenSSL's reasons if the first bytes are plain text."""


class PrincipalRefusedError(Exception):
    """The client's certificate gives it no name."""


class TenantRefusedError(Exception):
    """The client's server name gives it no tenant, or its tenant has no room."""


class TlsPolicy(Protocol):
    """The parts of the broker's certificates that a channel needs."""

    @property
    def context(self) -> ssl.SSLContext:
        """TLS context of new connections."""

    def principal(self, tls: ssl.SSLObject) -> str:
        """Return the principal of the client. Raises `PrincipalRefusedError`."""


@dataclass(frozen=True, slots=True)
class HandshakeLimit:
    ms_max: int

    @property
    def reason(self) -> str:
        return (
            f"its TLS handshake took longer than {self.ms_max} ms (BUCKETLOG_SSL_HANDSHAKE_MS_MAX)"
        )


class TlsChannel(asyncio.Transport, asyncio.BufferedProtocol):
    """`receive_buffer` is shared by all channels of an event loop, so no bytes stay in it."""

    def __init__(
        self,
        connection: Connection,
        policy: TlsPolicy,
        limit: HandshakeLimit,
        receive_buffer: memoryview,
        audit: AuditLog | None = None,
    ) -> None:
        super().__init__()
        self._connection = connection
        self._policy = policy
        self._limit = limit
        self._receive_buffer = receive_buffer
        self._audit = audit
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = policy.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._raw: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_open = False
        self._is_closing = False
        self._has_said_goodbye = False
        self._is_reading = True
        self._unencrypted: deque[memoryview] = deque()
        self._unencrypted_bytes = 0
        self._kernel_is_full = False
        self._is_paused = False
        """Whether the connection knows that its client does not read."""
        self._high = self._low = 0

    # The socket's side -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = raw = cast(asyncio.Transport, transport)
        raw.set_write_buffer_limits(high=0)  # `resume_writing` when the kernel has taken all
        self._timer = asyncio.get_running_loop().call_later(
            self._limit.ms_max / 1000, self._fail, self._limit.reason
        )
        self._connection.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        self._raw = None
        self._unencrypted.clear()
        self._unencrypted_bytes = 0
        self._connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receive_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._incoming.write(self._receive_buffer[:nbytes])
        self._go_on()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._kernel_is_full = True

    def resume_writing(self) -> None:
        self._kernel_is_full = False
        self._encrypt()

    # TLS -------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Take what has arrived: the handshake's bytes, then requests."""
        if self._raw is None or self._raw.is_closing():
            return
        try:
            if not self._is_open:
                self._tls.do_handshake()
                self._begin()
            self._decrypt()
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._flush()
            self._connection.eof_received()
            self.close()
            return
        except ssl.SSLError as error:
            self._flush()
            what = "TLS" if self._is_open else "TLS handshake"
            hint = ""
            if not self._is_open and error.reason in _NO_TLS:
                hint = "; its client does not speak TLS (security.protocol=SSL)"
            self._fail(f"{what} failed: {error.reason or error}{hint}")
            return
        except (PrincipalRefusedError, TenantRefusedError) as error:
            self._fail(str(error))
            return
        self._flush()
        self._note_unsent()

    def _begin(self) -> None:
        """The handshake has ended."""
        self._forget_timer()
        connection = self._connection
        connection.principal = self._policy.principal(self._tls)
        refusal = choose_by_server_name(connection, server_name(self._tls))
        if refusal is not None:
            raise TenantRefusedError(refusal)
        self._is_open = True
        is_known = connection.login is None and connection.principal != ANONYMOUS
        if self._audit is not None and is_known:
            self._audit.logged_in(connection, BY_CERTIFICATE)

    def _decrypt(self) -> None:
        """Decrypt what has arrived. Raises `ssl.SSLError`."""
        while self._is_reading and not self._is_closing and self._raw is not None:
            into, filled = self._connection.get_buffer(-1), 0
            try:
                while filled < len(into) and (self._incoming.pending or self._tls.pending()):
                    count = self._tls.read(len(into) - filled, cast(Any, into[filled:]))
                    if not count:
                        raise ssl.SSLZeroReturnError
                    filled += cast(int, count)
            finally:
                if filled:
                    self._connection.buffer_updated(filled)
            if not filled:
                return

    def _flush(self) -> None:
        """Send what TLS has written."""
        if self._outgoing.pending and self._raw is not None and not self._raw.is_closing():
            self._raw.write(self._outgoing.read())

    def _encrypt(self) -> None:
        """Encrypt and send as much as the kernel takes."""
        try:
            while self._unencrypted and not self._kernel_is_full and self._raw is not None:
                part = self._unencrypted[0]
                count = self._tls.write(part[:ENCRYPTED_AT_ONCE_BYTES])
                self._unencrypted_bytes -= count
                if count < len(part):
                    self._unencrypted[0] = part[count:]
                else:
                    del self._unencrypted[0]
                self._flush()
        except ssl.SSLError as error:
            self._fail(f"TLS failed: {error.reason or error}")
            return
        self._note_unsent()
        if self._is_closing and not self._unencrypted:
            self._say_goodbye()

    def _note_unsent(self) -> None:
        unsent = self.get_write_buffer_size()
        if unsent > self._high and not self._is_paused:
            self._is_paused = True
            self._connection.pause_writing()
        elif unsent <= self._low and self._is_paused:
            self._is_paused = False
            self._connection.resume_writing()

    def _fail(self, reason: str) -> None:
        if self._audit is not None and not self._is_open:
            self._audit.login_failed(self._connection, reason, mechanism="TLS")
        self._connection.end(reason)

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say_goodbye(self) -> None:
        raw = self._raw
        if raw is None or raw.is_closing() or self._has_said_goodbye:
            return
        self._has_said_goodbye = True
        try:
            self._tls.unwrap()
        except ssl.SSLError:  # the client's own farewell is not waited for
            pass
        self._flush()
        raw.close()

    # The connection's side -------------------------------------------------------------------

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        if self._raw is None or self._is_closing:
            return
        parts = [memoryview(part).cast("B") for part in list_of_data if len(part)]
        size_bytes = sum(map(len, parts))
        if size_bytes <= SMALL_BYTES:
            parts = [memoryview(b"".join(parts))]
        self._unencrypted.extend(parts)
        self._unencrypted_bytes += size_bytes
        self._encrypt()

    def write(self, data: Buffer) -> None:
        self.writelines([data])

    def get_write_buffer_size(self) -> int:
        raw = 0 if self._raw is None else self._raw.get_write_buffer_size()
        return self._unencrypted_bytes + raw

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the limits as an asyncio transport does. `high` must be given."""
        self._high = high or 0
        self._low = self._high // 4 if low is None else low

    def pause_reading(self) -> None:
        self._is_reading = False
        if self._raw is not None:
            self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._is_reading = True
        if self._raw is not None:
            self._raw.resume_reading()
            asyncio.get_running_loop().call_soon(self._go_on)

    def is_closing(self) -> bool:
        return self._is_closing or self._raw is None or self._raw.is_closing()

    def close(self) -> None:
        """Close once all that was written is sent."""
        self._is_closing = True
        if self._raw is None:
            return
        if not self._is_open:
            self._raw.close()
        elif not self._unencrypted:
            self._say_goodbye()

    def abort(self) -> None:
        self._is_closing = True
        if self._raw is not None:
            self._raw.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default if self._raw is None else self._raw.get_extra_info(name, default)
