"""Who may see the console on the HTTP port: a user of the log, with the rights to read all of it.

Invariants: if a listener has logins, the console needs one. A password is checked in a thread, like
those of PLAIN, and a right one is remembered. The answer to an unknown user is that to a wrong
password. Credentials and rights are those that the broker knows at the time of the request.
"""

import asyncio
import base64
import binascii
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import check_installed
from bucketlog.log_format.lru import LruCache
from bucketlog.metadata.acl_bindings import WILDCARD, AclOperation, ResourceType
from bucketlog.metadata.acls import Resource
from bucketlog.stateless_broker.authentication.plain import PasswordCheck
from bucketlog.stateless_broker.authentication.realms import FindCredential
from bucketlog.stateless_broker.authorization.authorizer import CLUSTER, Access, Authorizer
from bucketlog.stateless_broker.network.audit import AuditLog, HttpCaller
from bucketlog.stateless_broker.network.connection import ANONYMOUS
from bucketlog.stateless_broker.settings.broker import BrokerSettings

SCHEME = "basic"
SEEN_MAX = 10_000
NEEDED = (
    (AclOperation.DESCRIBE, CLUSTER),
    (AclOperation.READ, Resource(ResourceType.TOPIC, WILDCARD)),
)
"""The rights of whoever sees the console."""


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """A response in place of a page. `asks_password`: a browser asks its user."""

    status: int
    text: str
    asks_password: bool = False


LOGIN_NEEDED = HttpRefusal(
    401, "The console needs a login: a user of this log, with its password.", True
)
LOGIN_FAILED = HttpRefusal(
    401, "The login has failed: the user is unknown, or the password is wrong.", True
)
NOT_READY = HttpRefusal(503, "The broker has not joined its cluster yet.")


def check_console(settings: BrokerSettings) -> None:
    """Check the settings of a broker that serves the console. Raises `ConfigurationError`."""
    if not settings.console:
        return
    check_installed("replay", extra="broker,console")
    check_installed("console", extra="broker,console")
    if settings.tenants_file is not None:
        raise ConfigurationError(
            "BUCKETLOG_CONSOLE: a broker with tenants cannot serve the console",
            remedy="remove this setting, and run `bucketlog console` for the bucket of a tenant",
        )
    if settings.http_console_requests_in_flight >= settings.http_connections_max:
        raise ConfigurationError(
            "BUCKETLOG_HTTP_CONSOLE_REQUESTS_IN_FLIGHT leaves no connection for /readyz and "
            "/metrics",
            remedy="set it to less than BUCKETLOG_HTTP_CONNECTIONS_MAX",
        )
    if not needs_login(settings):
        return
    if settings.credentials_key_file is None:
        raise ConfigurationError(
            "BUCKETLOG_CONSOLE: without a key for credentials, nobody can log in to the console",
            remedy="set BUCKETLOG_CREDENTIALS_KEY_FILE, and add a user with SCRAM-SHA-512",
        )
    if not (_is_loopback(settings.http_host) or settings.http_console_behind_tls_proxy):
        raise ConfigurationError(
            f"BUCKETLOG_CONSOLE: browsers would send passwords without TLS to {settings.http_host}",
            remedy="set BUCKETLOG_HTTP_HOST=127.0.0.1, or put a proxy with TLS in front and set "
            "BUCKETLOG_HTTP_CONSOLE_BEHIND_TLS_PROXY=true",
        )


def needs_login(settings: BrokerSettings) -> bool:
    return any(spec.has_login for spec in settings.listener_specs)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class ConsoleLogin:
    """`find` gives a user's credential. `authorizer` returns the log's authorizer, None if everyone
    may do everything."""

    def __init__(
        self,
        settings: BrokerSettings,
        find: FindCredential,
        *,
        authorizer: Callable[[], Authorizer | None],
        has_begun: Callable[[], bool],
        audit: AuditLog | None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._needs_login = needs_login(settings)
        self._delay_s = settings.login_failure_delay_ms / 1000
        self._remembered_s = settings.plain_remembered_ms / 1000
        self._authorizer = authorizer
        self._has_begun = has_begun
        self._audit = audit
        self._now_s = now_s
        self._passwords = PasswordCheck(
            find=find,
            secret=secrets.token_bytes(32),
            checks_in_flight=settings.plain_checks_in_flight,
            remembered_ms=settings.plain_remembered_ms,
            now_s=now_s,
        )
        self._seen: LruCache[tuple[str, str], float] = LruCache(SEEN_MAX)
        """Until when a user at a host has no further line in the audit log."""

    async def refusal(self, authorization: str | None, host: str, peer: str) -> HttpRefusal | None:
        """Return why the client may not see the console; None: it may. `authorization` is the
        value of the header."""
        if not self._has_begun():
            return NOT_READY
        if not self._needs_login:
            return self._missing_rights(HttpCaller(ANONYMOUS, host, peer))
        if authorization is None:
            return LOGIN_NEEDED
        user, password = _credentials(authorization)
        if not user or not await self._passwords.is_right(user, password):
            if self._audit is not None:
                reason = f"user {user!r} is unknown, or the password is wrong"
                self._audit.http_login_failed(HttpCaller(ANONYMOUS, host, peer), user, reason)
            await asyncio.sleep(self._delay_s)
            return LOGIN_FAILED
        caller = HttpCaller(f"User:{user}", host, peer)
        self._note_login(caller)
        return self._missing_rights(caller)

    def _note_login(self, caller: HttpCaller) -> None:
        if self._audit is None:
            return
        key, now_s = (caller.principal, caller.host), self._now_s()
        until_s = self._seen.find(key)
        if until_s is None or now_s >= until_s:
            self._seen.keep(key, now_s + self._remembered_s)
            self._audit.http_logged_in(caller)

    def _missing_rights(self, caller: HttpCaller) -> HttpRefusal | None:
        access = Access.of(caller.principal, caller.host, self._authorizer())
        has = (
            access.may_on_cluster(AclOperation.DESCRIBE),
            access.may_on_all_topics(AclOperation.READ),
        )
        missing = [need for need, is_there in zip(NEEDED, has, strict=True) if not is_there]
        if not missing:
            return None
        for operation, resource in missing:
            if self._audit is not None:
                self._audit.http_denied(caller, operation, resource)
        names = ", ".join(
            f"{operation.name} on {resource.type.name} '{resource.name}'"
            for operation, resource in missing
        )
        return HttpRefusal(
            403,
            f"{caller.principal} lacks rights for the console: {names}. No rule may deny them.",
        )


def _credentials(authorization: str) -> tuple[str, str]:
    """Return user and password; an empty user if the value is malformed."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != SCHEME:
        return "", ""
    try:
        user, colon, password = (
            base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
        )
    except (binascii.Error, ValueError):
        return "", ""
    return (user, password) if colon else ("", "")
