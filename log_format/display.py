"""What a prompt or a notebook shows of an object: one line of text, or a small table in HTML.

Invariants: both have a bounded length. The text is one line without control characters. The HTML
has no markup but its own: names of topics, groups and members come from others. Nothing is asked of
a server or a bucket.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Sized
from html import escape
from itertools import islice
from typing import NamedTuple, Protocol, TypeAlias

from bucketlog.log_format.printable import printable

VALUE_CHARACTERS_MAX = 80
FACTS_MAX = 20
ROWS_MAX = 20

Facts: TypeAlias = Mapping[str, object]


class _Rows(Sized, Iterable[Sequence[object]], Protocol):
    """A sequence, of which only the first items are looked at."""


class Description(NamedTuple):
    """`facts` by name; those that are None are left out. `rows` under `columns` are shown in HTML
    alone."""

    facts: Facts
    columns: Sequence[str] = ()
    rows: _Rows = ()


class DisplayedObject:
    """An object that says what is shown of it."""

    __slots__ = ()

    @abstractmethod
    def _description(self) -> Description: ...

    def __repr__(self) -> str:
        facts = [
            f"{name}={value}" for name, value in _shown(self._description().facts, quoted=True)
        ]
        return f"{type(self).__name__}({', '.join(facts)})"

    def _repr_html_(self) -> str:
        """IPython's protocol of rich display."""
        described = self._description()
        parts = [f"<b>{escape(type(self).__name__)}</b>"]
        facts = _shown(described.facts, quoted=False)
        if facts:
            rows = (f"<tr><th>{escape(name)}</th>{_cell(value)}</tr>" for name, value in facts)
            parts.append(f"<table>{''.join(rows)}</table>")
        if described.columns:
            parts.append(_table(described))
        return f"<div>{''.join(parts)}</div>"


def _shown(facts: Facts, *, quoted: bool) -> list[tuple[str, str]]:
    known = [(name, value) for name, value in facts.items() if value is not None]
    shown = [(name, _short(value, quoted=quoted)) for name, value in known[:FACTS_MAX]]
    return shown if len(known) <= FACTS_MAX else [*shown, ("more", str(len(known) - FACTS_MAX))]


def _table(described: Description) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in described.columns)
    body = "".join(
        f"<tr>{''.join(_cell(_short(value, quoted=False)) for value in row)}</tr>"
        for row in islice(described.rows, ROWS_MAX)
    )
    more = len(described.rows) - ROWS_MAX
    if more > 0:
        body += f'<tr><td colspan="{len(described.columns)}">… and {more:,} more</td></tr>'
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"


def _short(value: object, *, quoted: bool) -> str:
    if isinstance(value, str):
        cut = value[: VALUE_CHARACTERS_MAX + 1]
        text = printable(repr(cut) if quoted else cut)
    elif value is None:
        return ""
    else:
        text = printable(str(value))
    return text if len(text) <= VALUE_CHARACTERS_MAX else f"{text[: VALUE_CHARACTERS_MAX - 1]}…"
