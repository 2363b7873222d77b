"""`bucketlog user`: add, password, list, delete."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat
from bucketlog.cli.security import SECRET_BYTES_MAX, connected, first_line, read_secret, secured
from bucketlog.client.mechanisms import (
    DEFAULT_ITERATIONS,
    DEFAULT_MECHANISM,
    CredentialMechanism,
)
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import Output, ask_secret, confirm, note, print_rows

if TYPE_CHECKING:
    from bucketlog.client.log import Log

app = typer.Typer(
    help="Add users who log in, change their passwords, list and delete them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Name = Annotated[str, typer.Argument(metavar="USER")]
NewPasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--new-password-file",
        metavar="FILE",
        help="File whose first line is the password; -: standard input. Default: ask on a "
        "terminal, else "
        "standard input.",
    ),
]
Iterations = Annotated[
    int,
    typer.Option(
        "--iterations",
        min=1,
        help="Iterations of the salted password: 4096 to 16384. More make guesses slower.",
    ),
]
OneCredential = Annotated[
    CredentialMechanism | None,
    typer.Option("--credential", help="Mechanism of the password; default: all that the user has."),
]
COLUMNS = ("user", "mechanism", "iterations")
STDIN = Path("-")


@app.command("add")
@secured
def add(
    name: Name,
    new_password_file: NewPasswordFile = None,
    credential: Annotated[
        CredentialMechanism, typer.Option("--credential", help="How the user logs in.")
    ] = DEFAULT_MECHANISM,
    iterations: Iterations = DEFAULT_ITERATIONS,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Add a user, or a second mechanism of a user."""
    with connected(bootstrap) as log:
        if credential in _credentials(log, name):
            raise ConfigurationError(
                f"user {name!r} has a {credential} password",
                remedy="run `bucketlog user password` to change it",
            )
        password = new_password(name, new_password_file)
        log.users.set_password(name, password, mechanism=credential, iterations=iterations)
    note(f"user {name} is added, with {credential}")


@app.command("password")
@secured
def password(
    name: Name,
    new_password_file: NewPasswordFile = None,
    credential: OneCredential = None,
    iterations: Iterations = DEFAULT_ITERATIONS,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Change a user's password."""
    with connected(bootstrap) as log:
        mechanisms = _wanted(log, name, credential)
        new = new_password(name, new_password_file)
        for mechanism in mechanisms:
            log.users.set_password(name, new, mechanism=mechanism, iterations=iterations)
    note(f"user {name} has a new password, for {', '.join(mechanisms)}")


@app.command("list")
@secured
def list_users(
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP, output: OutputFormat = Output.TABLE
) -> None:
    """List all users, a row for each mechanism."""
    with connected(bootstrap) as log:
        rows = [asdict(row) for row in log.users.list()]
    print_rows(rows, COLUMNS, output)


@app.command("delete")
@secured
def delete(
    name: Name,
    credential: OneCredential = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete a user, or one mechanism of a user."""
    with connected(bootstrap) as log:
        mechanisms = _wanted(log, name, credential)
        if not yes:
            confirm(f"Delete user {name} ({', '.join(mechanisms)})?")
        for mechanism in mechanisms:
            log.users.delete(name, mechanism=mechanism)
    note(f"user {name} is deleted ({', '.join(mechanisms)})")


def _credentials(log: "Log", name: str) -> list[CredentialMechanism]:
    return [row.mechanism for row in log.users.list() if row.user == name]


def _wanted(
    log: "Log", name: str, credential: CredentialMechanism | None
) -> Sequence[CredentialMechanism]:
    there = _credentials(log, name)
    if not there or (credential is not None and credential not in there):
        what = f"{credential} password of user {name!r}" if there else f"user {name!r}"
        raise ConfigurationError(
            f"there is no {what}", remedy="run `bucketlog user list` to see all"
        )
    return there if credential is None else [credential]


def new_password(name: str, file: Path | None) -> str:
    """Read a password from a file, the terminal or standard input. Raises `ConfigurationError`."""
    if file is not None and file != STDIN:
        return read_secret(file, "--new-password-file")
    if file is None and sys.stdin.isatty():
        new = ask_secret(f"New password of {name}: ")
        if not new:
            raise ConfigurationError("the password is empty", remedy="give one")
        if ask_secret("Again: ") != new:
            raise ConfigurationError("the two passwords differ", remedy="try again")
        return new
    return first_line(sys.stdin.buffer.readline(SECRET_BYTES_MAX + 1), "standard input")
