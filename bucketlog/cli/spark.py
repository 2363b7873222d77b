"""`bucketlog spark`: jobs that run on Spark, on this machine or under `spark-submit`.

The jobs parse their own arguments, because `spark-submit` runs them without this command line.
"""

import typer

from bucketlog.log_format.extras import check_installed

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Replay or ingest topics with Spark, straight from the bucket.",
)
_ARGUMENTS_ARE_THE_JOBS = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}


@app.command("replay", context_settings=_ARGUMENTS_ARE_THE_JOBS)
def replay(context: typer.Context) -> None:
    """Write topics as partitioned Parquet. Prints a JSON report."""
    check_installed("spark")
    from bucketlog.spark_jobs.replay import main

    main(context.args, program="bucketlog spark replay")


@app.command("ingest", context_settings=_ARGUMENTS_ARE_THE_JOBS)
def ingest(context: typer.Context) -> None:
    """Ingest topics into Parquet or an Iceberg table, each record exactly once."""
    check_installed("spark")
    from bucketlog.spark_jobs.ingest.__main__ import main

    main(context.args, program="bucketlog spark ingest")
