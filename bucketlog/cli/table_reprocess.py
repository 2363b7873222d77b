"""`bucketlog table reprocess`: convert the dead letters of a table again."""

from random import Random
from uuid import uuid4

from bucketlog.cli.options import OutputFormat
from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.cli.table_flags import Catalog, DeadLetters, Table, pairs
from bucketlog.cli.table_shape import ShapeFlags, with_shape
from bucketlog.log_format.extras import check_installed
from bucketlog.terminal import Output, counted, say, say_json


@with_shape
def reprocess(
    rows: ShapeFlags,
    into: Table,
    catalog_property: Catalog = None,
    dead_letters: DeadLetters = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Convert the dead letters of a table again, with another schema or other rules.

    Each dead letter that now fits becomes one row of the table. The others stay dead letters."""
    check_installed("replay", extra="iceberg")
    check_installed("iceberg")
    from bucketlog.log_reader.tables.catalog import open_catalog
    from bucketlog.log_reader.tables.reprocessing import Reprocessor
    from bucketlog.log_reader.tables.table_target import TableName

    name = TableName.parse(into, dead_letters)
    properties = pairs("--catalog-property", catalog_property or [])
    shapes = rows.shapes((), "dead-letter")
    reprocessor = Reprocessor(
        name,
        lambda: open_catalog(name.catalog, properties),
        lambda: uuid4().hex,
        Random(),
    )
    with sigterm_interrupts():
        report = reprocessor.run(shapes())
    if output is not Output.TABLE:
        say_json(report._asdict())
        return
    left = counted(report.left, "dead letter")
    say(f"{report.table}: {counted(report.rows, 'row')} from {report.dead_letters}, {left} left")
