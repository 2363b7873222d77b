"""The entry point: the commands, and one place where errors become a line and an exit code."""

import os
import sys
from typing import Annotated

import typer

from bucketlog.cli.consume import consume
from bucketlog.cli.demo import demo
from bucketlog.cli.dev import broker, dev
from bucketlog.cli.output import (
    EXIT_BROKEN_PIPE,
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
)
from bucketlog.cli.produce import produce
from bucketlog.cli.segment import app as segment_app
from bucketlog.cli.topic import app as topic_app
from bucketlog.errors import BucketlogError, ConfigurationError

app = typer.Typer(
    name="bucketlog",
    help="A log service that speaks the Kafka protocol and keeps everything in a bucket.",
    epilog=EXIT_CODES,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("dev")(dev)
app.command("broker")(broker)
app.add_typer(topic_app, name="topic")
app.command("produce")(produce)
app.command("consume")(consume)
app.add_typer(segment_app, name="segment")
app.command("demo")(demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(version("bucketlog"))
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run the command line and exit."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Run one command; returns its exit code."""
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader went away: nothing more can be said there, not even by the exit's flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BucketlogError as error:
        _complain(error)
        return EXIT_USAGE if isinstance(error, ConfigurationError) else EXIT_FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"bucketlog: {where}{error.strerror or error}", file=sys.stderr)
        return EXIT_FAILED


def _invoke(arguments: list[str]) -> int:
    import click

    try:
        result = app(args=arguments, prog_name="bucketlog", standalone_mode=False)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "bucketlog"
        print(f"bucketlog: {error.format_message()} (see `{command} --help`)", file=sys.stderr)
        return EXIT_USAGE
    except click.ClickException as error:
        print(f"bucketlog: {error.format_message()}", file=sys.stderr)
        return EXIT_USAGE
    except click.Abort:
        return EXIT_INTERRUPTED
    except click.exceptions.Exit as error:
        return error.exit_code
    return result if isinstance(result, int) else 0


def _complain(error: BucketlogError) -> None:
    print(f"bucketlog: {error}", file=sys.stderr)
    for remark in getattr(error, "__notes__", ()):
        print(remark, file=sys.stderr)
