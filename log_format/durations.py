"""Durations as people write them: one grammar for the SDK, the command line and files.

    duration = number unit        "7d", "7 d", "1.5h", "90s", "250ms", "0s"
    number   = ASCII digits, with or without a decimal fraction
    unit     = "ms" | "s" | "m" | "h" | "d" | "w"

Blanks around the number and the unit are ignored. A duration is a whole number of milliseconds,
zero or more. A number without a unit is refused: settings that take one name the unit.
"""

import re
from fractions import Fraction

from bucketlog.log_format.errors import ConfigurationError

EXAMPLES = "7d, 1.5h, 30m, 90s, 250ms"

_MS_BY_UNIT = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_MS_MAX = 2**63 - 1
_TEXT = re.compile(
    rf"\s*([0-9]{{1,19}}(?:\.[0-9]{{1,19}})?)\s*({'|'.join(_MS_BY_UNIT)})\s*", re.ASCII
)


def is_duration(text: str) -> bool:
    """Whether `text` is a number and a unit; `parse_duration_ms` may still refuse its size."""
    return _TEXT.fullmatch(text) is not None


def parse_duration_ms(text: str) -> int:
    """Raises a `ConfigurationError` that says what is wrong with `text`."""
    found = _TEXT.fullmatch(text)
    if found is None:
        raise ConfigurationError(f"{text!r} is not a duration", remedy=f"write it as {EXAMPLES}")
    length_ms = Fraction(found[1]) * _MS_BY_UNIT[found[2]]
    if length_ms.denominator != 1:
        raise ConfigurationError(
            f"{text!r} is not a whole number of milliseconds", remedy=f"write it as {EXAMPLES}"
        )
    if length_ms > _MS_MAX:
        raise ConfigurationError(
            f"{text!r} is longer than {_MS_MAX} ms", remedy=f"write it as {EXAMPLES}"
        )
    return int(length_ms)


def format_duration(length_ms: int) -> str:
    """The inverse of `parse_duration_ms`, in the largest unit up to days that divides it."""
    for unit in ("d", "h", "m", "s"):
        if length_ms and length_ms % _MS_BY_UNIT[unit] == 0:
            return f"{length_ms // _MS_BY_UNIT[unit]}{unit}"
    return f"{length_ms}ms"
