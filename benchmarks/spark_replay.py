"""The same records into Spark three ways: by its Kafka source from our brokers and from an Apache
Kafka broker, and by ours straight from the bucket, with brokers and Valkey stopped.

    python -m benchmarks.spark_replay --records 10000000 --codecs none,zstd --repetitions 2

One JSON line on standard output. 100-byte values and 100 keys on 12 partitions, sent to both
systems by librdkafka with the same settings; each way in a fresh Spark process with two cores and
the same settings, warm; seconds and CPU seconds are medians, the latter those of everything that
ran. `kafka` and `brokers` read with the defaults of Spark's Kafka source, `kafka tuned` with what
made it faster here (`TUNED`). `pruned` is `.schema(...)` with the columns that the query needs;
`replay` is `spark_jobs.parquet_lane`. `times_faster` compares with the faster of the two defaults,
`times_faster_than_tuned` with the tuned one. With --compacted the log is split by partition before
it is read from the bucket. With --min-count, --min-aggregate, --min-parquet, --min-replay,
--min-decoded the exit code is 1 where the run falls short; it always is where answers differ.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from benchmarks.decode import cpu_seconds, make_batches
from benchmarks.spark_load import VALUE_BYTES, send_records
from benchmarks.spark_queries import AGGREGATE, ALL, COUNT, PARQUET, PRUNED, REPLAY, Job
from benchmarks.under_test import BUCKET, FILE, create_topic, report
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.arrow import decode_batches
from bucketlog.log_format.batch import Codec
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.log_cut_reading import read_log
from localstack.apache_kafka import running_kafka
from localstack.servers import StoreName, running
from localstack.spark_jars import installed_jars

ROOT = Path(__file__).parents[1]
WARM_PARTITIONS = 2
"""Spark's Kafka source waits for half a second at the end of each partition."""
BROKERS, KAFKA, KAFKA_TUNED, OURS = "brokers", "kafka", "kafka tuned", "bucket"
QUERIES = (COUNT, AGGREGATE, PARQUET)
TUNED = {"kafka.max.poll.records": "10000", "kafka.fetch.max.wait.ms": "50"}
NO_COMPACTION = {"compaction_check_interval_ms": "0"}
COMPACTION = {
    "compaction_check_interval_ms": "500",
    "compaction_interval_ms": "1",
    "compaction_age_ms_min": "0",
    "compaction_bytes_per_s": "1000000000",
}
COMPACTION_TIMEOUT_S = 300.0
CORES = 2
DECODED_RECORDS, DECODED_BATCH = 400_000, 5_000

Session = dict[str, Any]
"""What `benchmarks.spark_queries` printed."""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--warm-records", type=int, default=300_000)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--codecs", default="none,zstd")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=1, help="runs on the small topic")
    parser.add_argument("--tuned", default="none", help="codecs for tuned Kafka, or nothing")
    parser.add_argument("--store", choices=[FILE, StoreName.MINIO.value], default=FILE)
    parser.add_argument("--compacted", action="store_true")
    for name in (*QUERIES, REPLAY):
        parser.add_argument(f"--min-{name}", type=float, help="times faster than by Kafka")
    parser.add_argument("--min-decoded", type=float, help="records per CPU second")
    return parser.parse_args(arguments)


class Run:
    """Holds the settings of all Spark processes of a run, and starts them."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self._args = args
        self._folder = folder
        self._jars = ",".join(map(str, installed_jars()))
        self.codecs: list[str] = args.codecs.split(",")
        self.sessions: dict[str, dict[str, Session]] = {codec: {} for codec in self.codecs}

    def fill(self, bootstrap: str) -> None:
        for codec in self.codecs:
            for topic, records, partitions in (
                (f"warm-{codec}", self._args.warm_records, WARM_PARTITIONS),
                (f"full-{codec}", self._args.records, self._args.partitions),
            ):
                create_topic(bootstrap, topic, partitions)
                send_records(bootstrap, topic, records, partitions, codec)

    def by_kafka_source(self, way: str, bootstrap: str, pids: list[int], **more: str) -> None:
        options = {"kafka.bootstrap.servers": bootstrap, **more}
        tuned = set(self._args.tuned.split(","))
        for codec in (name for name in self.codecs if way != KAFKA_TUNED or name in tuned):
            self._start(way, codec, "kafka", options, self._args.queries.split(","), pids)

    def by_ours(self, url: str, pids: list[int]) -> None:
        queries = self._args.queries.split(",")
        queries += [REPLAY] if PARQUET in queries else []
        for codec in self.codecs:
            self._start(OURS, codec, "bucketlog", {"path": url}, queries, pids)

    def _start(
        self,
        way: str,
        codec: str,
        source: str,
        options: dict[str, str],
        queries: list[str],
        pids: list[int],
    ) -> None:
        job = Job(
            source=source,
            options=options,
            spark={"spark.jars": self._jars},
            cores=CORES,
            warm_topic=f"warm-{codec}",
            topic=f"full-{codec}",
            queries=queries,
            repetitions=self._args.repetitions,
            warm_up=self._args.warm_up,
            schema=way == OURS,
            target=str(self._folder / "parquet"),
            server_pids=pids,
        )
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        log_path = self._folder / f"{way}-{codec}.log".replace(" ", "-")
        began = time.perf_counter()
        with log_path.open("wb") as log:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "benchmarks.spark_queries"],
                input=json.dumps(asdict(job)).encode(),
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | {"PYTHONPATH": path},
                cwd=ROOT,
                check=False,
            )
        if done.returncode:
            tail = "\n".join(log_path.read_text(errors="replace").splitlines()[-30:])
            raise RuntimeError(f"{way}, {codec}: Spark ended with {done.returncode}\n{tail}")
        session: Session = json.loads(done.stdout.splitlines()[-1])
        self.sessions[codec][way] = session
        seconds = {name: _median(rows, "seconds") for name, rows in session["queries"].items()}
        took = round(time.perf_counter() - began)
        print(f"{way}, {codec} ({took} s): {seconds}", file=sys.stderr, flush=True)


@contextmanager
def bucket_at(store: str, folder: Path) -> Iterator[tuple[str | None, list[int]]]:
    """The URL of a bucket in a store of its own (None: a folder of the cluster's), and its pids."""
    if store == FILE:
        yield None, []
        return
    with running(StoreName(store), folder) as started:
        started.make_bucket(BUCKET)
        with mock.patch.dict(os.environ, started.environment()):
            yield f"s3://{BUCKET}", [started.pid]


def compact(data: Path, bucket_url: str | None) -> None:
    """Until every record stands in a partition segment."""
    deadline = time.monotonic() + COMPACTION_TIMEOUT_S
    with EmbeddedCluster(data, bucket_url=bucket_url, settings=COMPACTION) as cluster:
        bucket = open_sync_bucket(cluster.bucket_url)
        while True:
            log = read_log(bucket)
            state = fold(log.segments, onto=restored(log.checkpoint))
            if all(each.tier.end == each.next_offset for each in state.partitions.values()):
                break
            if time.monotonic() > deadline:
                raise RuntimeError(f"the log is not compacted after {COMPACTION_TIMEOUT_S} s")
            time.sleep(1)
        bucket.close()


def run_all(args: argparse.Namespace, folder: Path) -> Run:
    run = Run(args, folder)
    with ExitStack() as closing:
        url, store_pids = closing.enter_context(bucket_at(args.store, folder / "store"))
        data = folder / "cluster"
        with EmbeddedCluster(data, bucket_url=url, settings=NO_COMPACTION) as cluster:
            run.fill(cluster.bootstrap)
            pids = [cluster.pids["guard"], *store_pids]
            run.by_kafka_source(BROKERS, cluster.bootstrap, pids)
        with running_kafka(folder / "kafka") as kafka:
            run.fill(kafka.bootstrap)
            run.by_kafka_source(KAFKA, kafka.bootstrap, [kafka.pid])
            run.by_kafka_source(KAFKA_TUNED, kafka.bootstrap, [kafka.pid], **TUNED)
        if args.compacted:
            compact(data, url)
        run.by_ours(cluster.bucket_url, store_pids)
    return run


def _median(rows: list[dict[str, float]], what: str) -> float:
    return round(median(row[what] for row in rows), 2)


def figures_of(sessions: Mapping[str, Session], records: int) -> dict[str, Any]:
    """Of one codec."""
    ways: dict[str, Any] = {
        way: {
            name: {
                "seconds": _median(rows, "seconds"),
                "records_per_s": round(records / _median(rows, "seconds")),
                "cpu_s": _median(rows, "cpu_s"),
            }
            for name, rows in session["queries"].items()
        }
        for way, session in sessions.items()
    }
    faster: dict[str, float] = {}
    faster_than_tuned: dict[str, float] = {}
    less_cpu: dict[str, float] = {}
    for name, ours in ways[OURS].items():
        query = name.split(",")[0]
        theirs = f"{PARQUET if query == REPLAY else query}, {ALL}"
        best = min((ways[way][theirs] for way in (BROKERS, KAFKA)), key=lambda it: it["seconds"])
        faster[name] = round(best["seconds"] / ours["seconds"], 2)
        less_cpu[name] = round(best["cpu_s"] / ours["cpu_s"], 2)
        if KAFKA_TUNED in ways:
            tuned = ways[KAFKA_TUNED][theirs]["seconds"]
            faster_than_tuned[name] = round(tuned / ours["seconds"], 2)
    return {
        "times_faster": faster,
        "times_faster_than_tuned": faster_than_tuned,
        "times_less_cpu": less_cpu,
        **ways,
    }


def differences(codec: str, sessions: Mapping[str, Session], records: int) -> list[str]:
    """Where an answer is not what was sent; the small topic record by record, by a checksum."""
    found = []
    if len({session["checksum"] for session in sessions.values()}) > 1:
        checksums = {way: session["checksum"] for way, session in sessions.items()}
        found.append(f"{codec}: records differ: {checksums}")
    counts = sessions[OURS]["answers"].get(f"{AGGREGATE}, {ALL}")
    for way, session in sessions.items():
        for name, answer in session["answers"].items():
            is_map = isinstance(answer, dict)
            if (sum(answer.values()) if is_map else answer) != records:
                found.append(f"{codec}, {way}, {name}: {answer}, {records} were sent")
            if is_map and answer != counts:
                found.append(f"{codec}, {way}, {name}: counts by key differ")
    return found


def decoded_per_cpu_s(codec: str) -> int:
    """By the decoder alone, all columns but headers; the CRC is checked."""
    batches = make_batches(DECODED_RECORDS, VALUE_BYTES, DECODED_BATCH, Codec[codec.upper()])
    decode_batches(*batches)
    return round(DECODED_RECORDS / cpu_seconds(partial(decode_batches, *batches), at_least=2.0))


def shortfalls(args: argparse.Namespace, figures: dict[str, Any]) -> list[str]:
    found = []
    for codec, one in figures["codecs"].items():
        for name, ratio in one["times_faster"].items():
            least = getattr(args, f"min_{name.split(',')[0]}")
            if least and ratio < least:
                found.append(f"{codec}, {name}: {ratio} times faster, {least} wanted")
    for codec, decoded in figures["decoded_records_per_cpu_s"].items():
        if args.min_decoded and decoded < args.min_decoded:
            found.append(f"{codec}: {decoded} records decoded per CPU s, {args.min_decoded} wanted")
    return found


def main() -> int:
    args = parse(sys.argv[1:])
    with TemporaryDirectory(prefix="bucketlog-bench-") as folder:
        run = run_all(args, Path(folder))
    figures: dict[str, Any] = {
        "records": args.records,
        "value_bytes": VALUE_BYTES,
        "partitions": args.partitions,
        "store": args.store,
        "compacted": args.compacted,
        "repetitions": args.repetitions,
        "columns": {ALL: "as they come", PRUNED: "by .schema(...)"},
        "tuned": TUNED,
        "codecs": {
            codec: figures_of(sessions, args.records) for codec, sessions in run.sessions.items()
        },
        "decoded_records_per_cpu_s": {codec: decoded_per_cpu_s(codec) for codec in run.codecs},
    }
    found = shortfalls(args, figures)
    for codec, sessions in run.sessions.items():
        found += differences(codec, sessions, args.records)
    return report("spark_replay", figures, found)


if __name__ == "__main__":
    sys.exit(main())
