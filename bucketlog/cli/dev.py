"""`bucketlog dev` (a whole cluster here)."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.output import note
from bucketlog.cli.signals import sigterm_interrupts

if TYPE_CHECKING:
    from bucketlog.embedded import EmbeddedCluster


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
    from bucketlog.embedded import EmbeddedCluster

    with sigterm_interrupts():
        if data is not None:
            _serve(EmbeddedCluster(data, port=port))
            return
        with TemporaryDirectory(prefix="bucketlog-dev-") as folder:
            _serve(EmbeddedCluster(folder, port=port))


def _serve(cluster: "EmbeddedCluster") -> None:
    try:
        with cluster:
            _introduce(cluster)
            cluster.wait()
    except KeyboardInterrupt:
        note("stopped")


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
