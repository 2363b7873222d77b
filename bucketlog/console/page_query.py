"""The query of a page's address, and the part of a table that a page shows. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import MAX_OFFSET

Row = TypeVar("Row")
MIN_TIME_MS, MAX_TIME_MS = -62_135_596_800_000, 253_402_300_799_999
"""The beginning of the year 1, and the end of the year 9999, in UTC."""


class PageQuery:
    """Values by name. Raises `ConfigurationError`, which names the value and what is allowed."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """By default the first."""
        found = self.text(name) or allowed[0]
        if found not in allowed:
            raise ConfigurationError(
                f"{name}={found} is not a choice", remedy=f"use {', '.join(allowed)}"
            )
        return found

    def number(self, name: str, default: int, *, least: int = 0, most: int = MAX_OFFSET) -> int:
        found = self.text(name).strip()
        if not found:
            return default
        if not (found.isascii() and found.isdigit() and len(found) < 20):
            raise ConfigurationError(
                f"{name}={found[:40]} is not a number", remedy="use digits only"
            )
        if not least <= int(found) <= most:
            raise ConfigurationError(f"{name}={found}", remedy=f"use {least} to {most}")
        return int(found)

    def time_ms(self, name: str) -> int | None:
        """A time as 2026-01-31T12:00 in UTC (or with its zone), or milliseconds since 1970."""
        found = self.text(name).strip()
        if not found:
            return None
        if found.isascii() and found.isdigit():
            return self.number(name, 0, most=MAX_TIME_MS)
        try:
            when = datetime.fromisoformat(found)
        except ValueError:
            raise ConfigurationError(
                f"{name}={found[:40]} is not a time",
                remedy="use a time as 2026-01-31T12:00 (UTC), or milliseconds since 1970",
            ) from None
        found_ms = int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)
        if not MIN_TIME_MS <= found_ms <= MAX_TIME_MS:
            raise ConfigurationError(
                f"{name}={found[:40]} is not in the years 1 to 9999 in UTC",
                remedy="use a time in these years",
            )
        return found_ms

    def changed(self, **changes: object) -> str:
        """The query with other values; None and "" remove one."""
        merged = {**self._values, **changes}
        kept = {name: str(value) for name, value in merged.items() if value not in (None, "")}
        return f"?{urlencode(kept)}" if kept else "?"


@dataclass(frozen=True, slots=True)
class TablePage(Generic[Row]):
    """`rows` of page `number` (from 1) of `pages`; `total` rows match, out of `unfiltered`."""

    rows: Sequence[Row]
    number: int
    pages: int
    total: int
    unfiltered: int
    sort: str
    descending: bool


def table_page(
    rows: Sequence[Row],
    query: PageQuery,
    keys: Mapping[str, Callable[[Row], Any]],
    *,
    filter_text: Callable[[Row], str],
    rows_max: int,
    default_sort: str = "",
) -> TablePage[Row]:
    """Filter by `q` (part of the text, case does not matter), sort by `sort` (a name of `keys`, by
    default the first; "-name" descends), and cut page `page`."""
    wanted = query.text("q").casefold()
    found = [row for row in rows if wanted in filter_text(row).casefold()] if wanted else rows
    choices = [*keys, *(f"-{name}" for name in keys)]
    if default_sort and not query.text("sort"):
        chosen = default_sort
    else:
        chosen = query.choice("sort", choices)
    name = chosen.removeprefix("-")
    ordered = sorted(found, key=keys[name], reverse=chosen != name)
    pages = max(1, -(-len(ordered) // rows_max))
    number = min(query.number("page", 1, least=1), pages)
    first = (number - 1) * rows_max
    return TablePage(
        ordered[first : first + rows_max],
        number,
        pages,
        len(ordered),
        len(rows),
        name,
        chosen != name,
    )
