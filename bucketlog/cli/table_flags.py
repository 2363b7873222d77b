"""Options that several verbs of `bucketlog table` have."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import check_installed
from bucketlog.log_format.local_server import is_local
from bucketlog.terminal import note

if TYPE_CHECKING:
    from bucketlog.ingesting.ingest_figures import TableFigures

PROCESSES_MAX = 1_024

Table = Annotated[
    str, typer.Option("--into", metavar="TABLE", help="Table, as catalog.database.table.")
]
Catalog = Annotated[
    list[str] | None,
    typer.Option(
        "--catalog-property",
        metavar="NAME=VALUE",
        help="Property of the catalog for PyIceberg, such as uri=…; repeatable. "
        "Default: those of PyIceberg's configuration.",
    ),
]
DeadLetters = Annotated[
    str | None,
    typer.Option(
        metavar="TABLE",
        help="Table for dead letters, as database.table; default: TABLE_dead_letters.",
    ),
]

Processes = Annotated[
    int | None,
    typer.Option(
        min=1, max=PROCESSES_MAX, help="Processes that run tasks; default: the number of cores."
    ),
]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Run again and again, until a signal.")
]
PartitionBy = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Partitions of a new table, such as 'day(at), bucket(16, id)', or none; default: day. "
        "An existing table must have these partitions.",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=65_535,
        help="Port of the page /metrics for Prometheus; 0: any free port. Default: no page.",
    ),
]
MetricsHost = Annotated[
    str, typer.Option(metavar="HOST", help="Address of the page /metrics. There is no login.")
]


@contextmanager
def shown_metrics(tables: "Sequence[TableFigures]", host: str, port: int | None) -> Iterator[None]:
    """Within the block, the page /metrics shows the figures of `tables`, unless `port` is None.
    Raises `ConfigurationError`."""
    if port is None:
        yield
        return
    check_installed("console", extra="console,iceberg")
    from bucketlog.ingesting.ingest_metrics import served_metrics

    if not is_local(host):
        note(f"there is no login: everyone who reaches {host}:{port} can read these metrics")
    with served_metrics(tables, host=host, port=port) as address:
        note(f"metrics at {address}")
        yield


def pairs(flag: str, given: list[str]) -> dict[str, str]:
    """Return the values of a repeatable `flag`, by name. Raises `ConfigurationError` without the
    value, which may be a secret."""
    found: dict[str, str] = {}
    for item in given:
        name, separator, value = item.partition("=")
        if not separator:
            raise ConfigurationError(f"{flag}: NAME=VALUE is expected", remedy="add a name and '='")
        if name in found:
            raise ConfigurationError(f"{flag} {name} is given twice", remedy="give it once")
        found[name] = value
    return found
