"""Flags of commands that use a schema registry: its address, login and authorities."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, cast

import typer

from bucketlog.cli.shared_flags import signature_with
from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.schema_registry.subjects import Subjects

P = ParamSpec("P")
R = TypeVar("R")
URL_VARIABLE = "BUCKETLOG_SCHEMA_REGISTRY_URL"
AUTH_VARIABLE = "BUCKETLOG_SCHEMA_REGISTRY_AUTH"
CA_FILE_VARIABLE = "BUCKETLOG_SCHEMA_REGISTRY_CA_FILE"

RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry-url",
        envvar=URL_VARIABLE,
        metavar="URL",
        help="Address of the schema registry; several: comma-separated.",
    ),
]
ShowingRegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry-url",
        envvar=URL_VARIABLE,
        metavar="URL",
        help="Show Avro, Protobuf and JSON of this schema registry as JSON.",
    ),
]
RegistryAuth = Annotated[
    str | None,
    typer.Option(
        "--registry-auth",
        envvar=AUTH_VARIABLE,
        metavar="USER:PASSWORD",
        help="Login at the registry. Other users of this machine can see it: use the variable.",
        show_default=False,
    ),
]
RegistryCaFile = Annotated[
    Path | None,
    typer.Option(
        "--registry-ca-file",
        envvar=CA_FILE_VARIABLE,
        metavar="FILE",
        help="Authorities to trust at the registry, in PEM; default: the system's.",
    ),
]
_FLAGS: Mapping[str, Any] = {
    "registry_url": RegistryUrl,
    "registry_auth": RegistryAuth,
    "registry_ca_file": RegistryCaFile,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    registry_url: str | None = None
    registry_auth: str | None = None
    registry_ca_file: Path | None = None


def with_registry(command: Callable[Concatenate["Subjects", P], R]) -> Callable[P, R]:
    """Fill the first parameter of a command: the subjects of the registry that the flags name."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        ours = {name: kwargs.pop(name) for name in _FLAGS if name in kwargs}
        given = _Given(**cast(dict[str, Any], ours))
        return command(_subjects(given), *args, **kwargs)

    first = next(iter(inspect.signature(command).parameters))
    signature_with(run, command, _FLAGS, _Given(), replaced=first)
    return run


def registry_login(text: str | None) -> tuple[str, str] | None:
    """Return the user and the password of --registry-auth. Raises `ConfigurationError`."""
    if text is None:
        return None
    user, colon, password = text.partition(":")
    if not user or not colon:
        raise ConfigurationError(
            "--registry-auth needs a user and a password", remedy="give USER:PASSWORD"
        )
    return user, password


def _subjects(given: _Given) -> "Subjects":
    if not given.registry_url:
        raise ConfigurationError(
            "no URL of a schema registry", remedy=f"give --registry-url URL, or set {URL_VARIABLE}"
        )
    from bucketlog.schema_registry.registry_connection import RegistryConnection
    from bucketlog.schema_registry.subjects import Subjects

    ca_file = given.registry_ca_file
    connection = RegistryConnection(
        given.registry_url,
        auth=registry_login(given.registry_auth),
        ca_file=None if ca_file is None else str(ca_file),
    )
    return Subjects(connection)
