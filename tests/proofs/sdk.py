"""The claims about the SDK: its own cost, and schemas that outlive their registry; targets of
`tests.proofs`."""

import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel

import bucketlog
from bucketlog.client.schemas.framing import schema_id_of
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.proofs.benchmarks import run_benchmark
from tests.proofs.shortfall import Figures, ShortfallError
from tests.servers.cluster import free_port
from tests.servers.schema_registry import Registry, registry_version

SHORT_SCHEMAS, FULL_SCHEMAS = 3, 300
RECORDS = bucketlog.Topic("records")


def prove_sdk(short: bool) -> Figures:
    """100 B records by the SDK beside plain confluent-kafka, and asyncio beside plain calls."""
    size = ("--records", "20000", "--rounds", "1") if short else ("--limits",)
    figures = run_benchmark("sdk", *size)
    if figures["shortfalls"]:
        raise ShortfallError("; ".join(figures["shortfalls"]), figures)
    return figures


class Line(BaseModel):
    sku: str
    number: int


def prove_registry(short: bool) -> Figures:
    """A schema registry keeps its schemas in topics of this log: after kill -9 of the registry, of
    the broker and of Redis every record is read by the schema it names, and every schema has the
    id that it had."""
    count = SHORT_SCHEMAS if short else FULL_SCHEMAS
    figures: Figures = {"schemas": count, "registry": f"Apicurio {registry_version()}"}
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        data, said = Path(folder) / "data", Path(folder) / "registry.log"
        with EmbeddedCluster(data, port=port) as cluster:
            registry = Registry(said, stored_at=cluster.bootstrap)
            try:
                figures["first_start_s"] = round(registry.wait(), 1)
                ids = _written(cluster.bootstrap, registry.url, count)
            finally:
                registry.kill()
            for name, pid in cluster.pids.items():
                if name != "guard":
                    os.kill(pid, signal.SIGKILL)
        with EmbeddedCluster(data, port=port) as cluster:
            registry = Registry(said, stored_at=cluster.bootstrap)
            try:
                figures["second_start_s"] = round(registry.wait(), 1)
                again, read = _read_back(cluster.bootstrap, registry.url, count)
            finally:
                registry.kill()
    figures |= {"ids": len(set(ids)), "records_read": read}
    if (again, read, len(set(ids))) != (ids, count, count):
        raise ShortfallError("schemas or their ids are not what they were", figures)
    return figures


def _formats(url: str, count: int) -> "list[bucketlog.Topic[bytes, Line]]":
    registry = bucketlog.SchemaRegistry(url, naming="record")
    return [
        bucketlog.Topic(RECORDS.name, value=registry.avro(Line, name=f"shop.Line{number}"))
        for number in range(count)
    ]


def _written(bootstrap: str, url: str, count: int) -> list[int]:
    """The ids of the schemas, one for each record."""
    with bucketlog.connect(bootstrap) as log:
        log.topics.ensure(RECORDS, partitions=1)
        with log.producer() as producer:
            for number, topic in enumerate(_formats(url, count)):
                producer.send(topic, Line(sku="a", number=number))
        with log.consumer(RECORDS, start="earliest", until="end") as consumer:
            return [schema_id_of(record.value) for record in consumer]


def _read_back(bootstrap: str, url: str, count: int) -> tuple[list[int], int]:
    """The ids that the schemas have now, and how many records were read by theirs."""
    ids, read = [], 0
    with (
        bucketlog.connect(bootstrap) as log,
        log.consumer(RECORDS, start="earliest", until="end") as consumer,
    ):
        for number, (topic, record) in enumerate(zip(_formats(url, count), consumer, strict=True)):
            line = topic.value_format.decode(record.value)
            read += line == Line(sku="a", number=number)
            ids.append(schema_id_of(topic.value_format.encode(line)))
    return ids, read


SDK_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "sdk": prove_sdk,
    "registry": prove_registry,
}
