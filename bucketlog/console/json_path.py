"""A test of JSON values: a path, and a comparison with a JSON literal. Pure.

    $.order.lines[0].sku == "A-1"
    $["a name"][-1] >= 3
    $.error

This is a strict subset of JSONPath (RFC 9535): names, names in brackets and quotes, and indexes,
which may count from the end. A path leads to at most one value. Without a comparison, the test is
whether the value is there. Invariant: the work is linear in the length of the test, and a test
neither calls nor evaluates anything.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from bucketlog.log_format.errors import ConfigurationError

Step: TypeAlias = str | int
Literal: TypeAlias = str | int | float | bool | None
EXAMPLE = '$.a.b[0] == "x"'
OPERATORS = ("==", "!=", "<=", ">=", "<", ">")
"""Longer ones first."""
INDEX_DIGITS_MAX = 9
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class JsonTest:
    """`operator` is "" if the value only has to be there."""

    steps: tuple[Step, ...]
    operator: str = ""
    literal: Literal = None

    def matches(self, value: Any) -> bool:
        """Whether the parsed JSON has a value at the path that compares so. Numbers are compared by
        value. `<`, `<=`, `>` and `>=` compare two numbers or two strings. A value that is not there
        matches no test."""
        found = _at(value, self.steps)
        if found is _NOTHING:
            return False
        match self.operator:
            case "":
                return True
            case "==":
                return _is_equal(found, self.literal)
            case "!=":
                return not _is_equal(found, self.literal)
        return _are_ordered(found, self.literal) and _ORDERS[self.operator](found, self.literal)


_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}


def _at(value: Any, steps: tuple[Step, ...]) -> Any:
    for step in steps:
        if isinstance(step, str):
            value = value.get(step, _NOTHING) if isinstance(value, dict) else _NOTHING
        elif isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            value = _NOTHING
        if value is _NOTHING:
            break
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_equal(one: Any, other: Any) -> bool:
    if _is_number(one) and _is_number(other):
        return bool(one == other)
    return type(one) is type(other) and bool(one == other)


def _are_ordered(one: Any, other: Any) -> bool:
    both_texts = isinstance(one, str) and isinstance(other, str)
    return both_texts or (_is_number(one) and _is_number(other))


def parsed(text: str) -> JsonTest:
    """Raises `ConfigurationError`, which names the place."""
    reading = _Reading(text)
    steps = reading.steps()
    operator = reading.operator()
    if not operator:
        return JsonTest(steps)
    return JsonTest(steps, operator, reading.literal())


class _Reading:
    """The text from `at` on."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._decoder = json.JSONDecoder(parse_constant=self._refuse_constant)

    def steps(self) -> tuple[Step, ...]:
        self._skip_space()
        if self._next() != "$":
            self._fail("a path begins with $")
        self._at += 1
        found: list[Step] = []
        while self._next() in (".", "["):
            found.append(self._name() if self._next() == "." else self._bracket())
        return tuple(found)

    def operator(self) -> str:
        """ "" at the end of the text."""
        self._skip_space()
        if not self._next():
            return ""
        for operator in OPERATORS:
            if self._text.startswith(operator, self._at):
                self._at += len(operator)
                return operator
        is_assignment = self._next() == "="
        return self._fail(
            "equality is written =="
            if is_assignment
            else f"a comparison is one of {' '.join(OPERATORS)}"
        )

    def literal(self) -> Literal:
        self._skip_space()
        found: Literal = self._json("a comparison needs a JSON string, number, true, false or null")
        self._skip_space()
        if self._next():
            return self._fail("nothing follows the compared value")
        return found

    def _name(self) -> str:
        self._at += 1
        if self._next() == ".":
            self._fail("the descent .. is not supported")
        begin = self._at
        while _is_name_character(self._next(), is_first=self._at == begin):
            self._at += 1
        if self._at == begin:
            self._fail('a name follows the dot; other names are written ["a name"]')
        return self._text[begin : self._at]

    def _bracket(self) -> Step:
        self._at += 1
        self._skip_space()
        step = self._quoted() if self._next() == '"' else self._index()
        self._skip_space()
        if self._next() != "]":
            self._fail("a bracket is not closed")
        self._at += 1
        return step

    def _quoted(self) -> str:
        return str(self._json("a name in brackets is a JSON string"))

    def _index(self) -> int:
        begin = self._at
        if self._next() == "-":
            self._at += 1
        while self._next().isascii() and self._next().isdigit():
            self._at += 1
        digits = self._text[begin : self._at]
        if not digits.removeprefix("-"):
            self._at = begin
            self._fail('brackets contain an index or a name in double quotes, as [0] or ["a"]')
        if len(digits) > INDEX_DIGITS_MAX:
            self._at = begin
            self._fail(f"an index has at most {INDEX_DIGITS_MAX} digits")
        return int(digits)

    def _json(self, wanted: str) -> Any:
        if self._next() == "'":
            self._fail("strings are written in double quotes")
        if not self._next() or self._next() not in '"-0123456789tfn':
            self._fail(wanted)
        try:
            found, self._at = self._decoder.raw_decode(self._text, self._at)
        except ValueError:
            return self._fail(wanted)
        return found

    def _refuse_constant(self, name: str) -> NoReturn:
        raise ValueError(f"{name} is not JSON")

    def _next(self) -> str:
        """ "" at the end."""
        return self._text[self._at : self._at + 1]

    def _skip_space(self) -> None:
        while self._next() in (" ", "\t"):
            self._at += 1

    def _fail(self, reason: str) -> NoReturn:
        there = self._text[self._at : self._at + 20]
        place = f"at character {self._at + 1}, {there!r}" if there else "at the end"
        raise ConfigurationError(
            f"the JSONPath cannot be read {place}: {reason}",
            remedy=f"write a path and a comparison, as {EXAMPLE}",
        )


def _is_name_character(character: str, *, is_first: bool) -> bool:
    if not character:
        return False
    if not character.isascii():
        return not character.isspace()
    return character == "_" or (character.isalpha() if is_first else character.isalnum())
