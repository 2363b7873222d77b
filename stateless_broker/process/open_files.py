"""The process' limit of open files, and the connections that fit.

Each connection is a file descriptor. Without a free one, a broker can neither accept connections
nor reach Redis and the bucket. Invariant: when all client connections are open,
`open_files_reserved` descriptors and those of the HTTP port are left. If the limit is very small,
only half of the limit is left.
"""

import errno
import logging
import os
import resource
from collections.abc import Callable

from bucketlog.stateless_broker.settings.broker import BrokerSettings

logger = logging.getLogger(__name__)

WARNING_INTERVAL_S = 60.0
OPEN_FILES_A_TENANT = 24
"""Connections to Redis and to the bucket, most of them under load only."""


def raise_open_files_limit() -> int:
    """Raise the soft limit to the hard limit if the system permits it. Returns the new limit, -1
    for none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS accepts no unlimited soft limit
            return soft
    return hard


def within_open_files(settings: BrokerSettings, limit: int, *, tenants: int = 0) -> BrokerSettings:
    """The settings, with `connections_max` reduced to what the limit of open files allows. Warns if
    the value was reduced. `tenants`: how many logs there are beside the first."""
    if limit == resource.RLIM_INFINITY:
        return settings
    reserved = settings.open_files_reserved + settings.http_connections_max
    reserved += tenants * OPEN_FILES_A_TENANT
    fitting = max(limit - reserved, limit // 2, 1)
    if settings.connections_max <= fitting:
        return settings
    logger.warning(
        "this process may open %d files, which is too few for %d connections "
        "(BUCKETLOG_CONNECTIONS_MAX): it accepts %d. Raise the hard limit to %d (ulimit -Hn, "
        "LimitNOFILE of systemd, --ulimit nofile of containers), or lower the setting",
        limit,
        settings.connections_max,
        fitting,
        settings.connections_max + reserved,
    )
    return settings.model_copy(update={"connections_max": fitting})


class OpenFilesWatch:
    """Logs that no descriptor is free. uvloop then closes new connections silently, and accepts
    connections again when descriptors are free. `open_one` opens and closes a file."""

    def __init__(
        self, *, now_s: Callable[[], float], open_one: Callable[[], None] | None = None
    ) -> None:
        self._now_s = now_s
        self._open_one = open_one or _open_one
        self._next_line_s = float("-inf")
        self.exhausted = 0
        """The number of checks that found no free descriptor."""

    def look(self) -> None:
        try:
            self._open_one()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                return
            self.exhausted += 1
            if self._now_s() >= self._next_line_s:
                self._next_line_s = self._now_s() + WARNING_INTERVAL_S
                logger.error(
                    "no file can be opened (%s): new connections are closed. Raise the limit of "
                    "open files (ulimit -n), or BUCKETLOG_OPEN_FILES_RESERVED",
                    error.strerror,
                )


def _open_one() -> None:
    os.close(os.open(os.devnull, os.O_RDONLY))
