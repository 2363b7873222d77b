"""`bucketlog mirror` copies topics of Apache Kafka into bucketlog, with their offsets."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap
from bucketlog.cli.security import given_client_config, given_security, read_secret, secured
from bucketlog.cli.signals import sigterm_interrupts, stop_asked
from bucketlog.client.mechanisms import DEFAULT_MECHANISM, Mechanism
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import EXIT_FAILED, EXIT_OK, counted, note, say

if TYPE_CHECKING:
    from bucketlog.client.security import Security
    from bucketlog.mirror.cut_over import CutOverSettings
    from bucketlog.mirror.run import Mirror, MirrorFigures

SCHEME = "kafka://"
LOOK_S = 1.0
MIB = 1 << 20

From = Annotated[
    str,
    typer.Option(
        "--from",
        envvar="BUCKETLOG_MIRROR_FROM",
        metavar="kafka://HOST:PORT",
        help="Address of the Kafka cluster to copy from.",
    ),
]
Topics = Annotated[
    list[str],
    typer.Option("--topics", metavar="PATTERN", help="Topics to copy, e.g. orders-*; repeatable."),
]
Groups = Annotated[
    list[str],
    typer.Option(
        "--groups", metavar="PATTERN", help="Groups whose offsets are copied; repeatable."
    ),
]
WithAcls = Annotated[bool, typer.Option("--acls/--no-acls", help="Also copy ACLs.")]
FromTls = Annotated[bool, typer.Option("--from-tls", help="Use TLS for the source.")]
FromCa = Annotated[
    Path | None,
    typer.Option("--from-ca-file", metavar="FILE", help="CA certificates for the source, in PEM."),
]
FromUser = Annotated[
    str | None,
    typer.Option("--from-username", metavar="USER", help="User name at the source."),
]
FromPassword = Annotated[
    Path | None,
    typer.Option(
        "--from-password-file", metavar="FILE", help="File whose first line is the password."
    ),
]
FromMechanism = Annotated[
    Mechanism, typer.Option("--from-mechanism", help="SASL mechanism for the source.")
]
Workers = Annotated[int, typer.Option(min=1, max=64, help="Number of threads that copy.")]
PartitionMib = Annotated[
    int, typer.Option(min=1, max=60, help="MiB of a partition in a fetch, at most.")
]


Stop = Annotated[
    Literal["none", "acl", "config"],
    typer.Option(help="How --cut-over stops the source's producers; none: you stop them."),
]


@secured
def mirror(
    source: From,
    topics: Topics,
    groups: Groups = ["*"],  # noqa: B006 - Typer's default, never changed
    acls: WithAcls = True,
    once: Annotated[
        bool, typer.Option("--once", help="End when all is copied. Default: keep copying.")
    ] = False,
    cut_over: Annotated[
        bool, typer.Option("--cut-over", help="Compare clusters, and move producers to bucketlog.")
    ] = False,
    groups_alone: Annotated[
        bool, typer.Option("--groups-alone", help="After a cut-over, only copy groups' offsets.")
    ] = False,
    stop_writers: Stop = "none",
    quiet_s: Annotated[
        float,
        typer.Option(
            min=0.5,
            help="Seconds without new records after which --cut-over considers the source at rest.",
        ),
    ] = 3.0,
    rest_s: Annotated[
        float,
        typer.Option(min=1, help="Seconds that --cut-over waits until the source is at rest."),
    ] = 600.0,
    groups_s: Annotated[
        float,
        typer.Option(min=0, help="Seconds that --cut-over waits for consumers to leave."),
    ] = 0.0,
    workers: Workers = 4,
    partition_mib: PartitionMib = 4,
    from_tls: FromTls = False,
    from_ca_file: FromCa = None,
    from_username: FromUser = None,
    from_password_file: FromPassword = None,
    from_mechanism: FromMechanism = DEFAULT_MECHANISM,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> int:
    """Copy topics of Apache Kafka with their offsets, configs, ACLs and groups.

    The command keeps copying new records. You may stop or kill it at any time: the next run
    continues where the copies end.
    """
    from bucketlog.mirror.cut_over import CutOverSettings, StopWriters
    from bucketlog.mirror.run import ClusterAccess, Mirror, MirrorSelection, sync_groups_alone
    from bucketlog.mirror.settings import MirrorSettings

    there = other_security(
        from_username, from_password_file, from_mechanism, tls=from_tls, ca_file=from_ca_file
    )
    settings = MirrorSettings(workers=workers, partition_bytes=partition_mib * MIB)
    clusters = (
        ClusterAccess(address(source, "--from"), there, settings.timeout_s),
        ClusterAccess(bootstrap, given_security(), settings.timeout_s, given_client_config()),
    )
    selection = MirrorSelection(topics, groups, acls)
    if groups_alone:
        if cut_over or once:
            raise ConfigurationError(
                "--groups-alone only copies offsets of groups", remedy="omit --cut-over and --once"
            )
        return _say_moved(sync_groups_alone(*clusters, selection, note))
    with Mirror(*clusters, selection, settings, note) as running:
        _look_first(running, topics, is_once=once or cut_over)
        if cut_over:
            how = StopWriters(stop_writers)
            rules = CutOverSettings(how, quiet_s, rest_s, groups_s, settings.timeout_s)
            return _cut_over(running, rules)
        return _follow(running, settings.sync_s, is_once=once)


def _say_moved(moved: tuple[int, list[str]]) -> int:
    """Print how many groups have new offsets, and which groups have members at the source."""
    copied, active = moved
    say(f"new offsets of {counted(copied, 'group')} copied")
    note(
        *(
            f"group {group!r} has members at the source: stop its consumers, and run the command "
            "again"
            for group in active
        )
    )
    return EXIT_FAILED if active else EXIT_OK


def _look_first(running: "Mirror", patterns: list[str], *, is_once: bool) -> None:
    """Begin to mirror matching topics. Raises `MirrorError` if `is_once` and no topic matches."""
    from bucketlog.mirror.topics import no_topic

    running.look()
    if not running.topics:
        if is_once:
            raise no_topic(patterns)
        note(f"{no_topic(patterns).args[0]}: waiting for topics")
    else:
        note(f"mirroring {counted(len(running.topics), 'topic')}")


def _follow(running: "Mirror", sync_s: float, *, is_once: bool) -> int:
    """Copy until a signal arrives. `is_once`: also end when all is copied."""
    with stop_asked() as asked:
        last_look = time.monotonic()
        while not asked():
            time.sleep(LOOK_S)
            running.check()
            figures = running.figures()
            if is_once and figures.lag == 0:
                running.look()
                break
            if time.monotonic() - last_look >= sync_s:
                running.look_patiently()
                say_figures(figures)
                last_look = time.monotonic()
        say_figures(running.figures())
    asked.raise_signal()
    return EXIT_OK


def _cut_over(running: "Mirror", settings: "CutOverSettings") -> int:
    from bucketlog.mirror.cut_over import cut_over

    with sigterm_interrupts():
        done = cut_over(running, settings, note)
    for partition, (records, digest) in done.digests.items():
        say(f"{partition} {records} {digest}")
    say(
        f"{counted(done.topics, 'topic')}, {counted(done.partitions, 'partition')}, "
        f"{counted(done.records, 'record')} are equal; downtime {done.downtime_s:.1f} s"
    )
    return EXIT_OK


def say_figures(figures: "MirrorFigures") -> None:
    lag = "?" if figures.lag is None else f"{figures.lag:,}"
    say(
        f"{figures.partitions} partitions, {figures.records:,} records "
        f"({figures.size_bytes / MIB:,.1f} MiB) copied, {lag} offsets behind"
    )


def address(url: str, option: str) -> str:
    """The part HOST:PORT of `kafka://HOST:PORT`. Raises `ConfigurationError`."""
    if not url.startswith(SCHEME) or not url.removeprefix(SCHEME).rpartition(":")[2].isdigit():
        raise ConfigurationError(f"{option} {url}", remedy=f"write {option} {SCHEME}HOST:PORT")
    return url.removeprefix(SCHEME)


def other_security(
    username: str | None,
    password_file: Path | None,
    mechanism: Mechanism,
    *,
    tls: bool,
    ca_file: Path | None,
) -> "Security | None":
    """TLS and login for the Kafka cluster; None without them. Raises `ConfigurationError`."""
    if not tls and username is None and ca_file is None:
        return None
    from bucketlog.client.security import Security

    return Security(
        tls=tls or ca_file is not None,
        ca_file=ca_file,
        username=username,
        password=None if password_file is None else read_secret(password_file, "password file"),
        mechanism=mechanism,
    )
