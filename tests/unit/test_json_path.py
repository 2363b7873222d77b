"""Tests of JSON values by a path and a comparison: against a naive reading, and bad texts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.console.json_path import EXAMPLE, JsonTest, parsed
from bucketlog.console.value_test import ValueTest
from bucketlog.log_format.errors import ConfigurationError

NAMES = st.text(max_size=4) | st.sampled_from(["a", "b", "a b", 'q"', "ä", "__class__"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, -1.5, 1e300]) | NAMES
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
STEPS = st.lists(NAMES | st.integers(-3, 3), max_size=4)
OPERATORS = st.sampled_from(["", "==", "!=", "<", "<=", ">", ">="])


def written(steps: list[Any]) -> str:
    return "$" + "".join(f"[{json.dumps(step)}]" for step in steps)


def naive(value: Any, steps: list[Any], operator: str, literal: Any) -> bool:
    for step in steps:
        try:
            if isinstance(value, str) or isinstance(value, dict) != isinstance(step, str):
                return False
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False
    if not operator:
        return True
    is_number = [type(one) in (int, float) for one in (value, literal)]
    is_same_kind = all(is_number) or type(value) is type(literal)
    if operator in ("==", "!="):
        return (is_same_kind and value == literal) == (operator == "==")
    if not is_same_kind or not (all(is_number) or isinstance(value, str)):
        return False
    below, above = value < literal, value > literal
    return bool({"<": below, "<=": not above, ">": above, ">=": not below}[operator])


@given(VALUES, STEPS, OPERATORS, SCALARS)
def test_a_test_is_that_of_a_naive_reading(
    value: Any, steps: list[Any], operator: str, literal: Any
) -> None:
    text = written(steps) + (f" {operator} {json.dumps(literal)} " if operator else "")
    assert parsed(text).matches(value) is naive(value, steps, operator, literal)


@given(VALUES)
def test_every_value_is_found_at_its_path(value: Any) -> None:
    def check(inner: Any, steps: list[Any]) -> None:
        assert parsed(written(steps)).matches(value)
        if not isinstance(inner, dict | list):
            assert parsed(f"{written(steps)} == {json.dumps(inner)}").matches(value)
            assert not parsed(f"{written(steps)}!={json.dumps(inner)}").matches(value)
            return
        for step, below in inner.items() if isinstance(inner, dict) else enumerate(inner):
            check(below, [*steps, step])

    check(value, [])


@given(st.text(max_size=60) | st.text(alphabet="$.[]\"a0-=<>!'* \\tfn", max_size=30))
def test_any_text_is_a_test_or_an_error_that_shows_an_example(text: str) -> None:
    remedy = EXAMPLE
    try:
        parsed(text)
    except ConfigurationError as error:
        remedy = error.remedy
    assert EXAMPLE in remedy


def test_the_short_forms() -> None:
    assert parsed('$.a.b[0] == "x"') == JsonTest(("a", "b", 0), "==", "x")
    assert parsed(' $["a b"][ -1 ].ä_1>=-1.5e2 ') == JsonTest(("a b", -1, "ä_1"), ">=", -150.0)
    assert parsed("$") == JsonTest(())
    assert parsed("$.a!=null") == JsonTest(("a",), "!=", None)


def test_numbers_are_compared_by_value_and_no_boolean_is_one() -> None:
    assert parsed("$ == 1").matches(1.0)
    assert not parsed("$ == 1").matches(True)
    assert parsed("$ != 1").matches(True)
    assert parsed(f"$ == {10**30 + 1}").matches(10**30 + 1)
    assert not parsed(f"$ == {10**30 + 1}").matches(10**30)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a path begins with $"),
        ("a.b", "a path begins with $"),
        ("$..a", "the descent .. is not supported"),
        ("$.", "a name follows the dot"),
        ("$.*", "a name follows the dot"),
        ("$.1a", "a name follows the dot"),
        ("$[*]", "an index or a name in double quotes"),
        ("$[?(@.a)]", "an index or a name in double quotes"),
        ("$['a']", "an index or a name in double quotes"),
        ("$[0", "a bracket is not closed"),
        ("$[0:2]", "a bracket is not closed"),
        ("$[12345678901]", "at most 9 digits"),
        ('$["a', "a name in brackets is a JSON string"),
        ("$.a = 1", "equality is written =="),
        ("$.a =~ /x/", "equality is written =="),
        ("$.a like 1", "a comparison is one of"),
        ("$.a ==", "needs a JSON string, number"),
        ("$.a == 'x'", "double quotes"),
        ("$.a == x", "needs a JSON string, number"),
        ("$.a == [1]", "needs a JSON string, number"),
        ("$.a == -Infinity", "needs a JSON string, number"),
        ("$.a == 1 && $.b == 2", "nothing follows the compared value"),
    ],
)
def test_what_is_not_supported_is_named(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parsed(text)
    assert reason in caught.value.message


def test_values_that_cannot_be_tested_match_nothing_and_are_counted() -> None:
    test = ValueTest(parsed("$"), bytes_max=10_000, decoded=lambda data: data or None)
    values = [b'{"a": 1}', b"[", b"", b"[" * 9_000, b"9" * 9_000, b"\xff", b'"' + b"x" * 10_000]
    found = [test.matches(b"--" + value, (2, 2 + len(value))) for value in values]
    assert found == [True, False, False, False, False, False, False]
    assert not test.matches(b"", None)
    assert (test.not_json, test.too_large) == (5, 1)
    assert test.tested_bytes == sum(map(len, values[:-1]))
