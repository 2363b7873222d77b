"""`bucketlog console`: pages about a log in a browser, from the bucket, also from brokers."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.options import BucketUrl, EncryptionKeyFile, SafetyAgeMs, safety_age
from bucketlog.cli.registry_flags import (
    RegistryAuth,
    RegistryCaFile,
    ShowingRegistryUrl,
    registry_login,
)
from bucketlog.cli.security import given_client_config, given_security, secured
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.local_server import is_local
from bucketlog.terminal import note, say

if TYPE_CHECKING:
    from bucketlog.console.broker_access import BrokerAccess

DEFAULT_PORT = 9644

Host = Annotated[
    str,
    typer.Option(
        envvar="BUCKETLOG_CONSOLE_HOST",
        help="Address to listen on. The pages have no login: prefer a local address.",
    ),
]
Port = Annotated[
    int,
    typer.Option(
        envvar="BUCKETLOG_CONSOLE_PORT",
        min=0,
        max=65_535,
        help="Port to listen on; 0: any free port.",
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        envvar="BUCKETLOG_CONSOLE_ALLOWED_HOST",
        metavar="NAME",
        help="Host name by which browsers may call, as *.example.com; '*': any. Repeatable.",
    ),
]
ConsoleBootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="BUCKETLOG_CONSOLE_BOOTSTRAP",
        metavar="HOST:PORT",
        help="Address of a broker of this bucket, for the page Brokers, group members and changes.",
    ),
]
MayChange = Annotated[
    bool,
    typer.Option(
        "--changes",
        envvar="BUCKETLOG_CONSOLE_CHANGES",
        help="Let pages change topics and groups, and produce records. Needs --bootstrap.",
    ),
]

BrokerPages = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        envvar="BUCKETLOG_CONSOLE_METRICS",
        metavar="URL",
        help="Metrics page of a broker, http://HOST:PORT/metrics, for the page Brokers; "
        "repeatable.",
    ),
]
ReplayFolder = Annotated[
    Path | None,
    typer.Option(
        "--replay-folder",
        envvar="BUCKETLOG_CONSOLE_REPLAY_FOLDER",
        metavar="DIR",
        help="Let the page Replay write Parquet files to new folders in this folder.",
    ),
]


@secured
def console(
    bucket: BucketUrl,
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    allowed_host: AllowedHosts = None,
    registry_url: ShowingRegistryUrl = None,
    registry_auth: RegistryAuth = None,
    registry_ca_file: RegistryCaFile = None,
    bootstrap: ConsoleBootstrap = None,
    changes: MayChange = False,
    metrics: BrokerPages = None,
    replay_folder: ReplayFolder = None,
    safety_age_ms: SafetyAgeMs = None,
    encryption_key_file: EncryptionKeyFile = None,
) -> None:
    """Show a log in a browser: topics, records, groups, objects and cost. Needs no broker."""
    from bucketlog.console.serving import serve_console
    from bucketlog.schema_registry.registry_access import RegistryAccess
    from bucketlog.tiered_storage.encryption.reading_keys import KeyOptions

    if not is_local(host):
        can = "read and change" if changes else "read"
        note(f"everyone who reaches {host}:{port} can {can} this log: the pages have no login")
    if host in ("0.0.0.0", "::") and not allowed_host:
        note("browsers may only call localhost: name other hosts with --allowed-host")
    serve_console(
        bucket,
        host=host,
        port=port,
        allowed_hosts=allowed_host or (),
        access=KeyOptions(key_file=encryption_key_file).access(),
        safety_age_ms=safety_age(safety_age_ms),
        on_ready=lambda address: say(f"console at {address} (Ctrl-C stops it)"),
        schema_registry=RegistryAccess(
            registry_url, registry_login(registry_auth), registry_ca_file
        )
        if registry_url
        else None,
        cluster=_cluster(bootstrap, may_change=changes),
        replay_folder=replay_folder,
        metrics=metrics or (),
    )


def _cluster(bootstrap: str | None, *, may_change: bool) -> "BrokerAccess | None":
    """The connection to brokers; None without `bootstrap`. Raises `ConfigurationError`."""
    from bucketlog.client.log import connect
    from bucketlog.console.broker_access import BrokerAccess
    from bucketlog.console.settings import ConsoleSettings

    if bootstrap is None:
        if may_change:
            raise ConfigurationError(
                "--changes without --bootstrap", remedy="add --bootstrap HOST:PORT of a broker"
            )
        return None
    security, config = given_security(), given_client_config()
    settings = ConsoleSettings()
    return BrokerAccess(
        lambda: connect(
            bootstrap,
            client_id="bucketlog-console",
            timeout_s=settings.broker_ms_max / 1000,
            security=security,
            config=config,
        ),
        bootstrap=bootstrap,
        may_change=may_change,
        retry_s=settings.broker_retry_ms / 1000,
        now_s=time.monotonic,
    )
