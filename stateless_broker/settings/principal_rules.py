"""`ssl.principal.mapping.rules` (KIP-371): from a certificate's name to the name of a user. Pure.

Rules are tried in their order; the first that matches the whole name decides. Patterns are regular
expressions of Python. Source: Kafka's SslPrincipalMapper.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_PARSER = re.compile(_RULE)
_SPLITTER = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)")
_REPLACEMENT_PART = re.compile(r"\\(?P<escaped>.)|\$(?P<digits>[0-9]+)|(?P<wrong>[\\$])|[^\\$]+")


@dataclass(frozen=True, slots=True)
class PrincipalRule:
    """DEFAULT without a pattern: the name itself. `case` is L, U or ''."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Apply the rule. Returns None if it does not match."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        found = self.pattern.sub(self._expand, name)
        return {"L": found.lower(), "U": found.upper()}.get(self.case, found)

    def _expand(self, match: re.Match[str]) -> str:
        return "".join(
            _group(match, part["digits"]) if part["digits"] else part["escaped"] or part[0]
            for part in _REPLACEMENT_PART.finditer(self.replacement)
        )


def _group(match: re.Match[str], digits: str) -> str:
    """Return the group with the longest existing number. Digits behind it are text, and so is a
    reference to a group that does not exist."""
    groups = match.re.groups
    for length in range(len(digits), 0, -1):
        number = int(digits[:length])
        if number <= groups:
            return (match[number] or "") + digits[length:]
    return f"${digits}"


def read_principal_rules(text: str) -> tuple[PrincipalRule, ...]:
    """Parse rules. Raises `ValueError`, which names the rule."""
    return tuple(_rules(text))


def _rules(text: str) -> Iterator[PrincipalRule]:
    for rule in (each[1] for each in _SPLITTER.finditer(text.strip())):
        match = _PARSER.match(rule)
        if match is None or match.end() != len(rule):
            raise ValueError(
                f"{rule!r} is not a rule: write DEFAULT or RULE:pattern/replacement/, with L or U "
                "behind it for lower or upper case"
            )
        default, pattern, replacement, case, _ = match.groups()
        if default is not None:
            yield PrincipalRule()
        elif pattern is not None:
            yield _rule(rule, pattern, replacement, case)


def _rule(rule: str, pattern: str, replacement: str, case: str) -> PrincipalRule:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(
            f"{rule!r}: the pattern is not a regular expression of Python: {error}"
        ) from error
    if any(part["wrong"] for part in _REPLACEMENT_PART.finditer(replacement)):
        raise ValueError(f"{rule!r}: write $1 for the first group, and \\$ for a dollar sign")
    return PrincipalRule(compiled, replacement, case)


def user_of(name: str, rules: tuple[PrincipalRule, ...]) -> str | None:
    """The user's name for a certificate's `name`; None if no rule matches."""
    return next((user for rule in rules if (user := rule.apply(name)) is not None), None)
