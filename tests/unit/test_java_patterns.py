"""Patterns of topic names in Java's syntax, as Python's `re` then matches them."""

import re

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.java_patterns import topic_pattern


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("orders-.*", ["orders-", "orders-de"], ["order", "my-orders-de"]),
        (r"\Qa.b\E|c", ["a.b", "c"], ["axb", "a.bE"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"(?<land>de|fr)-\k<land>", ["de-de"], ["de-fr"]),
        (r"\p{Lower}+", ["abc"], ["aBc", "a1"]),
        (r"\p{javaLowerCase}\P{Digit}*", ["a_b"], ["a1", "A"]),
        (r"\pL\p{Nd}{2}", ["x42"], ["x4", "042"]),
        (r"[\p{Alpha}_]+", ["a_B"], ["a1"]),
        (r"[\Qa-c\E]+", ["a-c"], ["b"]),
        (r"(?i)orders", ["ORDERS"], ["order"]),
        (r"(?<=x)y|z(?!q).", ["zy"], ["zq", "y"]),
        (r"a++b", ["aab"], ["aa"]),
        (r"]\p{Upper}", [], ["A"]),
    ],
)
def test_a_pattern_matches_as_in_java(pattern: str, names: list[str], others: list[str]) -> None:
    translated = topic_pattern(pattern)
    assert [name for name in names + others if re.fullmatch(translated, name)] == names


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("[a-z&&[^bc]]", "classes of characters in each other"),
        ("[a&&b]", "classes of characters in each other"),
        (r"\p{IsGreek}", r"\\p\{IsGreek\}"),
        (r"[\P{Lower}]", r"\\P\{Lower\}"),
        (r"\Gorders", r"\\G"),
        ("orders(", "missing"),
        ("a{2,1}", "min repeat"),
    ],
)
def test_a_pattern_that_would_mean_something_else_is_refused(pattern: str, part: str) -> None:
    with pytest.raises(ConfigurationError, match=part):
        topic_pattern(pattern)
