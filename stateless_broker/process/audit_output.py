"""Output of the audit log's lines.

Invariant: the level of the log does not hide these lines, and a file of them belongs to its owner
alone.
"""

import logging
import os
from logging.handlers import WatchedFileHandler

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.private_files import make_file
from bucketlog.stateless_broker.network.audit import AuditLog, logger
from bucketlog.stateless_broker.network.bounded_lines import LineLimits
from bucketlog.stateless_broker.process.log_lines import JsonLines
from bucketlog.stateless_broker.settings.audit import NORMAL_LOG, NOWHERE
from bucketlog.stateless_broker.settings.broker import BrokerSettings


class _PrivateFileHandler(WatchedFileHandler):
    """Writes to a private file. Begins a new file when somebody has moved the old one away, as
    logrotate does."""

    def _open(self):  # type: ignore[no-untyped-def]  # the type of its stream is not public
        os.close(make_file(self.baseFilename, os.O_WRONLY | os.O_APPEND))
        return super()._open()


def open_audit_log(settings: BrokerSettings) -> AuditLog | None:
    """Open the audit log. Returns None if it is off. Raises `ConfigurationError`."""
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    place = settings.audit_log
    if place == NOWHERE:
        return None
    logger.setLevel(logging.INFO)
    logger.propagate = place == NORMAL_LOG
    if place != NORMAL_LOG:
        try:
            opened = _PrivateFileHandler(place, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(
                f"BUCKETLOG_AUDIT_LOG: the file {place} cannot be written: {error.strerror}",
                remedy="give the path of a file in a folder of this user, 'log' or 'off'",
            ) from error
        opened.setFormatter(JsonLines())
        logger.addHandler(opened)
    return AuditLog(
        LineLimits(settings.audit_refusals_per_client_per_s, settings.audit_refusals_per_s)
    )
