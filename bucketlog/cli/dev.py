"""`bucketlog dev` (a whole cluster here)."""

import os
from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory, mkstemp
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.output import note
from bucketlog.cli.signals import sigterm_interrupts

if TYPE_CHECKING:
    from bucketlog.embedded import ClusterStartError, EmbeddedCluster

FLAGS = frozenset({"BUCKETLOG_PORT"})
"""Settings that a flag of `dev` is for: a flag goes before the environment, as everywhere."""


def dev(
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="BUCKETLOG_DATA", metavar="DIR", help="Keep the data; default: thrown away."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(envvar="BUCKETLOG_PORT", min=0, max=65535, help="0: any free one.")
    ] = 9092,
) -> None:
    """Start a cluster here: Valkey, a folder as the bucket, one broker. Ctrl-C ends it."""
    from bucketlog.embedded import ClusterStartError, EmbeddedCluster

    with sigterm_interrupts():
        if data is not None:
            _serve(EmbeddedCluster(data, port=port))
            return
        with TemporaryDirectory(prefix="bucketlog-dev-") as folder:
            cluster = EmbeddedCluster(folder, port=port)
            try:
                _serve(cluster)
            except ClusterStartError as error:
                _keep_log(cluster.log_path, error)
                raise


def _serve(cluster: "EmbeddedCluster") -> None:
    for line in warnings(cluster, os.environ):
        note(f"bucketlog dev: {line}")
    try:
        with cluster:
            _introduce(cluster)
            cluster.wait()
    except KeyboardInterrupt:
        note("stopped")


def warnings(cluster: "EmbeddedCluster", environment: Mapping[str, str]) -> list[str]:
    """What is set for brokers and not heard here."""
    from stateless_broker.start_up import misspelt

    wrong = [
        f"{name} is no setting: is {meant} meant? (docs/configuration.md)"
        for name, meant in misspelt(environment)
    ]
    unheard = [
        f"{name}={_shown(environment[name])} is not heard: dev uses {used}; "
        "`bucketlog broker` takes it"
        for name, used in cluster.overridden(environment)
        if name not in FLAGS
    ]
    return wrong + unheard


def _shown(value: str) -> str:
    """Without what may be a password in it."""
    return "…" if "@" in value else value


def _keep_log(log: Path, error: "ClusterStartError") -> None:
    """The folder goes, the log that the error names stays."""
    if str(log) not in error.remedy or not log.exists():
        return
    file_descriptor, kept = mkstemp(prefix="bucketlog-dev-", suffix=".log")
    os.close(file_descriptor)
    copyfile(log, kept)
    error.remedy = error.remedy.replace(str(log), kept)


def _introduce(cluster: "EmbeddedCluster") -> None:
    address = cluster.bootstrap
    print(
        f"""bucketlog is ready at {address}

  kcat     echo hello | kcat -b {address} -t hello -P && kcat -b {address} -t hello -C -e
  python   import bucketlog; log = bucketlog.connect("{address}")
  command  bucketlog topic list -b {address}

data in {cluster.data_dir}, metrics at http://{cluster.host}:{cluster.http_port}/metrics, \
log in {cluster.log_path}
Ctrl-C stops it.""",
        flush=True,
    )
