"""JSON values become values of typed columns, exactly or not at all. Pure.

Invariant: a conversion keeps the value, or raises `BadValueError`. Nothing is rounded, cut or
guessed; of `float` and `double` alone the nearest number is taken. docs/lake.md has the rules as a
table.
"""

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.types as kinds

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.tables.json_text import BadValueError, kind_of

EpochUnit: TypeAlias = Literal["seconds", "milliseconds", "microseconds"]
Convert: TypeAlias = Callable[[Any], Any]
SimpleConverter: TypeAlias = Callable[[pa.DataType, str, "TimeRules"], Convert]
"""Returns the function that converts values at a path to a type without members."""

EPOCH_MICROSECONDS: Mapping[EpochUnit, int] = {
    "seconds": 1_000_000,
    "milliseconds": 1_000,
    "microseconds": 1,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of a column without a time zone
_DAY_MICROSECONDS = 86_400_000_000
_EXPONENT_MAX = 400
_EPOCH_DIGITS_MAX = 20
"""So that the product with a unit is exact: a Decimal's context keeps 28 digits."""
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?"
    r"(Z|[+-]\d{2}:\d{2})?",
    re.ASCII,
)
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_FLOAT, _DOUBLE, _DOUBLE_BITS = struct.Struct("<f"), struct.Struct("<d"), struct.Struct("<q")
_FLOAT_MAX = _FLOAT.unpack(b"\xff\xff\x7f\x7f")[0]


@dataclass(frozen=True, slots=True)
class TimeRules:
    """Rules by which numbers become timestamps. `epoch_units` are by field path, as in `order.at`;
    `epoch_unit` is for all other fields. Without a unit, a number is refused. A number is also
    refused if the time is before `earliest` or not before `latest`: then the unit is probably
    another one."""

    epoch_unit: EpochUnit | None = None
    epoch_units: Mapping[str, EpochUnit] = field(default_factory=dict)
    earliest: date = date(1971, 1, 1)
    latest: date = date(2100, 1, 1)

    def __post_init__(self) -> None:
        """Raises `ConfigurationError`."""
        for unit in filter(None, (self.epoch_unit, *self.epoch_units.values())):
            if unit not in get_args(EpochUnit):
                raise ConfigurationError(
                    f"the epoch unit {unit!r}", remedy=f"choose {', '.join(get_args(EpochUnit))}"
                )
        if self.earliest >= self.latest:
            raise ConfigurationError(
                f"the earliest time {self.earliest} is not before the latest, {self.latest}"
            )


def converter(
    kind: pa.DataType, path: str, times: TimeRules, simple: SimpleConverter | None = None
) -> Convert:
    """Return the function that converts a value, other than null, at `path` to `kind`.

    `simple` makes the functions for types without members. The default is `json_simple`. Raises
    `ConfigurationError` for a type that a table cannot have."""
    simple = simple or json_simple
    if kinds.is_struct(kind):
        return _structure(kind, path, times, simple)
    if kinds.is_list(kind):
        element = nullable(converter(kind.value_type, f"{path}[]", times, simple))
        return lambda found: [element(each) for each in _expect(list, found, path)]
    if kinds.is_map(kind):
        if not kinds.is_string(kind.key_type):
            raise _unsupported(kind, path)
        member = nullable(converter(kind.item_type, f"{path}{{}}", times, simple))
        return lambda found: [(name, member(each)) for name, each in _object(found, path).items()]
    return simple(kind, path, times)


def json_simple(kind: pa.DataType, path: str, times: TimeRules) -> Convert:
    """Return the function that converts a JSON value to a type without members. Raises
    `ConfigurationError`."""
    if kinds.is_string(kind):
        return lambda found: _text(found, path)
    if kinds.is_boolean(kind):
        return lambda found: _expect(bool, found, path)
    if kinds.is_signed_integer(kind):
        bound = 1 << (kind.bit_width - 1)
        return lambda found: _integer(found, path, bound)
    if kinds.is_float64(kind):
        return lambda found: _double(found, path, math.inf)
    if kinds.is_float32(kind):
        return lambda found: _float(found, path)
    if kinds.is_decimal(kind):
        return lambda found: _decimal(found, path, kind.precision, kind.scale)
    if kinds.is_binary(kind):
        return lambda found: _bytes(found, path)
    if kinds.is_date32(kind):
        return lambda found: _date(_expect(str, found, path), path)
    if kinds.is_timestamp(kind):
        unit = times.epoch_units.get(path, times.epoch_unit)
        allowed = epoch_bounds(times)
        in_zone = kind.tz is not None
        return lambda found: _timestamp(found, path, unit, allowed, in_zone=in_zone)
    raise _unsupported(kind, path)


def epoch_bounds(times: TimeRules) -> range:
    """Return the range of microseconds since 1970 that timestamps in numbers may have."""
    return range(_micros(times.earliest), _micros(times.latest))


def nullable(convert: Convert) -> Convert:
    """`convert`, and null is null."""
    return lambda found: None if found is None else convert(found)


def _unsupported(kind: pa.DataType, path: str) -> ConfigurationError:
    return ConfigurationError(
        f"field {path} has the type {kind}, which is not supported",
        remedy="see the table of conversions in docs/lake.md",
    )


def _structure(kind: pa.DataType, path: str, times: TimeRules, simple: SimpleConverter) -> Convert:
    members = [
        (each.name, nullable(converter(each.type, f"{path}.{each.name}", times, simple)))
        for each in kind
    ]

    def convert(found: Any) -> dict[str, Any]:
        given = _object(found, path)
        return {name: member(given.get(name)) for name, member in members}

    return convert


def _bad(found: object, path: str, wanted: str) -> BadValueError:
    return BadValueError(f"{path}: {wanted} is expected, not {kind_of(found)}")


_WANTED = {list: "an array", bool: "true or false", str: "a string"}


def _expect(kind: type, found: Any, path: str) -> Any:
    if type(found) is not kind:
        raise _bad(found, path, _WANTED[kind])
    return found


def _object(found: Any, path: str) -> dict[str, Any]:
    if type(found) is not dict:
        raise _bad(found, path, "an object")
    for name in found:
        _text(name, path)
    return found


def _text(found: Any, path: str) -> str:
    if type(found) is not str:
        raise _bad(found, path, "a string")
    if not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError as error:
            raise BadValueError(f"{path}: half of a surrogate pair at {error.start}") from error
    return found


def _integer(found: Any, path: str, bound: int) -> int:
    if type(found) is Decimal:
        if found.adjusted() > _EXPONENT_MAX or found != found.to_integral_value():
            raise BadValueError(f"{path}: {found} is not a whole number of this type")
        found = int(found)
    elif type(found) is not int:
        raise _bad(found, path, "a whole number")
    if not -bound <= found < bound:
        raise BadValueError(f"{path}: {found} is out of range")
    whole: int = found
    return whole


def _float(found: Any, path: str) -> float:
    """The nearest number of 32 bits. A double that was rounded to an even last bit can be a tie of
    two such numbers, so it is rounded to the odd one of its neighbours first."""
    near = _double(found, path, _FLOAT_MAX)
    exact = Decimal(found)
    if Decimal(near) != exact and not _DOUBLE_BITS.unpack(_DOUBLE.pack(near))[0] & 1:
        near = math.nextafter(near, math.inf if exact > Decimal(near) else -math.inf)
    single: float = _FLOAT.unpack(_FLOAT.pack(near))[0]
    return single


def _double(found: Any, path: str, largest: float) -> float:
    if type(found) is not int and type(found) is not Decimal:
        raise _bad(found, path, "a number")
    try:
        near = float(found)
    except OverflowError:
        near = math.inf
    if math.isinf(near) or abs(near) > largest:
        raise BadValueError(f"{path}: {found} is out of range")
    return near


def _decimal(found: Any, path: str, precision: int, scale: int) -> Decimal:
    """Also of a string with a number, as many producers write decimals."""
    if type(found) is str:
        if not _NUMBER.fullmatch(found):
            raise BadValueError(f"{path}: a number is expected, not the string {found!r}")
        try:
            found = Decimal(found)
        except InvalidOperation as error:
            raise BadValueError(f"{path}: {found!r} is out of range") from error
    elif type(found) is not int and type(found) is not Decimal:
        raise _bad(found, path, "a number")
    exact = Decimal(found)
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    stripped = "".join(map(str, digits)).rstrip("0")
    exponent += len(digits) - len(stripped)
    if not stripped:
        return Decimal(0)
    if -exponent > scale:
        raise BadValueError(f"{path}: {exact} has more than {scale} digits after the point")
    if len(stripped) + exponent > precision - scale:
        raise BadValueError(f"{path}: {exact} does not fit in decimal({precision},{scale})")
    whole = tuple(map(int, stripped)) + (0,) * (exponent + scale)
    return Decimal((sign, whole, -scale))


def _bytes(found: Any, path: str) -> bytes:
    text = _expect(str, found, path)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadValueError(f"{path}: not base64: {error}") from error
    if base64.b64encode(data).decode() != text:
        raise BadValueError(f"{path}: not base64: bits behind the last byte are not zero")
    return data


def _date(text: str, path: str) -> date:
    found = _DATE.fullmatch(text)
    if found:
        try:
            return date(*map(int, found.groups()))
        except ValueError:
            pass
    raise BadValueError(f"{path}: {text!r} is not a date, as in 2024-02-29")


def _timestamp(
    found: Any, path: str, unit: EpochUnit | None, allowed: range, *, in_zone: bool
) -> datetime:
    """`allowed` are microseconds since the epoch, for numbers alone."""
    if type(found) is str:
        return _moment(found, path, in_zone=in_zone)
    if type(found) is not int and type(found) is not Decimal:
        raise _bad(found, path, "a string with a timestamp, or a number")
    if unit is None:
        raise BadValueError(f"{path}: {found} is a number, and the epoch unit is not declared")
    return _since_epoch(Decimal(found), path, unit, allowed, in_zone=in_zone)


def _moment(text: str, path: str, *, in_zone: bool) -> datetime:
    """Parse a time by RFC 3339; a timestamp without a zone is UTC in a column that has one."""
    found = _TIMESTAMP.fullmatch(text)
    if not found:
        raise BadValueError(
            f"{path}: {text!r} is not a timestamp, as in 2024-02-29T12:30:00.25+01:00"
        )
    day, hour, minute, second, fraction, zone = found.groups()
    if fraction and fraction[6:].strip("0"):
        raise BadValueError(f"{path}: {text!r} is finer than a microsecond")
    if zone and not in_zone:
        raise BadValueError(f"{path}: {text!r} has a zone, the column has none")
    at = _date(day, path)
    try:
        moment = datetime(  # noqa: DTZ001 - the zone comes after
            at.year,
            at.month,
            at.day,
            int(hour),
            int(minute),
            int(second),
            int((fraction or "0")[:6].ljust(6, "0")),
        )
        return moment.replace(tzinfo=_zone(zone)).astimezone(UTC) if in_zone else moment
    except (ValueError, OverflowError) as error:
        raise BadValueError(f"{path}: {text!r} is not a timestamp: {error}") from error


def _zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:])
    if hours > 18 or minutes > 59:
        raise ValueError(f"no zone {text}")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)


def _since_epoch(
    number: Decimal, path: str, unit: EpochUnit, allowed: range, *, in_zone: bool
) -> datetime:
    if number.adjusted() > _EPOCH_DIGITS_MAX or len(number.as_tuple().digits) > _EPOCH_DIGITS_MAX:
        raise BadValueError(f"{path}: {number} {unit} are out of range")
    if number and number.adjusted() < -_EPOCH_DIGITS_MAX:  # the product would become zero
        raise BadValueError(f"{path}: {number} {unit} are finer than a microsecond")
    exact = number * EPOCH_MICROSECONDS[unit]
    if exact != exact.to_integral_value():
        raise BadValueError(f"{path}: {number} {unit} are finer than a microsecond")
    micros = int(exact)
    if micros not in allowed:
        earliest, latest = _day(allowed.start), _day(allowed.stop)
        raise BadValueError(
            f"{path}: {number} {unit} are not between {earliest} and {latest}; is the unit "
            "another one?"
        )
    return (_EPOCH if in_zone else _NAIVE_EPOCH) + timedelta(microseconds=micros)


def _micros(day: date) -> int:
    return (day - _EPOCH.date()).days * _DAY_MICROSECONDS


def _day(micros: int) -> date:
    return _EPOCH.date() + timedelta(days=micros // _DAY_MICROSECONDS)
