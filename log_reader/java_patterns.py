"""Patterns of topic names in the syntax of Java, as Spark's Kafka source takes them. Pure.

Python's syntax is nearly the same. The rest is translated: quotations, names of groups and classes
of characters. Names of topics are ASCII, so a class needs only its ASCII characters. A pattern
without a translation, or with another meaning in Python, is refused.
"""

import re
from collections.abc import Mapping

from bucketlog.log_format.errors import ConfigurationError

_CLASSES: Mapping[str, str] = {
    **dict.fromkeys(("Lower", "Ll", "IsLowercase", "javaLowerCase", "IsLl"), "a-z"),
    **dict.fromkeys(("Upper", "Lu", "IsUppercase", "javaUpperCase", "IsLu"), "A-Z"),
    **dict.fromkeys(("Alpha", "L", "IsL", "IsAlphabetic", "javaLetter"), "a-zA-Z"),
    **dict.fromkeys(("Digit", "N", "Nd", "IsN", "IsNd", "IsDigit", "javaDigit"), "0-9"),
    **dict.fromkeys(("Alnum", "javaLetterOrDigit"), "a-zA-Z0-9"),
    **dict.fromkeys(("Punct", "P", "IsP", "IsPunctuation"), r"\-._"),
    **dict.fromkeys(("ASCII", "Graph", "Print"), r"a-zA-Z0-9\-._"),
    "XDigit": "0-9a-fA-F",
}
"""The characters that names of topics may have, by the names of Java's classes."""

_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|\\(?P<negated>[pP])(?:\{(?P<long>\w+)\}|(?P<short>\w))"
    r"|\\k<(?P<reference>[a-zA-Z][a-zA-Z0-9]*)>"
    r"|\(\?<(?P<group>[a-zA-Z][a-zA-Z0-9]*)>"
    r"|\\(?P<escaped>.)"
    r"|(?P<bracket>[\[\]])"
    r"|(?P<both>&&)"
    r"|(?P<plain>.)",
    re.DOTALL,
)
_SAME = frozenset("tnrfadDsSwWbB0123456789")
"""Letters and digits that mean the same after a backslash in both syntaxes, for names of topics."""


def topic_pattern(text: str) -> str:
    """Return `text`, a pattern in Java's syntax, in Python's syntax.

    Raises `ConfigurationError` for a pattern that is wrong, or that cannot be translated. Source:
    java.util.regex.Pattern."""
    found: list[str] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        depth = max(depth + {"[": 1, "]": -1}.get(token["bracket"] or "", 0), 0)
        if (depth > 1 and token["bracket"]) or (depth > 0 and token["both"]):
            raise _untranslated(text, "classes of characters in each other")
        found.append(_translated(token, text, in_class=depth > 0))
    pattern = "".join(found)
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(
            f"subscribePattern {text!r}: {error}",
            remedy="use a regular expression, as in orders-.*",
        ) from error
    return pattern


def _translated(token: re.Match[str], text: str, *, in_class: bool) -> str:
    if token["quoted"] is not None:
        return re.escape(token["quoted"])
    if token["group"]:
        return f"(?P<{token['group']}>"
    if token["reference"]:
        return f"(?P={token['reference']})"
    if token["negated"]:
        return _class(token, text, in_class=in_class)
    escaped = token["escaped"]
    if escaped and escaped.isalnum() and escaped not in _SAME:
        raise _untranslated(text, f"\\{escaped}")
    return token[0]


def _class(token: re.Match[str], text: str, *, in_class: bool) -> str:
    name = token["long"] or token["short"]
    characters = _CLASSES.get(name)
    is_negated = token["negated"] == "P"
    if characters is None or (in_class and is_negated):
        raise _untranslated(text, token[0])
    if in_class:
        return characters
    return f"[{'^' if is_negated else ''}{characters}]"


def _untranslated(text: str, part: str) -> ConfigurationError:
    return ConfigurationError(
        f"subscribePattern {text!r}: {part} cannot be used here",
        remedy="write the pattern with simpler classes of characters, such as [a-z]",
    )
