"""A broker's log: lines of text for people, or lines of JSON for log collectors.

Invariant: text from clients (client ids, group ids) cannot begin a line or steer a terminal. All
control characters are escaped, except line feeds and tabs of a traceback.

A JSON object has `time` (RFC 3339, UTC), `level`, `logger`, `message`, and `exception` if there is
one. It also has the line's own fields, such as `client_id` and `correlation_id` of a request, and
`tenant` for what a broker does for the log of a tenant.
"""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import TypeAlias

from bucketlog.log_format.printable import printable, printable_json, printable_lines

TENANT: ContextVar[str] = ContextVar("tenant", default="")
"""The tenant whose log the running task works for."""
_OWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


_ExceptionInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class TextLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        tenant = "" if hasattr(record, "tenant") else TENANT.get()
        text = printable(super().formatMessage(record))
        return f"{text} (tenant {tenant})" if tenant else text

    def formatException(self, ei: _ExceptionInfo) -> str:  # noqa: N802 - logging's name
        return printable_lines(super().formatException(ei))


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        row: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if tenant := TENANT.get():
            row["tenant"] = tenant
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        row.update((name, value) for name, value in record.__dict__.items() if name not in _OWN)
        return printable_json(json.dumps(row, ensure_ascii=False, default=str))
