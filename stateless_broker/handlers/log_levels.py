"""The levels of this broker's loggers: the resource BROKER_LOGGER.

Invariant: a level holds until the broker ends; it is not in the log. Source: KIP-412; Kafka 4.3's
LoggingController and ConfigAdminManager (levels, errors). Python has no level TRACE: below it,
nothing is left out.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence

from bucketlog.log_format.errors import ConfigRefusedError, InvalidConfigError
from bucketlog.log_format.wire.messages.describe_configs import DescribeConfigsResourceResult
from bucketlog.stateless_broker.handlers.described_configs import described

ROOT = "root"
PACKAGE = "bucketlog"
"""Above the loggers of all modules."""
SOURCE_LOGGER = 6
TRACE = 5
LEVELS: Mapping[str, int] = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": TRACE,
    "WARN": logging.WARNING,
}


def described_loggers() -> Iterator[DescribeConfigsResourceResult]:
    for name, logger in sorted(_loggers().items()):
        level = _name_of(logger.getEffectiveLevel())
        yield described(name, level, [], source=SOURCE_LOGGER)


def check_levels(changes: Sequence[tuple[str, str | None]]) -> None:
    """Check changes of log levels. Each has a logger and its level; None: the level of the logger
    above it. Raises `InvalidConfigError`, `ConfigRefusedError`."""
    known = _loggers()
    for name, level in changes:
        if name not in known:
            raise InvalidConfigError(f"Logger {name} does not exist!")
        if level is None and name == ROOT:
            raise ConfigRefusedError("Removing the log level of the root logger is not allowed")
        if level is not None and level not in LEVELS:
            raise InvalidConfigError(
                f"Cannot set the log level of {name} to {level} as it is not a supported log "
                f"level. Valid log levels are {', '.join(LEVELS)}"
            )


def set_levels(changes: Sequence[tuple[str, str | None]]) -> None:
    """Set log levels that `check_levels` has accepted."""
    known = _loggers()
    for name, level in changes:
        known[name].setLevel(logging.NOTSET if level is None else LEVELS[level])


def _loggers() -> dict[str, logging.Logger]:
    found = logging.Logger.manager.loggerDict.items()
    return {
        ROOT: logging.getLogger(),
        PACKAGE: logging.getLogger(PACKAGE),
        **{name: logger for name, logger in found if isinstance(logger, logging.Logger)},
    }


def _name_of(level: int) -> str:
    """The nearest level at or above it."""
    ordered = sorted(LEVELS.items(), key=lambda item: item[1])
    return next((name for name, number in ordered if number >= level), "FATAL")
