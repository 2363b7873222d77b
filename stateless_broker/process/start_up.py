"""Start and end of a broker's process: settings, logging, exit codes.

An error becomes one line on standard error, and an exit code: 0 stopped, 1 could not start,
2 configuration.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.printable import printable
from bucketlog.stateless_broker.process.log_lines import JsonLines, TextLines
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.tiered_storage.backends.s3_options import S3Options

logger = logging.getLogger(__name__)

PREFIX = "BUCKETLOG_"
LIKENESS = 0.91
NAMES_IN_LINE = 20
VALUE_CHARACTERS = 100
UNITS = {
    "bytes": "bytes",
    "ms": "milliseconds",
    "s": "units per second",
    "minute": "units per minute",
    "minutes": "minutes",
    "percent": "percent",
}
"""Units, by a word of a setting's name."""
OTHER_VARIABLES = frozenset(
    {
        *("BOOTSTRAP", "CACHE", "COMPLETE", "DATA", "IMAGE", "LOG_FORMAT", "LOG_LEVEL", "OUTPUT"),
        *("CA_FILE", "CLIENT_CERTIFICATE_FILE", "CLIENT_KEY_FILE", "CLIENT_KEY_PASSWORD_FILE"),
        *("MECHANISM", "PASSWORD", "PASSWORD_FILE", "TLS", "USERNAME", "VERIFY_HOSTNAME"),
        *("CLIENT_CONFIG", "TOKEN_CA_FILE", "TOKEN_CLIENT_ID"),
        *("TOKEN_CLIENT_SECRET_FILE", "TOKEN_FILE"),
        *("TOKEN_SCOPE", "TOKEN_URL"),
        *("PROFILE", "SCHEMA_REGISTRY_AUTH", "SCHEMA_REGISTRY_URL", "TEST_BOOTSTRAP", "WORKERS"),
    }
)
"""Variables (without the prefix) that the command line, the SDK, tests and images read."""
COMMANDS = (
    *("ACL_", "APPLY_", "BENCH_", "BROKER_", "CLIENT_", "CLUSTER_", "COMPLETION_", "CONFIG_"),
    *("CONSOLE_", "CONSUME_", "COST_", "DEADLETTER_", "DEMO_", "DEV_", "DOCTOR_", "EXPORT_"),
    *("GROUP_", "LOCATE_", "MIRROR_", "PRODUCE_", "REPLAY_", "SCHEMA_", "SEGMENT_", "SPARK_"),
    *("TABLE_", "TOPIC_", "TOP_", "TRANSACTION_", "USER_"),
)
"""Beginnings of variables for commands: each flag of a command has a variable that begins with the
command's name."""
EXIT_STOPPED, EXIT_FAILED, EXIT_CONFIGURATION = 0, 1, 2


def load_settings() -> BrokerSettings:
    """Load the settings. Raises `ConfigurationError`, which names the variable. The log names
    unknown variables, because a misspelt setting has no effect. They are not refused, because
    platforms also set such variables: Kubernetes does for a service called bucketlog."""
    for name, meant in misspelt(os.environ):
        logger.warning("unknown setting %s; did you mean %s? (docs/configuration.md)", name, meant)
    names = unknown(os.environ)
    if names:
        more = f" and {len(names) - NAMES_IN_LINE} more" if len(names) > NAMES_IN_LINE else ""
        logger.warning(
            "unknown settings without effect: %s%s (docs/configuration.md)",
            ", ".join(names[:NAMES_IN_LINE]),
            more,
        )
    try:
        return BrokerSettings()
    except ValidationError as error:
        first = error.errors()[0]
        names = [f"BUCKETLOG_{part}".upper() for part in first["loc"]]
        problem = first["msg"].removeprefix("Value error, ")
        if len(first["loc"]) == 1:
            problem = wrong_value(str(first["loc"][0]), first["input"]) or problem
        raise ConfigurationError(
            ": ".join([*names, problem]),
            remedy="set it in the environment; see docs/configuration.md",
        ) from error


def wrong_value(name: str, value: object) -> str | None:
    """Return what is wrong with the value of a numeric setting, with its unit and bounds. None for
    other settings, whose values may be secrets."""
    field = BrokerSettings.model_fields.get(name)
    text = str(field.annotation) if field is not None else ""
    if field is None or field.is_required() or not ("int" in text or "float" in text):
        return None
    bounds = {
        word: bound
        for each in _constraints(field)
        for limit, word in (("ge", "at least"), ("le", "at most"), ("lt", "below"))
        if (bound := getattr(each, limit, None)) is not None
    }
    kind = "number" if "float" in text else "whole number"
    unit = next((UNITS[word] for word in reversed(name.split("_")) if word in UNITS), "")
    limits = " and ".join(f"{word} {bound}" for word, bound in bounds.items())
    wanted = ", ".join(filter(None, [f"a {kind}{unit and f' of {unit}'}", limits]))
    return f"{str(value)[:VALUE_CHARACTERS]!r} is not {wanted} (default: {field.default})"


def _constraints(field: FieldInfo) -> Iterator[object]:
    """The constraints of a setting, and of the type in an optional setting's annotation."""
    yield from field.metadata
    for each in get_args(field.annotation):
        for metadata in getattr(each, "__metadata__", ()):
            yield from getattr(metadata, "metadata", ())


def misspelt(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Return those variables that look like a setting, each with the setting."""
    settings = [f"{PREFIX}{name}".upper() for name in BrokerSettings.model_fields]
    for name in sorted(set(names)):
        if name.startswith(PREFIX) and name not in settings:
            for meant in get_close_matches(name, settings, 1, LIKENESS):
                yield name, meant


def unknown(names: Iterable[str]) -> list[str]:
    """The variables with the prefix that no part of bucketlog reads, and that resemble no
    setting."""
    names = set(names)
    settings = {f"{PREFIX}{name}".upper() for name in BrokerSettings.model_fields}
    settings |= {f"{PREFIX}S3_{name}".upper() for name in S3Options.model_fields}
    settings |= {PREFIX + name for name in OTHER_VARIABLES}
    settings |= {name for name, _ in misspelt(names)}
    return sorted(
        name
        for name in names - settings
        if name.startswith(PREFIX) and not name.removeprefix(PREFIX).startswith(COMMANDS)
    )


def start_logging() -> None:
    """Start logging. Raises `ConfigurationError` for an unknown level or format."""
    level = os.environ.get("BUCKETLOG_LOG_LEVEL", "INFO").upper()
    if level not in logging.getLevelNamesMapping():
        raise ConfigurationError(
            f"BUCKETLOG_LOG_LEVEL: {level!r} is not a level",
            remedy="use DEBUG, INFO, WARNING, ERROR",
        )
    shape = os.environ.get("BUCKETLOG_LOG_FORMAT", "text")
    if shape not in ("text", "json"):
        raise ConfigurationError(
            f"BUCKETLOG_LOG_FORMAT: {shape!r} is not a format", remedy="use text or json"
        )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if shape == "json" else TextLines())
    logging.basicConfig(level=level, handlers=[handler])
    # Its warnings are about bad requests: any client of the port could flood the log.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)


def exit_code(run: Callable[[], int | None]) -> int:
    """Run, and return the exit code of the process."""
    try:
        start_logging()
        return run() or EXIT_STOPPED
    except ConfigurationError as error:
        sys.stderr.write(f"bucketlog broker: {printable(str(error))}\n")
        return EXIT_CONFIGURATION
    except BucketlogError as error:
        sys.stderr.write(f"bucketlog broker: {printable(str(error))}\n")
        return EXIT_FAILED
