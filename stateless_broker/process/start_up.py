"""What a process of a broker does first and last: settings, logging, exit codes.

An error becomes one line on standard error, and an exit code: 0 stopped, 1 could not start,
2 configuration.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches

from pydantic import ValidationError

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.stateless_broker.process.log_lines import JsonLines
from bucketlog.stateless_broker.settings import BrokerSettings

logger = logging.getLogger(__name__)

PREFIX = "BUCKETLOG_"
LIKENESS = 0.91
EXIT_STOPPED, EXIT_FAILED, EXIT_CONFIGURATION = 0, 1, 2


def load_settings() -> BrokerSettings:
    """Raises `ConfigurationError` that names the variable. One that is almost a setting's name is
    told: nothing else would say that it is not heard."""
    for name, meant in misspelt(os.environ):
        logger.warning("%s is no setting: is %s meant? (docs/configuration.md)", name, meant)
    try:
        return BrokerSettings()
    except ValidationError as error:
        first = error.errors()[0]
        names = [f"BUCKETLOG_{part}".upper() for part in first["loc"]]
        raise ConfigurationError(
            ": ".join([*names, first["msg"].removeprefix("Value error, ")]),
            remedy="set it in the environment; see docs/configuration.md",
        ) from error


def misspelt(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Of the variables those that look like a setting, and the setting."""
    settings = [f"{PREFIX}{name}".upper() for name in BrokerSettings.model_fields]
    for name in sorted(set(names)):
        if name.startswith(PREFIX) and name not in settings:
            for meant in get_close_matches(name, settings, 1, LIKENESS):
                yield name, meant


def start_logging() -> None:
    """Raises `ConfigurationError` for a level or a format that is none."""
    level = os.environ.get("BUCKETLOG_LOG_LEVEL", "INFO").upper()
    if level not in logging.getLevelNamesMapping():
        raise ConfigurationError(
            f"BUCKETLOG_LOG_LEVEL: {level!r} is no level", remedy="use DEBUG, INFO, WARNING, ERROR"
        )
    shape = os.environ.get("BUCKETLOG_LOG_FORMAT", "text")
    if shape not in ("text", "json"):
        raise ConfigurationError(
            f"BUCKETLOG_LOG_FORMAT: {shape!r} is no format", remedy="use text or json"
        )
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonLines() if shape == "json" else text)
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def exit_code(run: Callable[[], int | None]) -> int:
    """That of a process that does `run`; None is 0."""
    try:
        start_logging()
        return run() or EXIT_STOPPED
    except ConfigurationError as error:
        sys.stderr.write(f"bucketlog broker: {error}\n")
        return EXIT_CONFIGURATION
    except BucketlogError as error:
        sys.stderr.write(f"bucketlog broker: {error}\n")
        return EXIT_FAILED
