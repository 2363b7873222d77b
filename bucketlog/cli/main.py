"""The entry point: the commands, and one place where errors become a line and an exit code."""

import logging
import os
import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from bucketlog.cli.acl import app as acl_app
from bucketlog.cli.apply import apply
from bucketlog.cli.bench import app as bench_app
from bucketlog.cli.broker import app as broker_app
from bucketlog.cli.client import app as client_app
from bucketlog.cli.cluster import app as cluster_app
from bucketlog.cli.completion import COMPLETE, completion
from bucketlog.cli.config import app as config_app
from bucketlog.cli.config import use_profile
from bucketlog.cli.console import console
from bucketlog.cli.consume import consume
from bucketlog.cli.cost import cost
from bucketlog.cli.deadletter import app as deadletter_app
from bucketlog.cli.demo import demo
from bucketlog.cli.dev import dev
from bucketlog.cli.doctor import doctor
from bucketlog.cli.examples import add_examples
from bucketlog.cli.export import export
from bucketlog.cli.group import app as group_app
from bucketlog.cli.help_pages import with_help_pages
from bucketlog.cli.locate import locate
from bucketlog.cli.mirror import mirror
from bucketlog.cli.produce import produce
from bucketlog.cli.profiles import CHOICE, PREFIX, restored
from bucketlog.cli.replay import replay
from bucketlog.cli.schema import app as schema_app
from bucketlog.cli.segment import app as segment_app
from bucketlog.cli.signals import TerminationSignal
from bucketlog.cli.spark import app as spark_app
from bucketlog.cli.table import app as table_app
from bucketlog.cli.top import top
from bucketlog.cli.topic import app as topic_app
from bucketlog.cli.transaction import app as transaction_app
from bucketlog.cli.user import app as user_app
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.extras import explained
from bucketlog.log_format.printable import printable_lines
from bucketlog.terminal import (
    EXIT_BROKEN_PIPE,
    EXIT_CODES,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_TERMINATED,
    EXIT_USAGE,
    note,
    print_error,
    say,
)

if TYPE_CHECKING:
    from typer.core import TyperGroup

app = typer.Typer(
    name="bucketlog",
    help="A log service that speaks the Kafka protocol and keeps everything in a bucket.",
    epilog=EXIT_CODES,
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,  # `bucketlog completion` instead
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "auto_envvar_prefix": PREFIX.removesuffix("_"),
    },
)
app.command("dev")(dev)
app.add_typer(broker_app, name="broker")
app.add_typer(topic_app, name="topic")
app.command("apply")(apply)
app.command("produce")(produce)
app.command("consume")(consume)
app.add_typer(deadletter_app, name="deadletter")
app.add_typer(schema_app, name="schema")
app.command("replay")(replay)
app.command("mirror")(mirror)
app.command("export")(export)
app.add_typer(spark_app, name="spark")
app.add_typer(table_app, name="table")
app.add_typer(group_app, name="group")
app.add_typer(transaction_app, name="transaction")
app.add_typer(user_app, name="user")
app.add_typer(acl_app, name="acl")
app.add_typer(cluster_app, name="cluster")
app.add_typer(client_app, name="client")
app.add_typer(segment_app, name="segment")
app.command("locate")(locate)
app.command("doctor")(doctor)
app.add_typer(bench_app, name="bench")
app.command("cost")(cost)
app.command("top")(top)
app.command("console")(console)
app.command("demo")(demo)
app.add_typer(config_app, name="config")
app.command("completion")(completion)
add_examples(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        from bucketlog import __version__
        from bucketlog.log_format.machine_code import is_compiled

        say(__version__)
        say(f"compiled code: {'yes' if is_compiled() else 'no, install bucketlog[broker] for it'}")
        raise typer.Exit(EXIT_OK)


@app.callback()
def root(
    context: typer.Context,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile", envvar=CHOICE, metavar="NAME", help="Profile of `bucketlog config`."
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            allow_from_autoenv=False,
            help="Show the version, and whether compiled code is in use.",
        ),
    ] = False,
) -> None:
    given = context.get_parameter_source("profile")
    context.obj = use_profile(
        profile,
        "flag" if given is not None and given.name == "COMMANDLINE" else "environment",
        context.command,
        is_strict=context.invoked_subcommand != "config",
    )


# Typer brings its own copy of click, and does not export these two.
_UsageError: type[Exception]
_ClickError: type[Exception]
_UsageError, _ClickError = typer.BadParameter.__mro__[1:3]


_PATH_REMEDY = "check the path, and that this user may use it"


class _WarningLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def run() -> None:
    """Run the command line and exit."""
    if COMPLETE in os.environ:  # the shell asks for completions
        from typer._completion_classes import completion_init

        completion_init()
        app(prog_name="bucketlog")
    if logging.lastResort is not None:  # prints warnings of the SDK
        logging.lastResort.setFormatter(_WarningLines())
    sys.exit(main(sys.argv[1:]))


def whole_command() -> "TyperGroup":
    """The root of all commands, with their pages of help."""
    return with_help_pages(typer.main.get_group(app))


def main(arguments: list[str]) -> int:
    """Run one command; returns its exit code.

    Typer's own `main` is not used, because it answers a broken pipe and Ctrl-C with code 1.
    """
    try:
        command = whole_command()
        with (
            restored(os.environ),  # a profile stands in it meanwhile
            command.make_context("bucketlog", arguments) as context,
        ):
            code = command.invoke(context)
        sys.stdout.flush()
        return code if isinstance(code, int) else EXIT_OK
    except typer.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        # The reader went away: nothing more can be said there, not even by the exit's flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_BROKEN_PIPE
    except TerminationSignal:
        return EXIT_TERMINATED
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except (_ClickError, BucketlogError, OSError) as error:
        return _explain(error)
    except ModuleNotFoundError as error:
        missing = explained(error)
        if missing is None:
            raise
        return _explain(missing)


def _explain(error: Exception) -> int:
    """Print one line on stderr, and return the exit code."""
    if isinstance(error, _ClickError):
        message = cast(typer.BadParameter, error).format_message()
        if message.startswith("Usage:"):  # a group without a command: its help
            note(*message.split("\n"))
            return EXIT_USAGE
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "bucketlog"
        if origin := _variable_at_fault(error):
            message = f"{origin}: {message}"
        _print_error(
            f"{message} (see `{command} --help`)" if isinstance(error, _UsageError) else message
        )
        return EXIT_USAGE
    if isinstance(error, BucketlogError):
        _print_error(str(error))
        for remark in getattr(error, "__notes__", ()):
            note(*remark.split("\n"))
        return EXIT_USAGE if isinstance(error, ConfigurationError) else EXIT_FAILED
    name = getattr(error, "filename", None)
    if name:
        _print_error(f"{name}: {getattr(error, 'strerror', error)} ({_PATH_REMEDY})")
    else:
        _print_error(str(error))
    return EXIT_FAILED


def _variable_at_fault(error: Exception) -> str | None:
    """Where a refused value comes from, if not from the command line."""
    parameter, context = getattr(error, "param", None), getattr(error, "ctx", None)
    if parameter is None or context is None:
        return None
    source = context.get_parameter_source(parameter.name)
    if source is None or source.name != "ENVIRONMENT":
        return None
    given = parameter.envvar or f"{context.auto_envvar_prefix}_{parameter.name}".upper()
    return str(given)


def _print_error(message: str) -> None:
    print_error("bucketlog", message)
