"""`bucketlog export` copies topics of bucketlog to an Apache Kafka cluster."""

import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from bucketlog.cli.mirror import SCHEME, Groups, address, other_security
from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap
from bucketlog.cli.security import given_client_config, given_security, secured
from bucketlog.cli.signals import stop_asked
from bucketlog.client.mechanisms import DEFAULT_MECHANISM, Mechanism
from bucketlog.terminal import EXIT_OK, counted, note, say

SAY_S = 10.0

To = Annotated[
    str,
    typer.Option(
        "--to",
        envvar="BUCKETLOG_EXPORT_TO",
        metavar=f"{SCHEME}HOST:PORT",
        help="Address of the Kafka cluster to write to.",
    ),
]
Topics = Annotated[
    list[str],
    typer.Option("--topics", metavar="PATTERN", help="Topics to export, e.g. *; repeatable."),
]
ToPassword = Annotated[
    Path | None,
    typer.Option(
        "--to-password-file", metavar="FILE", help="File whose first line is the password."
    ),
]


@secured
def export(
    to: To,
    topics: Topics,
    groups: Groups = ["*"],  # noqa: B006 - Typer's default, never changed
    keep_offsets: Annotated[
        bool,
        typer.Option("--keep-offsets", help="Keep offsets. A gap in the offsets is then an error."),
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="End when all is exported. Default: keep exporting.")
    ] = False,
    finish: Annotated[
        bool,
        typer.Option("--finish", help="Export the rest, compare clusters, commit groups' offsets."),
    ] = False,
    to_tls: Annotated[bool, typer.Option("--to-tls", help="Use TLS for the target.")] = False,
    to_ca_file: Annotated[
        Path | None,
        typer.Option("--to-ca-file", metavar="FILE", help="CA certificates for the target (PEM)."),
    ] = None,
    to_username: Annotated[
        str | None, typer.Option("--to-username", metavar="USER", help="User name at the target.")
    ] = None,
    to_password_file: ToPassword = None,
    to_mechanism: Annotated[
        Mechanism, typer.Option("--to-mechanism", help="SASL mechanism for the target.")
    ] = DEFAULT_MECHANISM,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> int:
    """Copy topics to Apache Kafka.

    The command keeps copying new records. You may stop or kill it at any time, and run it again.
    """
    from bucketlog.mirror.export import Export, ExportSettings
    from bucketlog.mirror.run import ClusterAccess
    from bucketlog.mirror.translate import finish as finished

    there = other_security(
        to_username, to_password_file, to_mechanism, tls=to_tls, ca_file=to_ca_file
    )
    settings = ExportSettings(keep_offsets=keep_offsets)
    source = ClusterAccess(bootstrap, given_security(), settings.timeout_s, given_client_config())
    target = ClusterAccess(address(to, "--to"), there, settings.timeout_s)
    with (
        stop_asked() as asked,
        closing(Export(source, target, topics, settings, note)) as running,
    ):
        note(f"exporting {counted(len(running.topics), 'topic')}")
        said_s = time.monotonic()
        while not asked():
            if not running.step() and (once or finish) and running.lag() == 0:
                break
            if time.monotonic() - said_s >= SAY_S:
                said_s = time.monotonic()
                say(f"{running.records:,} records exported, {running.lag():,} offsets behind")
        say(f"{counted(running.records, 'record')} exported")
        asked.raise_signal()
        if finish:
            end = finished(running, source, target, groups, note, timeout_s=settings.timeout_s)
            say(
                f"{counted(end.partitions, 'partition')} with {counted(end.records, 'record')} are "
                f"equal, {end.same_offsets} with the same offsets; "
                f"offsets of {counted(end.groups, 'group')} committed. In compacted topics, only "
                "the latest record of each key is compared and counted"
            )
    return EXIT_OK
