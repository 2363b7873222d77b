"""Faults of a cluster that runs on this machine, for tests of programs that must survive them.

Invariants: a process that a block has paused runs again after the block, however the block ends.
Only processes of the given cluster get a signal.
"""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.embedded.cluster import EmbeddedCluster

VALKEY = "valkey"
STOPPED_WITHIN_S = 60.0
PAUSE_S = 0.02


class LocalCluster(Protocol):
    """A cluster with processes on this machine: `EmbeddedCluster`, or the plugin's `Cluster`."""

    @property
    def pids(self) -> Mapping[str, int]: ...


@contextmanager
def broker_paused(cluster: LocalCluster, broker: int = 0) -> Iterator[None]:
    """Pause a broker in a `with` block. Its connections stay open, and it answers nothing.

    After some seconds, other brokers take over its work.

    Args:
        cluster: Cluster on this machine.
        broker: Position of the broker in the cluster; the first one is 0. Default: 0.

    Yields:
        Nothing.

    Raises:
        ConfigurationError: If the cluster has no such broker on this machine.

    Examples:
        >>> from bucketlog.testing import broker_paused
        >>> with bucketlog.EmbeddedCluster("data", brokers=2) as cluster:
        ...     with broker_paused(cluster, 1):
        ...         print("only the first broker answers here")
        only the first broker answers here
    """
    with _paused(_pid(cluster, _name(cluster, broker))):
        yield


@contextmanager
def redis_paused(cluster: LocalCluster) -> Iterator[None]:
    """Pause the Redis of a cluster in a `with` block, as in an outage of its network.

    Brokers cannot acknowledge records in the block. They answer again after the block.

    Args:
        cluster: Cluster on this machine, which has started its Valkey itself.

    Yields:
        Nothing.

    Raises:
        ConfigurationError: If the cluster has no Valkey on this machine.

    Examples:
        >>> from bucketlog.testing import redis_paused
        >>> with bucketlog.EmbeddedCluster("data") as cluster:
        ...     with redis_paused(cluster):
        ...         print("no record is acknowledged here")
        no record is acknowledged here
    """
    with _paused(_pid(cluster, VALKEY)):
        yield


def stop_broker(cluster: "EmbeddedCluster", broker: int = 0, *, kill: bool = False) -> None:
    """Stop one broker of several for good, and wait until its process has ended.

    Args:
        cluster: Cluster with at least two running brokers.
        broker: Position of the broker in the cluster; the first one is 0. Default: 0.
        kill: Whether the process is killed, as in a crash. Otherwise, it first writes what it has
            accepted. Default: False.

    Raises:
        ClusterStartError: If this was the last broker, or if its process does not end.
        ConfigurationError: If the cluster has no such broker on this machine.

    Examples:
        >>> from bucketlog.testing import stop_broker
        >>> with bucketlog.EmbeddedCluster("data", brokers=2) as cluster:
        ...     stop_broker(cluster, 1, kill=True)
        ...     print("only the first broker is left")
        only the first broker is left
    """
    os.kill(_pid(cluster, _name(cluster, broker)), signal.SIGKILL if kill else signal.SIGTERM)
    from bucketlog.embedded.cluster import ClusterStartError

    ended: list[str] = []
    deadline = time.monotonic() + STOPPED_WITHIN_S
    while not ended:
        cluster.check(ended.append)
        if time.monotonic() > deadline:
            raise ClusterStartError(f"broker {broker} runs {STOPPED_WITHIN_S:g} s after its signal")
        time.sleep(PAUSE_S)


def _name(cluster: LocalCluster, broker: int) -> str:
    """The broker's name in `pids`."""
    return "broker" if "broker" in cluster.pids and broker == 0 else f"broker-{broker}"


def _pid(cluster: LocalCluster, name: str) -> int:
    pid = cluster.pids.get(name)
    if pid is None:
        known = ", ".join(sorted(cluster.pids)) or "none"
        raise ConfigurationError(
            f"the cluster has no process {name!r} on this machine (processes: {known})",
            remedy="use a started cluster, as in bucketlog.EmbeddedCluster(folder)",
        )
    return pid


@contextmanager
def _paused(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
