"""The broker that a benchmark loads: one started for it, or one that runs already.

What it costs is read from outside: CPU time of its processes from the operating system, requests to
the bucket from its `/metrics`.
"""

import argparse
import platform
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import psutil
from prometheus_client.parser import text_string_to_metric_families

from bucketlog.embedded import EmbeddedCluster

GB = 1e9


class Cost(NamedTuple):
    """Running totals: CPU seconds of broker and Valkey, requests to the bucket by verb."""

    broker_cpu_s: float
    valkey_cpu_s: float
    requests: dict[str, float]
    bytes_stored: float


@dataclass(frozen=True, slots=True)
class UnderTest:
    bootstrap: str
    broker_pid: int | None
    valkey_pid: int | None
    metrics_url: str | None

    def cost(self) -> Cost:
        requests: dict[str, float] = {}
        stored = 0.0
        if self.metrics_url is not None:
            with urllib.request.urlopen(self.metrics_url, timeout=10) as answer:
                text = answer.read().decode()
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    if sample.name == "bucketlog_bucket_requests_total":
                        requests[sample.labels["verb"]] = sample.value
                    if sample.name == "bucketlog_bucket_bytes_total":
                        stored = sample.value if sample.labels["direction"] == "in" else stored
        return Cost(_cpu_s(self.broker_pid), _cpu_s(self.valkey_pid), requests, stored)


def _cpu_s(pid: int | None) -> float:
    if pid is None:
        return float("nan")
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


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
        "objects_per_gb": requests.get("create"),
        "bucket_requests_per_gb": requests,
        "stored_bytes_per_payload_byte": round(
            (after.bytes_stored - before.bytes_stored) / max(payload_bytes, 1), 4
        ),
    }


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


@contextmanager
def broker_under_test(arguments: argparse.Namespace) -> Iterator[UnderTest]:
    if arguments.bootstrap:
        yield UnderTest(
            arguments.bootstrap, arguments.broker_pid, arguments.valkey_pid, arguments.metrics_url
        )
        return
    settings = dict(pair.split("=", 1) for pair in arguments.setting)
    with (
        tempfile.TemporaryDirectory(prefix="bucketlog-bench-") as temporary,
        EmbeddedCluster(arguments.data or temporary, settings=settings) as cluster,
    ):
        yield UnderTest(
            cluster.bootstrap,
            cluster.pids["broker"],
            cluster.pids["valkey"],
            f"http://{cluster.host}:{cluster.http_port}/metrics",
        )


def machine() -> dict[str, Any]:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "commit": done.stdout.strip() or None,
        "python": platform.python_version(),
        "cpus": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
    }
