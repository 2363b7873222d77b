"""TLS to Redis: the context of connections, by the files that the Redis URL names, and what errors
of TLS mean.

Invariants: if the URL names authorities, no others are trusted. A new connection uses the files as
they are at that moment. If changed files do not work, the former context stays in use.
"""

import logging
import os
import ssl
from collections.abc import Iterator
from typing import NamedTuple

from redis.asyncio.connection import RedisSSLContext
from redis.exceptions import TimeoutError as RedisTimeoutError

from bucketlog.log_format.errors import ConfigurationError

logger = logging.getLogger(__name__)

FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""The URL's options that name files."""
UNANSWERED = "Timeout connecting"
"""The beginning of redis-py's error if a connection or its handshake took too long."""
CLOSED = "Connection closed by server"
"""Text in redis-py's error if the server closed the connection without an answer."""
OF_CERTIFICATES = ("CERTIFICATE", "UNKNOWN_CA")
"""Words of the alerts by which a server refuses a certificate."""

Marks = tuple[tuple[int, int, int] | None, ...]


class RedisTls(RedisSSLContext):
    """The object that redis-py asks for the context of each new connection. Raises
    `ConfigurationError`, which names the option, if the files do not work at first."""

    def __init__(self, options: RedisSSLContext) -> None:
        for name in RedisSSLContext.__slots__:
            setattr(self, name, getattr(options, name))
        named = (self.ca_certs, self.certfile, self.keyfile)
        self._files = {
            option: file for option, file in zip(FILES, named, strict=True) if file is not None
        }
        self._marks = self._look()
        self._context = self._load()

    def get(self) -> ssl.SSLContext:
        marks = self._look()
        if marks != self._marks:
            self._marks = marks
            try:
                self._context = self._load()
            except ConfigurationError as error:
                logger.warning(
                    "the former certificates for Redis stay in use, because the files do not "
                    "work: %s",
                    error,
                )
        return self._context

    def _look(self) -> Marks:
        """Return marks of the files, which change when a file is replaced or written, also behind a
        link."""
        return tuple(_mark(file) for file in self._files.values())

    def _load(self) -> ssl.SSLContext:
        for option, file in self._files.items():
            try:
                with open(file, "rb"):
                    pass
            except OSError as error:
                raise _refusal(f"cannot read {option} {file}: {error.strerror}") from error
        try:
            context = ssl.create_default_context(
                cafile=self.ca_certs, capath=self.ca_path, cadata=self.ca_data
            )
        except (ssl.SSLError, OSError) as error:
            raise _refusal(f"ssl_ca_certs does not work: {_reason(error)}") from error
        context.check_hostname = bool(self.check_hostname)
        context.verify_mode = self.cert_reqs
        for flag in self.include_verify_flags or ():
            context.verify_flags |= flag
        for flag in self.exclude_verify_flags or ():
            context.verify_flags &= ~flag
        if self.min_version is not None:
            context.minimum_version = ssl.TLSVersion(self.min_version)
        if self.ciphers is not None:
            context.set_ciphers(self.ciphers)
        if self.certfile is not None:
            try:
                context.load_cert_chain(self.certfile, self.keyfile, lambda: self.password or "")
            except (ssl.SSLError, OSError) as error:
                raise _refusal(
                    f"ssl_certfile and ssl_keyfile do not work: {_reason(error)}"
                ) from error
        elif self.keyfile is not None:
            raise _refusal("ssl_keyfile needs ssl_certfile")
        return context


def _refusal(message: str) -> ConfigurationError:
    return ConfigurationError(
        f"options of the Redis URL: {message}", remedy="give files with certificates in PEM"
    )


def _mark(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class TlsProblem(NamedTuple):
    """A problem with TLS. `is_setting`: the settings of the broker or of Redis are wrong, so a
    retry is in vain until somebody changes them."""

    message: str
    remedy: str
    is_setting: bool


def tls_problem(error: BaseException, *, uses_tls: bool) -> TlsProblem | None:
    """Return how TLS may have caused the error of a connection that uses TLS, or should use it.
    None: nothing is known."""
    if not uses_tls:
        if not any(
            isinstance(one, ConnectionResetError) or CLOSED in str(one) for one in _chain(error)
        ):
            return None
        return TlsProblem(
            f"Redis closed the connection: {error}",
            "check that it runs; if this port expects TLS, use rediss:// in the Redis URL",
            is_setting=False,
        )
    refusal = next((one for one in _chain(error) if isinstance(one, ssl.SSLError)), None)
    if isinstance(refusal, ssl.SSLCertVerificationError):
        return TlsProblem(
            f"the certificate of Redis was not accepted: {refusal.verify_message}",
            "check ssl_ca_certs and the host in the Redis URL, and the certificate of Redis",
            is_setting=True,
        )
    if refusal is not None and any(word in (refusal.reason or "") for word in OF_CERTIFICATES):
        return TlsProblem(
            f"Redis refused the broker's certificate: {_reason(refusal)}",
            "check ssl_certfile and ssl_keyfile in the Redis URL, and whom Redis trusts",
            is_setting=True,
        )
    if refusal is not None:
        message = f"the TLS connection to Redis failed: {_reason(refusal)}"
    elif isinstance(error, RedisTimeoutError) and str(error).startswith(UNANSWERED):
        message = "Redis did not answer the TLS handshake in time"
    else:
        return None
    return TlsProblem(
        message, "check that Redis runs, and that this port expects TLS", is_setting=False
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _reason(error: OSError) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    return reason.lower().replace("_", " ") if reason else str(error.strerror or error)
