"""Access tokens for logins (OAUTHBEARER): where they come from, and what they say.

Invariants: a client secret goes only to its token URL, by https or on this machine, and is in no
error and no repr. The client does not verify a token; the broker does. Source: RFC 6749 section
4.4, RFC 7628.
"""

import base64
import binascii
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from bucketlog.log_format.errors import ConfigurationError, LogError
from bucketlog.log_format.printable import printable

AUTHENTICATION = -169
"""librdkafka's code."""
TOKEN_BYTES_MAX = 1 << 16
TIMEOUT_S = 10.0
_TOKEN = re.compile(r"[-_.A-Za-z0-9]+")
TokenSource = Callable[[], str]
"""Gives a token that is valid now. It is called before each token expires."""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Source of access tokens: a file that another program renews, as Kubernetes does.

    Args:
        path: Path of the file, which contains one token.

    Raises:
        LogError: If the file cannot be read, or if its token is not valid. Each login raises this
            error.

    Examples:
        >>> bucketlog.TokenFile("/var/run/secrets/kafka/token").path
        '/var/run/secrets/kafka/token'
    """

    path: str | PathLike[str]

    def __call__(self) -> str:
        """Raises `LogError`."""
        try:
            with Path(self.path).open("rb") as opened:
                return opened.read(TOKEN_BYTES_MAX + 1).decode(errors="replace").strip()
        except OSError as error:
            raise _failure(
                f"the file {fspath(self.path)} with the token cannot be read: {error.strerror}",
                "correct its path or its permissions",
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCredentials:
    """Source of access tokens for a program: a provider of OpenID Connect (grant
    `client_credentials`, RFC 6749, section 4.4).

    Args:
        token_url: Address of the provider's token endpoint, with `https://`.
        client_id: Name of the program at the provider.
        client_secret: Secret of the program.
        scope: Scopes to ask for, separated by spaces; None means the provider's default.
        ca_file: File with the certificates of the authorities that the program trusts for this
            address, in PEM; None means those of the system.
        timeout_s: Longest time that a request waits for the provider, in seconds. Default: 10.

    Raises:
        ConfigurationError: If the address or the file is not valid.
        LogError: If the provider gives no token. Each login raises this error.

    Examples:
        >>> bucketlog.ClientCredentials(
        ...     token_url="https://login.example.com/token",
        ...     client_id="billing",
        ...     client_secret="a long secret",
        ... )
        ClientCredentials(token_url='https://login.example.com/token', client_id='billing', ...)
    """

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    ca_file: str | PathLike[str] | None = None
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        url = urllib.parse.urlsplit(self.token_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.username is not None:
            raise ConfigurationError(
                "the token URL must begin with https:// and a host",
                remedy="give the token endpoint of the provider",
            )
        if url.scheme == "http" and not _is_local(url.hostname):
            raise ConfigurationError(
                f"the token URL {self.token_url} would send the secret readable for the network",
                remedy="use https",
            )

    def __call__(self) -> str:
        """Raises `LogError`, `ConfigurationError`."""
        form = {"grant_type": "client_credentials"}
        if self.scope is not None:
            form["scope"] = self.scope
        names = (urllib.parse.quote_plus(each) for each in (self.client_id, self.client_secret))
        credentials = base64.b64encode(":".join(names).encode()).decode()
        request = urllib.request.Request(
            self.token_url,
            urllib.parse.urlencode(form).encode(),
            {"Authorization": f"Basic {credentials}", "Accept": "application/json"},
        )
        https = urllib.request.HTTPSHandler(context=self._context())
        try:
            opener = urllib.request.build_opener(https, _NoRedirects)
            with opener.open(request, timeout=self.timeout_s) as answer:
                content = answer.read(TOKEN_BYTES_MAX + 1)
        except urllib.error.HTTPError as error:
            with error:
                said = printable(error.read(200).decode(errors="replace"))
            raise _failure(
                f"{self.token_url} refuses the client {self.client_id!r}: status {error.code} "
                f"{said}",
                "check the client's id, its secret and the scope",
            ) from error
        except (OSError, ValueError) as error:
            raise _failure(
                f"no token from {self.token_url}: {printable(str(error))}",
                "check the URL, and see whether the provider works",
            ) from error
        token = _member(content, "access_token")
        if not isinstance(token, str):
            raise _failure(
                f"the answer of {self.token_url} has no access token",
                "give the token endpoint of the provider",
            )
        return token

    def _context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(
                cafile=None if self.ca_file is None else fspath(self.ca_file)
            )
        except OSError as error:
            raise ConfigurationError(
                f"the CA file {self.ca_file} cannot be used: {error}",
                remedy="give the file with the certificate of the authority, in PEM",
            ) from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The secret is for one URL only."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def checked(token: str) -> str:
    """Raises `LogError` if the token cannot be one."""
    if len(token) > TOKEN_BYTES_MAX or _TOKEN.fullmatch(token) is None:
        raise _failure("what should be a token is not a JWT", "check where the token comes from")
    return token


def expires_s(token: str) -> float:
    """The Unix time of the token's end, as the token itself says. Raises `LogError`."""
    parts = token.split(".")
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return float(_member(payload, "exp"))
    except (IndexError, TypeError, ValueError, OverflowError, binascii.Error):
        raise _failure(
            "the token does not say when it expires", "use a provider whose tokens are JWT"
        ) from None


def _member(content: bytes, name: str) -> Any:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found.get(name) if isinstance(found, dict) else None


def bearer_message(token: str) -> bytes:
    """The client's first message."""
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def librdkafka_callback(source: TokenSource) -> Callable[[str], tuple[str, float]]:
    """What librdkafka calls for the first token, and for the next when 80% of its time is over."""

    def callback(_: str) -> tuple[str, float]:
        token = checked(source())
        return token, expires_s(token)

    return callback


def _failure(message: str, remedy: str) -> LogError:
    return LogError(
        message, code="AUTHENTICATION", kafka_code=AUTHENTICATION, retriable=False, remedy=remedy
    )
