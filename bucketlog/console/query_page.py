"""Computes the page Query: a form for SQL over a range of a topic, and the answer.

Errors of a query are shown above the form, with the values that were given.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console, UnknownNameError, Values
from bucketlog.console.queries import FoundRows, Queries, QueryRefusedError
from bucketlog.console.replay_range import RANGES, replay_range
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.extras import not_installed

ENGINE, EXTRAS = "duckdb", "console,duckdb"
EXAMPLE = 'SELECT partition, count(*), max("offset") FROM records GROUP BY ALL ORDER BY ALL'
NAME_CHARS = 60


class ShownCell(NamedTuple):
    """`text` is None for NULL. If `is_cut`, the cell has more characters."""

    text: str | None
    is_cut: bool


class ShownResult(NamedTuple):
    """The names and types of the columns, and the rows. If `is_cut`, rows are missing."""

    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[ShownCell]]
    is_cut: bool
    records: int
    is_range_cut: bool


def query_form(console: Console, query: PageQuery) -> Values:
    """The form, with the values of the address. The query of an address does not run by itself."""
    return _values(console)


def query_result(console: Console, query: PageQuery) -> Values:
    """The answer to the SQL of a form, or the form with an error. Raises `UnknownNameError`, and
    `PageTimeoutError`."""
    values = _values(console)
    try:
        queries = queries_of(console)
        wanted = replay_range(console, console.look(), query)
        topic = wanted.topic.name
        found = queries.run(topic, wanted.given, query.text("sql"), console.deadline)
    except UnknownNameError:
        raise
    except (ConfigurationError, QueryRefusedError) as error:
        return values | {"error": error}
    return values | {"result": shown_result(found, console.settings.sql_cell_chars_max)}


def queries_of(console: Console) -> Queries:
    """Raises `ConfigurationError` if DuckDB is not installed."""
    if find_spec(ENGINE) is None:
        raise not_installed(ENGINE, EXTRAS)
    return console.queries


def shown_result(found: FoundRows, cell_chars_max: int) -> ShownResult:
    """The answer as the page shows it."""
    answer = found.answer
    return ShownResult(
        answer.columns,
        [[_cell(text, cell_chars_max) for text in row] for row in answer.rows],
        answer.is_cut,
        found.records,
        found.is_range_cut,
    )


def _cell(text: str | None, chars_max: int) -> ShownCell:
    if text is None or len(text) <= chars_max:
        return ShownCell(text, is_cut=False)
    return ShownCell(text[:chars_max], is_cut=True)


def _values(console: Console) -> Values:
    view = console.look()
    error: BucketlogError | None = None
    return {
        "view": view,
        "names": sorted(view.state.names)[: console.settings.page_rows_max],
        "ranges": RANGES,
        "example": EXAMPLE,
        "name_chars": NAME_CHARS,
        "missing": find_spec(ENGINE) is None,
        "extras": EXTRAS,
        "error": error,
        "result": None,
    }
