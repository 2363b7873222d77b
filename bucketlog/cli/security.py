"""TLS and logins for every command that connects to brokers: the flags, once for all of them.

`secured` adds the flags to a command, and `connected` connects with what they say. A password comes
from a file, the environment or a profile; a flag for it exists, too, and warns in its help.
"""

import functools
import stat
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar, cast

import typer

from bucketlog.cli.options import assignment
from bucketlog.cli.shared_flags import signature_with
from bucketlog.client.mechanisms import DEFAULT_MECHANISM, Mechanism
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import note

if TYPE_CHECKING:
    from bucketlog.client.access_tokens import TokenSource
    from bucketlog.client.log import Log
    from bucketlog.client.security import Security

P = ParamSpec("P")
R = TypeVar("R")
SECRET_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """Values of the flags; None for a flag that is not given."""

    tls: bool | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password_file: Path | None = None
    verify_hostname: bool = True
    username: str | None = None
    password: str | None = None
    password_file: Path | None = None
    mechanism: Mechanism = DEFAULT_MECHANISM
    token_file: Path | None = None
    token_url: str | None = None
    token_client_id: str | None = None
    token_client_secret_file: Path | None = None
    token_scope: str | None = None
    token_ca_file: Path | None = None
    client_config: list[str] | None = None


def _option(name: str, text: str, **more: Any) -> Any:
    variable = f"BUCKETLOG_{name.split('/')[0].lstrip('-').replace('-', '_').upper()}"
    return typer.Option(name, envvar=variable, help=text, **more)


_FLAGS: Mapping[str, Any] = {
    "tls": Annotated[
        bool | None, _option("--tls/--no-tls", "TLS; default: if a flag below is given.")
    ],
    "ca_file": Annotated[
        Path | None,
        _option(
            "--ca-file", "Authorities to trust, in PEM; default: the system's.", metavar="FILE"
        ),
    ],
    "certificate_file": Annotated[
        Path | None,
        _option("--client-certificate-file", "This client's certificate, in PEM.", metavar="FILE"),
    ],
    "key_file": Annotated[
        Path | None,
        _option("--client-key-file", "Key of this client's certificate, in PEM.", metavar="FILE"),
    ],
    "key_password_file": Annotated[
        Path | None,
        _option("--client-key-password-file", "File with the key's password.", metavar="FILE"),
    ],
    "verify_hostname": Annotated[
        bool,
        _option(
            "--verify-hostname/--no-verify-hostname",
            "Whether the broker's certificate must have the name of its address.",
        ),
    ],
    "username": Annotated[
        str | None, _option("--username", "Log in as this user.", metavar="USER")
    ],
    "password": Annotated[
        str | None,
        _option(
            "--password",
            "Password; other users of this machine can see it. Prefer BUCKETLOG_PASSWORD.",
            metavar="TEXT",
            show_default=False,
        ),
    ],
    "password_file": Annotated[
        Path | None,
        _option("--password-file", "File whose first line is the password.", metavar="FILE"),
    ],
    "mechanism": Annotated[Mechanism, _option("--mechanism", "SASL mechanism of the login.")],
    "token_file": Annotated[
        Path | None,
        _option("--token-file", "Log in by the access token in this file.", metavar="FILE"),
    ],
    "token_url": Annotated[
        str | None,
        _option("--token-url", "Log in by access tokens from this token URL.", metavar="URL"),
    ],
    "token_client_id": Annotated[
        str | None, _option("--token-client-id", "Client id at the token URL.", metavar="ID")
    ],
    "token_client_secret_file": Annotated[
        Path | None,
        _option(
            "--token-client-secret-file", "File with the secret of that client.", metavar="FILE"
        ),
    ],
    "token_scope": Annotated[
        str | None, _option("--token-scope", "Scope to request.", metavar="TEXT")
    ],
    "token_ca_file": Annotated[
        Path | None,
        _option(
            "--token-ca-file",
            "File with the authorities to trust at the token URL.",
            metavar="FILE",
        ),
    ],
    "client_config": Annotated[
        list[str] | None,
        typer.Option(
            "--client-config",
            "-X",
            envvar="BUCKETLOG_CLIENT_CONFIG",
            metavar="NAME=VALUE",
            help="Setting of librdkafka; repeatable.",
        ),
    ],
}
_given: ContextVar[_Given] = ContextVar("_given")


def secured(command: Callable[P, R]) -> Callable[P, R]:
    """Add the flags of TLS and logins to a command. `connected` sees their values."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        ours = {name: kwargs.pop(name) for name in _FLAGS if name in kwargs}
        token = _given.set(_Given(**cast(dict[str, Any], ours)))
        try:
            return command(*args, **kwargs)
        finally:
            _given.reset(token)

    signature_with(run, command, _FLAGS, _Given())
    return run


def connected(bootstrap: str) -> "Log":
    """The cluster, with the TLS, the login and the client settings of the running command."""
    from bucketlog.client.log import connect

    return connect(bootstrap, security=given_security(), config=given_client_config())


def given_client_config() -> dict[str, str]:
    """The settings of librdkafka that -X gives. Raises `ConfigurationError`."""
    given = _given.get(_Given()).client_config
    config = dict(assignment(text, "--client-config") for text in given or ())
    if config:
        from bucketlog.bench.producing import check_client_config

        check_client_config(config)
    return config


def given_security() -> "Security | None":
    """Return the security of the running command's flags. Raises `ConfigurationError`."""
    given = _given.get(_Given())
    wants = (
        *(given.ca_file, given.certificate_file, given.key_file, given.username),
        *(given.token_file, given.token_url),
    )
    if not given.tls and not any(each is not None for each in wants):
        _check_unused(given)
        return None
    from bucketlog.client.security import Security

    return Security(
        ca_file=given.ca_file,
        certificate_file=given.certificate_file,
        key_file=given.key_file,
        key_password=_secret(given.key_password_file, "--client-key-password-file"),
        username=given.username,
        password=_password(given),
        mechanism=given.mechanism,
        tls=given.tls is not False,
        verify_hostname=given.verify_hostname,
        token=_token(given),
    )


def _token(given: _Given) -> "TokenSource | None":
    """Raises `ConfigurationError`."""
    from bucketlog.client.access_tokens import ClientCredentials, TokenFile

    if given.token_url is None:
        _check_no_client(given)
        return None if given.token_file is None else TokenFile(given.token_file)
    if given.token_file is not None:
        raise ConfigurationError("--token-file and --token-url", remedy="leave one out")
    secret = _secret(given.token_client_secret_file, "--token-client-secret-file")
    if given.token_client_id is None or secret is None:
        raise ConfigurationError(
            "--token-url without a client",
            remedy="add --token-client-id and --token-client-secret-file",
        )
    return ClientCredentials(
        token_url=given.token_url,
        client_id=given.token_client_id,
        client_secret=secret,
        scope=given.token_scope,
        ca_file=given.token_ca_file,
    )


def _check_no_client(given: _Given) -> None:
    """A token client without a token URL would be ignored silently."""
    client = (
        *(given.token_client_id, given.token_client_secret_file),
        *(given.token_scope, given.token_ca_file),
    )
    if any(each is not None for each in client):
        raise ConfigurationError(
            "flags of a token client without a token URL", remedy="add --token-url"
        )


def _check_unused(given: _Given) -> None:
    """A password without a user would be ignored silently."""
    _check_no_client(given)
    if given.password is not None or given.password_file is not None:
        raise ConfigurationError("a password without a user", remedy="add --username")


def _password(given: _Given) -> str | None:
    if given.password is not None and given.password_file is not None:
        raise ConfigurationError(
            "--password and --password-file (or their variables)", remedy="leave one out"
        )
    if given.password is not None:
        return given.password
    if given.username is not None and given.password_file is None:
        raise ConfigurationError(
            f"user {given.username!r} has no password",
            remedy="give --password-file FILE, or set BUCKETLOG_PASSWORD",
        )
    return _secret(given.password_file, "--password-file")


def _secret(file: Path | None, flag: str) -> str | None:
    return None if file is None else read_secret(file, flag)


def read_secret(file: Path, flag: str) -> str:
    """The first line of a file. Warns if others may read the file. Raises `ConfigurationError`."""
    try:
        with file.open("rb") as opened:
            text = opened.read(SECRET_BYTES_MAX + 1)
        mode = stat.S_IMODE(file.stat().st_mode)
    except OSError as error:
        raise ConfigurationError(
            f"{flag} {file}: {error.strerror}", remedy="give a file that this user can read"
        ) from error
    if mode & 0o007 and file.is_file():
        note(f"{file}: every user of this machine may use this password: run chmod 600 {file}")
    return first_line(text, f"{flag} {file}")


def first_line(text: bytes, source: str) -> str:
    """A password as the first line of a text. Raises `ConfigurationError`, without the text."""
    line = text.partition(b"\n")[0].removesuffix(b"\r")
    try:
        secret = line.decode()
    except UnicodeDecodeError:
        secret = ""
    if not secret or len(text) > SECRET_BYTES_MAX:
        raise ConfigurationError(
            f"{source}: its first line is not a password",
            remedy="write the password into it, in UTF-8",
        )
    return secret
