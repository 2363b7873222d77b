"""The broker that a benchmark loads: one started for it, or one that runs already.

What it costs is read from outside: CPU time of its processes from the operating system, requests to
the bucket from its `/metrics`. Its bucket is a folder, or one in a store of its own, where PUTs can
be made as slow as S3's.
"""

import argparse
import json
import os
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import psutil
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.librdkafka import version
from bucketlog.client.log import connect
from bucketlog.embedded.cluster import EmbeddedCluster
from localstack.machine import machine
from localstack.servers import RunningStore, StoreName, running
from localstack.slow_puts import SlowPuts, log_normal

GB = 1e9
BUCKET = "bucketlog-bench"
FILE = "file"
DELAY_SEED = 1


class Cost(NamedTuple):
    """Running totals: CPU seconds of broker, Valkey and store, requests to the bucket by verb, PUTs
    that were sent a second time."""

    broker_cpu_s: float
    valkey_cpu_s: float
    store_cpu_s: float
    requests: dict[str, float]
    bytes_stored: float
    hedges: float


@dataclass(frozen=True, slots=True)
class UnderTest:
    bootstrap: str
    broker_pid: int | None
    valkey_pid: int | None
    metrics_url: str | None
    store_pid: int | None = None

    def cost(self) -> Cost:
        requests: dict[str, float] = {}
        stored = hedges = 0.0
        if self.metrics_url is not None:
            with urllib.request.urlopen(self.metrics_url, timeout=10) as answer:
                text = answer.read().decode()
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    if sample.name == "bucketlog_bucket_requests_total":
                        requests[sample.labels["verb"]] = sample.value
                    if sample.name == "bucketlog_bucket_bytes_total":
                        stored = sample.value if sample.labels["direction"] == "in" else stored
                    if sample.name == "bucketlog_bucket_hedged_puts_total":
                        hedges = sample.value
        return Cost(
            _cpu_s(self.broker_pid),
            _cpu_s(self.valkey_pid),
            _cpu_s(self.store_pid),
            requests,
            stored,
            hedges,
        )


def _cpu_s(pid: int | None) -> float:
    if pid is None:
        return float("nan")
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def processes_cpu_s(pids: Sequence[int]) -> float:
    """CPU seconds of these processes with all their children: a running total."""
    processes = [psutil.Process(pid) for pid in pids]
    processes += [child for each in processes for child in each.children(recursive=True)]
    times = [each.cpu_times() for each in {each.pid: each for each in processes}.values()]
    return float(sum(each.user + each.system for each in times))


def cost_per_gb(before: Cost, after: Cost, payload_bytes: int) -> dict[str, Any]:
    """Per 10^9 bytes of records' values."""
    share = max(payload_bytes, 1) / GB
    requests = {
        verb: round((after.requests[verb] - before.requests.get(verb, 0)) / share, 1)
        for verb in after.requests
    }
    return {
        "broker_cpu_s_per_gb": round((after.broker_cpu_s - before.broker_cpu_s) / share, 3),
        "valkey_cpu_s_per_gb": round((after.valkey_cpu_s - before.valkey_cpu_s) / share, 3),
        "store_cpu_s_per_gb": None
        if isnan(after.store_cpu_s)
        else round((after.store_cpu_s - before.store_cpu_s) / share, 3),
        "objects_per_gb": requests.get("create"),
        "bucket_requests_per_gb": requests,
        "hedged_puts": after.hedges - before.hedges,
        "stored_bytes_per_payload_byte": round(
            (after.bytes_stored - before.bytes_stored) / max(payload_bytes, 1), 4
        ),
    }


def add_turn_arguments(parser: argparse.ArgumentParser, *, warm_up_turns: int) -> None:
    """The options of benchmarks that compare brokers in alternate turns."""
    parser.add_argument("--mb", dest="fill_mb", type=int, default=500, help="of each run")
    parser.add_argument("--reads", type=int, default=2, help="how often each run is read")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--warm-up-turns", type=int, default=warm_up_turns)
    parser.add_argument("--record-bytes", type=int, default=1000)
    parser.add_argument("--batch-bytes", type=int, default=1_000_000)
    parser.add_argument("--fetch-bytes", type=int, default=10_000_000, help="per partition")
    parser.add_argument("--codec", default="none")
    parser.add_argument("--partitions", type=int, default=4)
    add_setting_argument(parser)


def add_setting_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting of bucketlog's broker without BUCKETLOG_; may be repeated",
    )


def settings_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The broker's settings that `--setting` gave."""
    return dict(pair.split("=", 1) for pair in arguments.setting)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("broker (default: one is started for the run)")
    group.add_argument("--bootstrap", help="host:port of a running broker")
    group.add_argument("--broker-pid", type=int, help="whose CPU time is measured")
    group.add_argument("--valkey-pid", type=int, help="whose CPU time is measured")
    group.add_argument("--metrics-url", help="as http://127.0.0.1:1234/metrics")
    group.add_argument("--data", help="folder of the started cluster (default: a temporary one)")
    group.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="broker setting without BUCKETLOG_, as flush_bytes=4194304; may be repeated",
    )
    group.add_argument(
        "--store",
        choices=[FILE, *StoreName],
        default=FILE,
        help="where the started one's bucket is",
    )
    group.add_argument("--put-p50-ms", type=float, help="make PUTs as slow, log-normally")
    group.add_argument("--put-p99-ms", type=float)


@contextmanager
def broker_under_test(arguments: argparse.Namespace) -> Iterator[UnderTest]:
    if arguments.bootstrap:
        yield UnderTest(
            arguments.bootstrap, arguments.broker_pid, arguments.valkey_pid, arguments.metrics_url
        )
        return
    settings = settings_of(arguments)
    with ExitStack() as closing:
        folder = Path(closing.enter_context(TemporaryDirectory(prefix="bucketlog-bench-")))
        store = None
        if arguments.store != FILE:
            store = closing.enter_context(_store(arguments, folder / "store"))
        cluster = closing.enter_context(
            EmbeddedCluster(
                arguments.data or folder / "cluster",
                settings=settings,
                bucket_url=f"s3://{BUCKET}" if store else None,
            )
        )
        yield UnderTest(
            cluster.bootstrap,
            cluster.pids["broker"],
            cluster.pids["valkey"],
            f"http://{cluster.host}:{cluster.http_port}/metrics",
            store.pid if store else None,
        )


@contextmanager
def _store(arguments: argparse.Namespace, folder: Path) -> Iterator[RunningStore]:
    """A store with an empty bucket, to which this process's AWS variables point while it runs."""
    with ExitStack() as closing:
        store = closing.enter_context(running(StoreName(arguments.store), folder))
        store.make_bucket(BUCKET)
        environment = store.environment()
        if arguments.put_p50_ms:
            p99_ms = arguments.put_p99_ms or arguments.put_p50_ms
            delay = log_normal(arguments.put_p50_ms, p99_ms, seed=DELAY_SEED)
            proxy = closing.enter_context(SlowPuts(store.endpoint_url, delay, whole_put=True))
            environment["AWS_ENDPOINT_URL_S3"] = proxy.endpoint_url
        closing.enter_context(mock.patch.dict(os.environ, environment))
        yield store


def report(benchmark: str, figures: Mapping[str, Any], shortfalls: Sequence[str]) -> int:
    """One line of JSON on standard output; returns the exit code."""
    command = " ".join([f"python -m benchmarks.{benchmark}", *sys.argv[1:]])
    about = {"command": command, "client": f"librdkafka {version()}", "machine": machine()}
    print(json.dumps({"benchmark": benchmark, **figures, **about, "shortfalls": shortfalls}))
    return 1 if shortfalls else 0


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    with connect(bootstrap) as log:
        log.topics.create(name, partitions=partitions)
