"""bucketlog and Apache Kafka side by side on this machine, and the CPU time of each."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.under_test import processes_cpu_s
from bucketlog.embedded.cluster import EmbeddedCluster
from localstack.apache_kafka import running_kafka


@dataclass(frozen=True, slots=True)
class Broker:
    """`bootstrap`: the address, as host:port. `pids`: whose CPU time counts."""

    name: str
    bootstrap: str
    pids: tuple[int, ...]

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)

    def cpu_s(self) -> float:
        """Running total, with all children."""
        return processes_cpu_s(self.pids)


@contextmanager
def brokers(
    folder: Path, settings: Mapping[str, str], *, with_kafka: bool = True
) -> Iterator[list[Broker]]:
    """bucketlog with its Valkey, and Apache Kafka unless it is left out."""
    with ExitStack() as closing:
        cluster = closing.enter_context(
            EmbeddedCluster(folder / "bucketlog", settings=dict(settings))
        )
        pids = cluster.pids["broker"], cluster.pids["valkey"]
        found = [Broker("bucketlog", cluster.bootstrap, pids)]
        if with_kafka:
            kafka = closing.enter_context(running_kafka(folder / "kafka"))
            name = f"Apache Kafka {kafka.version}"
            found.append(Broker(name, kafka.bootstrap, (kafka.pid,)))
        yield found
