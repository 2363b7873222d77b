"""A broker's log as lines of JSON, for those who collect logs: one object a line.

`time` (RFC 3339, UTC), `level`, `logger`, `message`, `exception` where there is one, and what the
line tells besides, such as `client_id` and `correlation_id` of a request.
"""

import json
import logging
from datetime import UTC, datetime

_OWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        row: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            row["exception"] = self.formatException(record.exc_info)
        row.update((name, value) for name, value in record.__dict__.items() if name not in _OWN)
        return json.dumps(row, ensure_ascii=False, default=str)
