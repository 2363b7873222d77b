"""`bucketlog table`: topics as Iceberg tables, straight from the bucket, without Spark."""

import typer

from bucketlog.cli.table_maintain import maintain
from bucketlog.cli.table_reprocess import reprocess
from bucketlog.cli.table_run import run
from bucketlog.cli.table_run_all import run_all
from bucketlog.cli.table_serve import serve

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Topics as Iceberg tables, straight from the bucket.",
)
app.command("run")(run)
app.command("run-all")(run_all)
app.command("reprocess")(reprocess)
app.command("maintain")(maintain)
app.command("serve")(serve)
