"""A word that is one of a few: what else it may be, and which one fits best."""

from collections.abc import Sequence
from difflib import get_close_matches

from bucketlog.log_format.errors import ConfigurationError


def no_choice(what: str, given: object, allowed: Sequence[str], *others: str) -> ConfigurationError:
    """`others` is said after the words: what else is taken."""
    alike = get_close_matches(given, allowed, 1) if isinstance(given, str) else []
    meant = f"did you mean {alike[0]!r}? " if alike else ""
    *most, last = [*(f'"{word}"' for word in allowed), *others]
    return ConfigurationError(
        f"{what} is {given!r}", remedy=f"{meant}it may be {', '.join(most)} or {last}"
    )
