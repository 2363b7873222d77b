"""The audit log: who logged in, whose session ended, who changed what, and who was refused.

Invariants: each change that is answered as made has its line, whatever a client sends; failed
logins, denials and changes with an error are bounded per client and second, and in all, and a line
counts the rest. No line has a password, a token or the value of a refused setting. The length of a
line is bounded.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import RequestT, ResponseT
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.acls import Resource
from bucketlog.stateless_broker.authentication.login import Login
from bucketlog.stateless_broker.network.bounded_lines import BoundedLines, LineLimits
from bucketlog.stateless_broker.network.connection import ANONYMOUS, Connection

if TYPE_CHECKING:
    from bucketlog.stateless_broker.network.apis import (
        Answer,
        Api,
        Request,
        RequestHeader,
        WrittenResponse,
    )

logger = logging.getLogger("bucketlog.audit")

TEXT_CHARS_MAX = 300
CHANGES_A_LINE = 50
CHANGES_CHARS_MAX = 20_000
"""A line that has this much of changes gets no further change."""
BY_CERTIFICATE = "certificate"
BY_BASIC = "BASIC"
HTTP_LISTENER = "HTTP"
"""The mechanism and the listener of logins to the console."""
UNKNOWN_OUTCOME = "UNKNOWN"
RIGHTS_MISSING = frozenset(
    {
        ErrorCode.topic_authorization_failed,
        ErrorCode.group_authorization_failed,
        ErrorCode.cluster_authorization_failed,
        ErrorCode.transactional_id_authorization_failed,
    }
)
"""The errors of changes that ACLs deny. A line `denied` shows such a change."""


class Change(NamedTuple):
    """A change that a request asks for. `error` None: the request failed, and nobody knows whether
    the change was made."""

    resource: str
    name: str
    error: ErrorCode | None
    details: Mapping[str, object] = {}

    def row(self) -> dict[str, object]:
        error = self.error
        result = UNKNOWN_OUTCOME if error is None else "ok" if not error else error.name.upper()
        details = {name: _shown(value) for name, value in self.details.items()}
        return {"resource": self.resource, "name": cut(self.name), "result": result} | details


class HttpCaller(NamedTuple):
    """A client of the HTTP port, without tenants. `peer` is its address and port."""

    principal: str
    host: str
    peer: str


class _Session(NamedTuple):
    mechanism: str
    since_s: float


class _Bounds(NamedTuple):
    strangers: BoundedLines
    known: BoundedLines


class AuditLog:
    """`limits` are those of strangers, whom a host identifies, and again those of known principals.
    So strangers cannot hide what known principals do. Each tenant has these limits for itself."""

    def __init__(self, limits: LineLimits, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._limits = limits
        self._bounds: dict[str, _Bounds] = {}
        """Bounds by tenant. The name is empty without tenants."""
        self._sessions: dict[int, _Session] = {}
        """Sessions by the identity of open connections whose client is known."""
        self._last_denied: tuple[RequestHeader, AclOperation, Resource] | None = None

    async def watch(
        self, api: "Api[RequestT, ResponseT]", request: "Request", message: RequestT
    ) -> "ResponseT | WrittenResponse":
        """The handler's response. The audit log has it before the client."""
        connection, header = request.connection, request.header
        answer: Answer = None
        try:
            answer = response = await api.handler(request, message)
        finally:
            if api.audit is not None:
                await self.changed(connection, header, api.audit(message, answer))
        if api.login and connection.login is not None and isinstance(answer, Mapping):
            self._login_step(connection, header, connection.login, answer["error_code"])
        return response

    def _login_step(
        self, connection: Connection, header: "RequestHeader", login: Login, error: object
    ) -> None:
        """Log the end of a login, if the request has ended it. `error` is the answer's."""
        if login.failure is not None:
            self.login_failed(
                connection, login.failure, header, mechanism=login.mechanism, user=login.claimed
            )
        elif login.is_done and not error and header.api_key is ApiKey.SASL_AUTHENTICATE:
            self.logged_in(connection, login.mechanism, header)

    def logged_in(
        self, connection: Connection, mechanism: str, header: "RequestHeader | None" = None
    ) -> None:
        again = id(connection) in self._sessions
        if not again and not connection.is_gone:
            self._sessions[id(connection)] = _Session(mechanism, self._now_s())
        row = _caller(connection, header) | {"mechanism": mechanism, "again": again}
        by = mechanism
        if connection.login is not None and connection.login.token_id is not None:
            row["token"] = cut(connection.login.token_id)
            by = f"{mechanism} with the token {row['token']}"
        text = f"{row['principal']} logged in by {by}{' again' if again else ''}"
        _write("login", text, row)

    def login_failed(
        self,
        connection: Connection,
        reason: str,
        header: "RequestHeader | None" = None,
        *,
        mechanism: str = "",
        user: str | None = None,
    ) -> None:
        tenant = connection.service.tenant
        if not self._has_room(tenant, self._bounds_of(tenant).strangers, connection.host):
            return
        row = _caller(connection, header) | {"mechanism": cut(mechanism), "reason": cut(reason)}
        if user is not None:
            row["user"] = cut(user)
        _write("login_failed", f"login failed: {cut(reason)}", row, level=logging.WARNING)

    def http_logged_in(self, caller: HttpCaller) -> None:
        row = _http_caller(caller) | {"mechanism": BY_BASIC, "again": False}
        _write("login", f"{row['principal']} logged in by {BY_BASIC}", row)

    def http_login_failed(self, caller: HttpCaller, user: str, reason: str) -> None:
        """A login of a client that wants to be `user` has failed."""
        if self._has_room("", self._bounds_of("").strangers, caller.host):
            row = _http_caller(caller) | {"mechanism": BY_BASIC, "reason": cut(reason)}
            text = f"login failed: {cut(reason)}"
            _write("login_failed", text, row | {"user": cut(user)}, level=logging.WARNING)

    def http_denied(self, caller: HttpCaller, operation: AclOperation, resource: Resource) -> None:
        if self._has_room("", self._bounds_of("").known, caller.principal):
            _write_denied(_http_caller(caller), operation, resource)

    def ended(self, connection: Connection, reason: str) -> None:
        """The connection ends. For a connection that has ended already, there is no line."""
        session = self._sessions.pop(id(connection), None)
        if session is None:
            login = connection.login
            if login is not None and reason in (login.complaint, login.rules.too_slow):
                self.login_failed(connection, reason)
            return
        seconds = round(self._now_s() - session.since_s, 3)
        row = _caller(connection, None) | {
            "mechanism": session.mechanism,
            "reason": cut(reason),
            "seconds": seconds,
        }
        text = f"the session of {row['principal']} ended after {seconds} s: {cut(reason)}"
        _write("session_end", text, row)

    async def changed(
        self, connection: Connection, header: "RequestHeader", changes: Iterable[Change]
    ) -> None:
        """Write the changes that were made, or refused. A long list has several lines."""
        shown = (each for each in changes if self._is_shown(connection, each))
        for rows in _lines_of(shown):
            text = ", ".join(f"{row['resource']} {row['name']!r}: {row['result']}" for row in rows)
            row = _caller(connection, header) | {"changes": rows}
            _write("change", f"{row['api']} by {row['principal']}: {text}", row)
            await asyncio.sleep(0)

    def _is_shown(self, connection: Connection, change: Change) -> bool:
        if not change.error:  # None, too: the change may have been made
            return True
        return change.error not in RIGHTS_MISSING and self._has_room_for(connection)

    def denied(
        self,
        connection: Connection,
        header: "RequestHeader",
        operation: AclOperation,
        resource: Resource,
    ) -> None:
        """ACLs deny the operation. A request that asks for the same right again and again, as for
        each partition of a topic, has one line."""
        last = self._last_denied
        is_again = last is not None and last[0] is header and last[1:] == (operation, resource)
        if is_again or not self._has_room_for(connection):
            return
        self._last_denied = header, operation, resource
        _write_denied(_caller(connection, header), operation, resource)

    def look(self) -> None:
        """Write the number of lines that the last second left out."""
        for tenant, bounds in self._bounds.items():
            for lines in bounds:
                self._count_left_out(tenant, lines)

    def close(self) -> None:
        """Write the number of lines that were left out until now."""
        for tenant, bounds in self._bounds.items():
            for lines in bounds:
                left_out = lines.take_all_left_out()
                if left_out is not None:
                    _write_left_out(tenant, *left_out)

    def _bounds_of(self, tenant: str) -> "_Bounds":
        found = self._bounds.get(tenant)
        if found is None:
            limits, now_s = self._limits, self._now_s()
            found = _Bounds(BoundedLines(limits, now_s), BoundedLines(limits, now_s))
            self._bounds[tenant] = found
        return found

    def _has_room_for(self, connection: Connection) -> bool:
        """Return whether a line about the client may be written, as `BoundedLines.has_room` does.
        The client may be known or a stranger."""
        tenant = connection.service.tenant
        bounds = self._bounds_of(tenant)
        if connection.principal == ANONYMOUS:
            return self._has_room(tenant, bounds.strangers, connection.host)
        return self._has_room(tenant, bounds.known, connection.principal)

    def _has_room(self, tenant: str, lines: BoundedLines, client: str) -> bool:
        self._count_left_out(tenant, lines)
        return lines.has_room(client)

    def _count_left_out(self, tenant: str, lines: BoundedLines) -> None:
        left_out = lines.take_left_out(self._now_s())
        if left_out is not None:
            _write_left_out(tenant, *left_out)


def _lines_of(changes: Iterable[Change]) -> Iterator[list[dict[str, object]]]:
    """Rows of changes, by line."""
    rows: list[dict[str, object]] = []
    chars = 0
    for each in changes:
        row = each.row()
        rows.append(row)
        chars += len(str(row))
        if len(rows) >= CHANGES_A_LINE or chars >= CHANGES_CHARS_MAX:
            yield rows
            rows, chars = [], 0
    if rows:
        yield rows


def cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[: TEXT_CHARS_MAX - 1]}…"


def _shown(value: object) -> object:
    return cut(value) if isinstance(value, str) else value


def _caller(connection: Connection, header: "RequestHeader | None") -> dict[str, object]:
    found: dict[str, object] = {
        "principal": cut(connection.principal),
        "host": connection.host,
        "client": connection.peer,
        "listener": connection.listener,
    }
    if connection.service.tenant:
        found["tenant"] = connection.service.tenant
    if header is not None:
        found |= {
            "client_id": cut(header.client_id),
            "api": ApiKey(header.api_key).message_name,
            "correlation_id": header.correlation_id,
        }
    return found


def _http_caller(caller: HttpCaller) -> dict[str, object]:
    return {
        "principal": cut(caller.principal),
        "host": caller.host,
        "client": caller.peer,
        "listener": HTTP_LISTENER,
    }


def _write_denied(row: dict[str, object], operation: AclOperation, resource: Resource) -> None:
    row |= {
        "operation": operation.name,
        "resource": resource.type.name.lower(),
        "resource_name": cut(resource.name),
    }
    what = f"{row['operation']} on {row['resource']} {row['resource_name']!r}"
    _write("denied", f"{what} is denied to {row['principal']}", row, level=logging.WARNING)


def _write_left_out(tenant: str, total: int, clients: dict[str, int]) -> None:
    text = f"{total} more failed logins, denials and refused changes have no line"
    named = {cut(name): number for name, number in clients.items()}
    row: dict[str, object] = {"count": total, "clients": named}
    if tenant:
        row["tenant"] = tenant
    _write("left_out", text, row, level=logging.WARNING)


def _write(event: str, text: str, row: dict[str, object], *, level: int = logging.INFO) -> None:
    """The message has who and where, for logs of text; the fields have all."""
    where = f" ({row['host']}, listener {row['listener']})" if "host" in row else ""
    if "tenant" in row:
        text = f"tenant {row['tenant']}: {text}"
    logger.log(level, "%s%s", text, where, extra={"event": event, **row})
