"""The cluster that tests talk to, started here or running elsewhere, and what pytest's
configuration says of it."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from bucketlog.log_format.errors import BucketlogError, ConfigurationError

BOOTSTRAP_VARIABLE = "BUCKETLOG_TEST_BOOTSTRAP"
DEFAULT_PARTITIONS = 1
DEFAULT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Cluster:
    """Cluster that tests use. Returned by the fixture `bucketlog_cluster`.

    Attributes:
        bootstrap: Address for clients.
        known_bucket_url: Address of the bucket; empty if it is not known.
        log_path: Path of the file with the messages of brokers and Valkey; None for a cluster that
            runs elsewhere.
        pids: Ids of the processes by their names; empty for a cluster that runs elsewhere.

    Examples:
        >>> from bucketlog.testing import Cluster
        >>> Cluster(bootstrap="localhost:9092", known_bucket_url="s3://bucket/prefix").pids
        {}
    """

    bootstrap: str
    known_bucket_url: str = ""
    log_path: Path | None = None
    pids: Mapping[str, int] = field(default_factory=dict)

    @property
    def bucket_url(self) -> str:
        """Address of the bucket, for Spark and `bucketlog.replay`.

        Raises:
            ConfigurationError: If the cluster runs elsewhere, and `bucketlog_bucket_url` is not
                set.
        """
        if not self.known_bucket_url:
            raise ConfigurationError(
                f"the bucket of the cluster at {self.bootstrap} is not known",
                remedy="set bucketlog_bucket_url in pytest's configuration",
            )
        return self.known_bucket_url


def add_options(parser: pytest.Parser) -> None:
    parser.addini(
        "bucketlog_bootstrap",
        "address of a cluster that runs already; default: one is started; the environment's "
        f"{BOOTSTRAP_VARIABLE} goes before it",
        default="",
    )
    parser.addini("bucketlog_bucket_url", "the bucket of the cluster at that address", default="")
    parser.addini(
        "bucketlog_data_dir",
        "folder in which the started cluster keeps its data; default: thrown away",
        default="",
    )
    parser.addini(
        "bucketlog_partitions",
        f"partitions of a new topic; default: {DEFAULT_PARTITIONS}",
        default=str(DEFAULT_PARTITIONS),
    )
    parser.addini(
        "bucketlog_timeout_s",
        f"seconds that a request to the cluster may take; default: {DEFAULT_TIMEOUT_S:g}",
        default=str(DEFAULT_TIMEOUT_S),
    )


@dataclass(frozen=True)
class PluginSettings:
    bootstrap: str
    bucket_url: str
    data_dir: Path | None
    partitions: int
    timeout_s: float

    @classmethod
    def of(cls, config: pytest.Config) -> Self:
        """Raises `pytest.UsageError`, which names the option."""
        data_dir = config.getini("bucketlog_data_dir")
        return cls(
            bootstrap=os.environ.get(BOOTSTRAP_VARIABLE) or config.getini("bucketlog_bootstrap"),
            bucket_url=config.getini("bucketlog_bucket_url"),
            data_dir=config.rootpath / data_dir if data_dir else None,
            partitions=int(_positive(config, "bucketlog_partitions", whole=True)),
            timeout_s=_positive(config, "bucketlog_timeout_s"),
        )

    def external(self) -> Cluster:
        """The cluster at `bootstrap`. Raises `LogError` if nothing listens there."""
        from bucketlog.client.reachable import check_reachable

        check_reachable(self.bootstrap, self.timeout_s)
        return Cluster(self.bootstrap, self.bucket_url)


@contextmanager
def running(data_dir: Path, *, keep: bool) -> Iterator[Cluster]:
    """A cluster on `data_dir`. Unless they are kept, the data go; the log stays for as long as
    pytest keeps its temporary folders. Raises `BucketlogError`."""
    from bucketlog.embedded.cluster import EmbeddedCluster

    with EmbeddedCluster(data_dir) as embedded:
        yield Cluster(
            embedded.bootstrap, embedded.bucket_url, embedded.log_path, dict(embedded.pids)
        )
    if not keep:
        shutil.rmtree(data_dir / "bucket", ignore_errors=True)


def error_text(error: BucketlogError) -> str:
    """With what the error knows of the broker's log."""
    return "\n".join([f"bucketlog: {error}", *getattr(error, "__notes__", ())])


def _positive(config: pytest.Config, name: str, *, whole: bool = False) -> float:
    text = str(config.getini(name))
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        kind = "a whole number above 0" if whole else "a number above 0"
        raise pytest.UsageError(f"{name} is {text!r}: give {kind}")
    return number
