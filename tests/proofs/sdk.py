"""The claims about the SDK: its own cost, programs that once lost records, the length of programs,
and schemas that outlive their registry; targets of `tests.proofs`."""

import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from pydantic import BaseModel

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.schema_registry.framing import schema_id_of
from tests.proofs.benchmarks import checked_benchmark
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.example_lines import line_counts, longer
from tests.scenarios.processed import processed
from tests.scenarios.sdk_misuse import trials
from tests.scenarios.typed_replay import measure
from tests.servers.cluster import free_port
from tests.servers.schema_registry import Registry, registry_version

SHORT_SCHEMAS, FULL_SCHEMAS = 3, 300
SHORT_TRIALS, FULL_TRIALS = 2, 100
TRIAL_RECORDS = 300
SHORT_TYPED_RECORDS, FULL_TYPED_RECORDS = 50_000, 10_000_000
RECORDS = bucketlog.Topic("records")


def prove_sdk(short: bool) -> Figures:
    """100 B records by the SDK beside plain confluent-kafka, and asyncio beside plain calls. Before
    this, programs that once lost records or hung, 100 times each, and the line counts of the
    example services, of which ours are the shortest."""
    figures: Figures = {"lines": line_counts()}
    if found := longer(figures["lines"]):
        raise ShortfallError("; ".join(found), figures)
    with (
        tempfile.TemporaryDirectory(prefix="bucketlog-prove-") as folder,
        EmbeddedCluster(Path(folder) / "data") as cluster,
        bucketlog.connect(cluster.bootstrap) as log,
    ):
        count = SHORT_TRIALS if short else FULL_TRIALS
        figures["misuse"] = trials(log, Path(folder), count, TRIAL_RECORDS)
    size = ("--records", "20000", "--rounds", "1") if short else ("--limits",)
    return figures | checked_benchmark("sdk", *size)


def prove_process(short: bool) -> Figures:
    """100,000 records through `process` in 32 threads, with a kill (-9) every 5 s: each is handled
    at least once, none is committed before it was handled, and keys keep their order. Then a
    handler that does nothing gets records of 1 KB, beside plain confluent-kafka."""
    size = ("--records", "20000", "--rounds", "1") if short else ("--records", "100000")
    ways = ("--only", "plain_consume", "process", "--record-bytes", "1000")
    cost = checked_benchmark("sdk", *ways, *size)
    with (
        tempfile.TemporaryDirectory(prefix="bucketlog-prove-") as folder,
        EmbeddedCluster(Path(folder) / "data") as cluster,
    ):
        handled = processed(
            cluster.bootstrap,
            Path(folder),
            records=4_000 if short else 100_000,
            keys=100 if short else 1_000,
            concurrency=32,
            kill_every_s=0.5 if short else 5,
        )
    return handled.as_json() | {"handler_that_does_nothing": cost}


def prove_typed_replay(short: bool) -> Figures:
    """10 M JSON records as a Polars frame with typed columns, by turns by a typed replay and by
    confluent-kafka with pydantic: equal rows, and the replay makes 10 times as many per second.
    The short form only compares the rows."""
    records = SHORT_TYPED_RECORDS if short else FULL_TYPED_RECORDS
    with tempfile.TemporaryDirectory(prefix="bucketlog-prove-") as folder:
        found = measure(Path(folder), records, turns=1 if short else 2)
    replays, others = found["replay"], found["confluent"]
    figures: Figures = {"records": records, **found}
    for one in [*replays, *others]:
        if one["rows"] != records:
            raise ShortfallError(f"{one['rows']} rows, not {records}", figures)
        if one["digest"] != replays[0]["digest"]:
            raise ShortfallError("the frames differ", figures)
    for figure, name in (("seconds", "times_as_fast"), ("cpu_s", "times_less_cpu")):
        ratios = [
            other[figure] / replay[figure] for replay, other in zip(replays, others, strict=True)
        ]
        figures[name] = round(median(ratios), 1)
    if not short and figures["times_as_fast"] < 10:
        raise ShortfallError(f"{figures['times_as_fast']} times as fast, not 10", figures)
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
    "process": prove_process,
    "registry": prove_registry,
    "typed-replay": prove_typed_replay,
}
