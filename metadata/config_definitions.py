"""A part of Kafka's ConfigDef: the type of a config, its values from text, and its checks.

A value is stored in canonical form, as Kafka describes it: `" +7 "` becomes 7, `"a , b"` becomes
`a,b`. Source: Kafka 4.3's ConfigDef (parseType, convertToString, Range, ValidString,
ValidList), and what Java accepts as a number. Errors have Kafka's words.
"""

import math
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

from bucketlog.log_format.errors import InvalidConfigError

VALUE_CHARACTERS_MAX = 1_000
"""Longest text of a value. Without a limit, a list could repeat its words, and a fraction could
have any number of digits. Facts and checkpoints store values; old versions of DescribeConfigs
encode at most 32,767 bytes."""
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SHORT_MAX = 2**15 - 1

Value: TypeAlias = bool | int | float | str | tuple[str, ...]


class Check(Protocol):
    def __call__(self, name: str, value: Value) -> str | None:
        """The error message for a value that is refused."""

    def __str__(self) -> str:
        """The accepted values, for documents."""


_TRIMMED = "".join(map(chr, range(0x21)))
"""The characters that Java's String.trim removes."""
_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_HEXADECIMAL = re.compile(
    r"([+-]?)0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP]([+-]?[0-9]+)[fFdD]?"
)
_WORD = re.compile(r"([+-]?)(NaN|Infinity)[fFdD]?")
_EXPONENT_DIGITS_MAX = 6
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7
"""Java writes numbers in this range without an exponent."""


class ConfigType(IntEnum):
    """Types of configs, with their numbers in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_BOUNDS = {
    ConfigType.SHORT: SHORT_MAX,
    ConfigType.INT: INT_MAX,
    ConfigType.LONG: LONG_MAX,
}


@dataclass(frozen=True, slots=True)
class AnyValue:
    """The check of a config that takes all values of its type."""

    def __call__(self, name: str, value: Value) -> None:
        return None

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """The definition of a config. `no_effect`: why the config changes nothing here; empty for a
    config that has an effect."""

    name: str
    config_type: ConfigType
    default: str
    documentation: str
    check: Check = AnyValue()
    no_effect: str = ""

    def canonical(self, text: str) -> str:
        """The value as Kafka describes it. Raises `InvalidConfigError`."""
        if len(text) > VALUE_CHARACTERS_MAX:
            raise InvalidConfigError(
                f"invalid value of {len(text)} characters for configuration {self.name}",
                remedy=f"use at most {VALUE_CHARACTERS_MAX}",
            )
        value = _parsed(self.name, self.config_type, text.strip(_TRIMMED))
        problem = self.check(self.name, value)
        if problem is not None:
            raise InvalidConfigError(problem)
        if isinstance(value, tuple) and isinstance(self.check, ListOf):
            value = tuple(dict.fromkeys(value))
        return text_of(value)


def text_of(value: Value) -> str:
    """Return the value as text, as Kafka's ConfigDef.convertToString does."""
    match value:
        case bool():
            return str(value).lower()
        case int() | str():
            return str(value)
        case float():
            return java_double(value)
        case tuple():
            return ",".join(value)


def invalid(name: str, value: Value, reason: str) -> str:
    """Kafka's message for a value that is refused (ConfigException)."""
    told = f"[{', '.join(value)}]" if isinstance(value, tuple) else text_of(value)
    return f"Invalid value {told} for configuration {name}: {reason}"


def _parsed(name: str, config_type: ConfigType, text: str) -> Value:
    match config_type:
        case ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                reason = "Expected value to be either true or false"
                raise InvalidConfigError(invalid(name, text, reason))
            return text.lower() == "true"
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            number = int(text) if _INTEGER.fullmatch(text) else None
            bound = _BOUNDS[config_type]
            if number is None or not -bound - 1 <= number <= bound:
                reason = f"Not a number of type {config_type.name}"
                raise InvalidConfigError(invalid(name, text, reason))
            return number
        case ConfigType.DOUBLE:
            double = _double(text)
            if double is None:
                raise InvalidConfigError(invalid(name, text, "Not a number of type DOUBLE"))
            return double
        case ConfigType.LIST:
            return tuple(_COMMA.split(text)) if text else ()
        case _:
            return text


def _double(text: str) -> float | None:
    """Parse a number as Java's Double.parseDouble does. None: the text is not a number."""
    if (word := _WORD.fullmatch(text)) is not None:
        return float(word[1] + word[2])
    if _DECIMAL.fullmatch(text) is not None:
        return float(text.rstrip("fFdD"))
    found = _HEXADECIMAL.fullmatch(text)
    if found is None:
        return None
    sign, digits, exponent = found[1], found[2], found[3]
    if len(exponent.lstrip("+-0")) > _EXPONENT_DIGITS_MAX:
        is_small = exponent.startswith("-") or not digits.strip("0.")
        return float(f"{sign}0" if is_small else f"{sign}inf")
    try:
        return float.fromhex(f"{sign}0x{digits}p{exponent}")
    except OverflowError:
        return float(f"{sign}inf")


def java_double(value: float) -> str:
    """Return the number as text, as Java's Double.toString does: 1.0E-5, 0.5, Infinity."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return repr(value)
    mantissa, _, exponent = f"{value:.16e}".partition("e")
    for digits in range(17):
        mantissa, _, exponent = f"{value:.{digits}e}".partition("e")
        if float(f"{mantissa}e{exponent}") == value:
            break
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


@dataclass(frozen=True, slots=True)
class Range:
    """Both bounds are accepted. `high` None: only the type limits the value."""

    low: int
    high: int | None = None

    def __call__(self, name: str, value: Value) -> str | None:
        assert isinstance(value, int | float)
        if value < self.low:
            return invalid(name, value, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            return invalid(name, value, f"Value must be no more than {self.high}")
        return None

    def __str__(self) -> str:
        return f"{self.low} or more" if self.high is None else f"{self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class OneOf:
    words: tuple[str, ...]

    def __call__(self, name: str, value: Value) -> str | None:
        if value in self.words:
            return None
        return invalid(name, value, f"String must be one of: {', '.join(self.words)}")

    def __str__(self) -> str:
        return ", ".join(self.words)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of these words. It may be empty."""

    words: tuple[str, ...]

    def __call__(self, name: str, value: Value) -> str | None:
        assert isinstance(value, tuple)
        for word in value:
            if not word:
                return f"Configuration '{name}' values must not be empty."
            problem = OneOf(self.words)(name, word)
            if problem is not None:
                return problem
        return None

    def __str__(self) -> str:
        return f"a list of: {', '.join(self.words)}"
