"""The value of a record as one JSON object, read strictly. Pure.

Invariants: the object is the whole value, by RFC 8259: UTF-8 without a byte order mark, one object
with nothing behind it, no name twice. Numbers keep all their digits, as int or Decimal. The limits
are constants of this module, and do not depend on the interpreter: all workers accept the same
values.
"""

import json
from collections.abc import Iterable
from datetime import date, time
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

from bucketlog.log_format.errors import InvalidDataError

DIGITS_MAX = 400
"""Largest number of digits of a number as it is written. Conversions have lower limits."""
NESTING_MAX = 500
"""Largest number of objects and arrays inside each other. Python's own limit is higher. It depends
on Python's version and on the depth of the caller's stack."""
_REASON_LETTERS = 200
_TOO_DEEP = f"the value is nested too deeply: more than {NESTING_MAX} levels"


class BadValueError(InvalidDataError):
    """A value does not fit; `reason` has the field's path, if there is one."""

    code = "BAD_VALUE"

    def __init__(self, reason: str) -> None:
        super().__init__(shortened(reason))


def shortened(text: str) -> str:
    """For a reason: bytes of a record may be long. A schema may have half of a surrogate pair,
    which a column cannot have."""
    short = text if len(text) <= _REASON_LETTERS else f"{text[:_REASON_LETTERS]}…"
    return short.encode(errors="backslashreplace").decode()


def parse_object(value: bytes) -> dict[str, Any]:
    """Raises `BadValueError`."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadValueError(f"the value is not UTF-8: byte {error.start}") from error
    if not text or text.isspace():
        raise BadValueError("the value is empty")
    try:
        found = _DECODER.decode(text)
    except RecursionError as error:
        raise BadValueError(_TOO_DEEP) from error
    except json.JSONDecodeError as error:
        raise BadValueError(f"the value is not JSON: {error.msg} at {error.pos}") from error
    if not isinstance(found, dict):
        raise BadValueError(f"the value is {kind_of(found)}, not an object")
    if text.count("[") + text.count("{") > NESTING_MAX:
        _check_nesting(found)
    return found


def parse_value(value: bytes) -> Any:
    """Parse a value from inside an object. `value` is JSON with at most about 60 levels. Raises
    `BadValueError`."""
    return _DECODER.decode(value.decode("utf-8"))


def _check_nesting(found: dict[str, Any]) -> None:
    """Check one level after another, in time linear in the size of the value."""
    level: list[Any] = [found]
    for _ in range(NESTING_MAX):
        level = [
            member
            for each in level
            for member in (each.values() if type(each) is dict else each)
            if type(member) in (dict, list)
        ]
        if not level:
            return
    raise BadValueError(_TOO_DEEP)


def kind_of(found: object) -> str:
    """Return the name of a value's type for errors: JSON's name, if JSON has the type."""
    match found:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float() | Decimal():
            return "a number"
        case bytes():
            return "bytes"
        case date() | time():
            return "a time"
        case list():
            return "an array"
        case _:
            return "an object"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadValueError(f"the name {_first_twice(pairs)!r} is there twice")
    return found


def _first_twice(pairs: Iterable[tuple[str, Any]]) -> str | None:
    """The first name that was there before; in one pass, since a value may have many names."""
    before: set[str] = set()
    for name, _ in pairs:
        if name in before:
            return name
        before.add(name)
    return None


def _integer(text: str) -> int:
    if len(text) > DIGITS_MAX:
        raise BadValueError(f"a number has {len(text)} digits")
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > DIGITS_MAX:
        raise BadValueError(f"a number has {len(text)} digits")
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise BadValueError(f"the number {text} is out of range") from error


def _no_constant(text: str) -> NoReturn:
    raise BadValueError(f"the value is not JSON: {text}")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_decimal,
    parse_constant=_no_constant,
)
