"""Sources of the keys for tokens: a file, or a provider by https.

Invariants: nothing here runs on the event loop. A document larger than its limit is not read, and
no request takes longer than its limit. Redirects are not followed, and proxies are not used.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.printable import printable


class KeysUnavailableError(BucketlogError):
    code = "KEYS_UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class KeyFile:
    path: Path
    bytes_max: int

    def read(self) -> bytes:
        """Read the document. Raises `KeysUnavailableError`."""
        try:
            with self.path.open("rb") as opened:
                document = opened.read(self.bytes_max + 1)
        except OSError as error:
            raise KeysUnavailableError(
                f"the file with the keys for tokens, {self.path}, cannot be read: {error.strerror}",
                remedy="correct BUCKETLOG_OAUTHBEARER_JWKS_FILE or the file's permissions",
            ) from error
        return _bounded(document, self.bytes_max, str(self.path))


@dataclass(frozen=True, slots=True)
class KeyUrl:
    """The keys of a provider, by URL. `context` None: plain http."""

    url: str
    context: ssl.SSLContext | None
    bytes_max: int
    timeout_ms: int

    def read(self) -> bytes:
        """Read the document. Raises `KeysUnavailableError`."""
        parts = urlsplit(self.url)
        host, timeout_s = parts.hostname or "", self.timeout_ms / 1000
        connection = (
            http.client.HTTPConnection(host, parts.port, timeout=timeout_s)
            if self.context is None
            else http.client.HTTPSConnection(
                host, parts.port, timeout=timeout_s, context=self.context
            )
        )
        began_s = time.monotonic()
        try:
            connection.connect()
            left_s = max(0.0, began_s + timeout_s - time.monotonic())
            with _interrupting(connection.sock, left_s) as late:
                path = parts.path or "/"
                connection.request("GET", f"{path}?{parts.query}" if parts.query else path)
                answer = connection.getresponse()
                document = answer.read(self.bytes_max + 1)
            if late.is_set():
                raise TimeoutError
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = printable(str(error))[:200] or type(error).__name__
            if time.monotonic() >= began_s + timeout_s:
                reason = f"it took more than {self.timeout_ms} ms"
            raise KeysUnavailableError(
                f"the keys for tokens cannot be fetched from {self.url}: {reason}",
                remedy="see whether the provider works and can be reached; the broker tries again",
            ) from error
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise KeysUnavailableError(
                f"{self.url} answers with the status {answer.status}",
                remedy="set BUCKETLOG_OAUTHBEARER_JWKS_URL to the provider's key set; redirects "
                "are not followed",
            )
        return _bounded(document, self.bytes_max, self.url)


def _bounded(document: bytes, bytes_max: int, source: str) -> bytes:
    if len(document) > bytes_max:
        raise KeysUnavailableError(
            f"the keys in {source} have more than {bytes_max} bytes",
            remedy="raise BUCKETLOG_OAUTHBEARER_JWKS_BYTES_MAX if this is the right source",
        )
    return document


@contextmanager
def _interrupting(opened: socket.socket, left_s: float) -> Iterator[threading.Event]:
    """End all that the socket waits for when the time is over. The event then is set."""
    late = threading.Event()

    def interrupt() -> None:
        late.set()
        with suppress(OSError):
            opened.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(left_s, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def trusting(ca_file: Path | None) -> ssl.SSLContext:
    """Trusts the file's authorities; None: those of the system. Raises `ConfigurationError`."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the file {ca_file} with authorities cannot be used: {error}",
            remedy="set BUCKETLOG_OAUTHBEARER_JWKS_CA_FILE to certificates in PEM",
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
