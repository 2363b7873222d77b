"""How long, as people write it: `"7d"`, `"12h"`, `"forever"`, or a timedelta."""

import re
from datetime import timedelta
from typing import Literal, TypeAlias

from bucketlog.errors import ConfigurationError

Retention: TypeAlias = str | timedelta | Literal["forever"]
FOREVER_MS = -1
EXPECTED = 'write it as "7d", "12h", "30m", "45s", "500ms", "2w", "forever", or give a timedelta'

MS_BY_UNIT = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_MS_MAX = 2**63 - 1
_TEXT = re.compile(rf"(\d{{1,19}})\s*({'|'.join(MS_BY_UNIT)})", re.ASCII)


def retention_ms(retention: Retention) -> int:
    """Kafka's `retention.ms`. Raises `ConfigurationError`, which names what is expected."""
    if retention == "forever":
        return FOREVER_MS
    if isinstance(retention, timedelta):
        milliseconds = retention // timedelta(milliseconds=1)
    else:
        found = _TEXT.fullmatch(str(retention).strip())
        milliseconds = int(found[1]) * MS_BY_UNIT[found[2]] if found else 0
    if not 0 < milliseconds <= _MS_MAX:
        raise ConfigurationError(f"{retention!r} is no retention", remedy=EXPECTED)
    return milliseconds
