"""`bucketlog dev` (a whole cluster here)."""

import os
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory, mkstemp
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.profiles import shown
from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import counted, note, say

if TYPE_CHECKING:
    from bucketlog.embedded.cluster import ClusterStartError, EmbeddedCluster

FLAGS = frozenset({"BUCKETLOG_PORT", "BUCKETLOG_HTTP_PORT"})
"""Settings that have a flag of `dev`. As everywhere, a flag overrides the environment."""
SAID_BY = {"BUCKETLOG_BUCKET_URL": "--s3", "BUCKETLOG_REDIS_URL": "--redis"}
"""Settings that another flag of `dev` says."""
SEED_RECORDS = 10_000
SOON_TOLD = {"start_timeout_ms": "5000"}
"""A person who waits sees that a Redis or a store does not answer."""
S3_ENDPOINT = "AWS_ENDPOINT_URL_S3"


class Seed(StrEnum):
    FLIGHTS = "flights"


Data = Annotated[
    Path | None,
    typer.Option(
        envvar="BUCKETLOG_DATA",
        metavar="DIR",
        help="Folder that keeps the data; default: the data is deleted at the end. With --s3, "
        "it has only a lock and a log.",
    ),
]
Port = Annotated[
    int,
    typer.Option(
        envvar="BUCKETLOG_PORT",
        min=0,
        max=65535,
        help="Port of the first broker; others take free ports next to it. 0: any free port.",
    ),
]
HttpPort = Annotated[
    int,
    typer.Option(
        envvar="BUCKETLOG_HTTP_PORT",
        min=0,
        max=65535,
        help="Port of /metrics and /healthz of the first broker; others take free ports next to "
        "it. 0: any free port.",
    ),
]
Brokers = Annotated[int, typer.Option(min=1, help="Number of brokers in the cluster.")]
SeedName = Annotated[Seed | None, typer.Option(help="Load real records into a topic of that name.")]
SeedRecords = Annotated[
    int | None, typer.Option(min=1, help=f"Number of records; default: the first {SEED_RECORDS:,}.")
]
S3 = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Bucket, as s3://bucket/prefix (AWS_* apply); default: a folder in --data.",
    ),
]
S3Endpoint = Annotated[
    str | None,
    typer.Option(metavar="URL", help=f"Address of a store other than AWS's ({S3_ENDPOINT})."),
]
RedisUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Address of a running Redis; default: the command starts a Valkey."
    ),
]


def dev(
    data: Data = None,
    port: Port = 9092,
    http_port: HttpPort = 0,
    brokers: Brokers = 1,
    seed: SeedName = None,
    seed_records: SeedRecords = None,
    s3: S3 = None,
    s3_endpoint: S3Endpoint = None,
    redis: RedisUrl = None,
) -> None:
    """Start a cluster here, by default Valkey, a folder as the bucket, one broker. Ctrl-C ends it.

    If a broker dies, its exit is reported and the others keep running. The cluster stops when
    Valkey or the last broker exits.
    """
    _check(seed, seed_records, s3, s3_endpoint)
    if port and http_port == port:
        raise ConfigurationError(
            f"--http-port {http_port} is also the --port", remedy="give two different ports"
        )
    if s3_endpoint is not None:
        os.environ[S3_ENDPOINT] = s3_endpoint  # `main` restores the environment
    from bucketlog.embedded.cluster import ClusterStartError, EmbeddedCluster

    def cluster_in(folder: str | Path) -> EmbeddedCluster:
        return EmbeddedCluster(
            folder,
            port=port,
            redis_url=redis,
            bucket_url=s3,
            settings={"http_port": str(http_port), **(SOON_TOLD if redis or s3 else {})},
            brokers=brokers,
        )

    def introduced(cluster: EmbeddedCluster) -> None:
        _introduce(cluster)
        if seed is not None:
            _seed(cluster, seed_records or SEED_RECORDS)

    with sigterm_interrupts():
        if data is not None:
            _serve(cluster_in(data), introduced)
            return
        with TemporaryDirectory(prefix="bucketlog-dev-") as folder:
            cluster = cluster_in(folder)
            try:
                _serve(cluster, introduced)
            except ClusterStartError as error:
                _keep_log(cluster.log_path, error)
                raise


def _check(
    seed: Seed | None, seed_records: int | None, s3: str | None, s3_endpoint: str | None
) -> None:
    """Raises `ConfigurationError` for flags that do not go together, before anything is begun."""
    if s3 is not None and not s3.startswith("s3://"):
        raise ConfigurationError(
            f"--s3 {s3}", remedy="give it as s3://bucket/prefix; a folder is given by --data"
        )
    if s3_endpoint is not None and s3 is None:
        raise ConfigurationError("--s3-endpoint without --s3", remedy="add --s3 s3://bucket/prefix")
    if seed_records is not None and seed is None:
        raise ConfigurationError(
            "--seed-records without --seed", remedy=f"add --seed {' or '.join(Seed)}"
        )
    if seed is not None:
        from bucketlog.demo.seeding import check_seed

        check_seed()


def _serve(cluster: "EmbeddedCluster", introduce: "Callable[[EmbeddedCluster], None]") -> None:
    for line in warnings(cluster, os.environ):
        note(f"bucketlog dev: {line}")
    try:
        with cluster:
            introduce(cluster)
            cluster.wait(_report_exit)
    except KeyboardInterrupt:
        note("stopped")


def _report_exit(loss: str) -> None:
    note(f"bucketlog dev: {loss}")


def warnings(cluster: "EmbeddedCluster", environment: Mapping[str, str]) -> list[str]:
    """What is set for brokers and not heard here."""
    from bucketlog.stateless_broker.process.start_up import misspelt

    wrong = [
        f"unknown setting {name}; did you mean {meant}? (docs/configuration.md)"
        for name, meant in misspelt(environment)
    ]
    unheard = [
        f"{name}={_shown(environment[name])} is not heard: dev uses {shown(name, used)}; "
        f"`{SAID_BY.get(name, 'bucketlog broker')}` takes it"
        for name, used in cluster.overridden(environment)
        if name not in FLAGS
    ]
    return wrong + unheard


def _shown(value: str) -> str:
    """Return the value, or an ellipsis if a password may be in the value."""
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
    is_folder = cluster.bucket_url.startswith("file:")
    places = [f"data in {cluster.data_dir if is_folder else cluster.bucket_url}"]
    if cluster.redis_url:
        places.append(f"Redis at {shown('redis_url', cluster.redis_url)}")
    members = [
        f"broker {member.node_id} at {member.address}, process {member.pid}, "
        f"metrics at http://{member.http_host}:{member.http_port}/metrics"
        for member in cluster.members
    ]
    lines = "\n".join(members)
    text = f"""bucketlog is ready at {address}

  kcat     echo hello | kcat -b {address} -t hello -P && kcat -b {address} -t hello -C -e
  python   import bucketlog; log = bucketlog.connect("{address}")
  command  bucketlog topic list -b {address}

{lines}
{", ".join([*places, f"log in {cluster.log_path}"])}
Ctrl-C stops {"it" if len(members) == 1 else "all"}."""
    _say(text)


def _seed(cluster: "EmbeddedCluster", records: int) -> None:
    from bucketlog.demo.seeding import seed_flights

    seeded = seed_flights(cluster.bootstrap, records, lambda: cluster.check(_report_exit))
    state = "loaded" if seeded.is_new else "there already, left as they are"
    text = f"""
topic {seeded.topic}: {counted(seeded.records, "record")} {state}

  command  bucketlog consume {seeded.topic} --from start -n 3 -b {cluster.bootstrap}
  python   from bucketlog.demo.flights import flights_topic
           for flight in log.consumer(flights_topic(), start="earliest", until="end"): ..."""
    _say(text)


def _say(text: str) -> None:
    say(*text.split("\n"))
    sys.stdout.flush()
