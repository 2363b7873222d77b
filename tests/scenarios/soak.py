"""Hours of churn: does anything grow that should be bounded?

Producers, groups, topics, connections and brokers come and go (tests/scenarios/soak_churn.py), with
short expiry times. The run samples the memory, descriptors and threads of the brokers, the objects
and bytes of the bucket, and the keys of Redis with their sizes. tests/models/flatness.py defines
"flat". `make soak HOURS=2` runs it: `python -m tests.scenarios.soak`.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import psutil
from matplotlib.figure import Figure
from redis import Redis

from bucketlog.metadata.sequencer.redis_keys import KEYS
from bucketlog.tiered_storage.bucket import SyncBucket
from tests.models.flatness import HOUR_S, Growth, Limit, growing, growth
from tests.rigs.patience import PATIENCE_S, Deadline, let_pass
from tests.scenarios.chaos_picture import save
from tests.scenarios.round_trip import create_topic
from tests.scenarios.soak_churn import KINDS, PARTITIONS, TOPIC
from tests.servers.cluster import Cluster, ClusterBroker, running_cluster
from tests.servers.own_valkey import SOCKET

BROKERS = 3
MIB = 1 << 20
SETTINGS = {
    "checkpoint_interval_ms": "5000",
    "compaction_check_interval_ms": "2000",
    "compaction_interval_ms": "20000",
    "compaction_age_ms_min": "5000",
    "deletion_safety_age_ms": "60000",
    "flush_interval_ms": "50",
    "group_initial_rebalance_delay_ms": "0",
    "log_retention_ms": "60000",
    "log_retention_check_interval_ms": "5000",
    "offsets_retention_minutes": "1",
    "offsets_retention_check_interval_ms": "5000",
    "producer_id_expiration_ms": "60000",
    "producer_id_expiration_check_interval_ms": "5000",
}
SAMPLES = 300
SHORTEST_SAMPLE_S = 1.0
LIMITS = {
    "memory": Limit(0.05, 8.0),
    "descriptors": Limit(0.05, 8.0),
    "threads": Limit(0.05, 4.0),
    "objects": Limit(0.10, 100.0),
    "bucket": Limit(0.10, 4.0),
    "redis": Limit(0.10, 50.0),
}
"""By the first word of a figure's name. Memory and the bucket are in MiB."""


@dataclass
class Samples:
    """Values by the name of their figure; all were taken at `times_s`."""

    times_s: list[float] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, at_s: float, values: Mapping[str, float]) -> None:
        self.times_s.append(at_s)
        for name, value in values.items():
            self.values.setdefault(name, []).append(value)

    def growth(self) -> dict[str, Growth]:
        return {
            name: growth(self.times_s, values, LIMITS[name.split()[0]])
            for name, values in self.values.items()
        }


@dataclass(frozen=True, slots=True)
class SoakResult:
    seconds: float
    samples: Samples
    turns: dict[str, int]
    failed: dict[str, int]
    errors: list[str]

    def as_json(self) -> dict[str, Any]:
        return {
            "hours": round(self.seconds / HOUR_S, 3),
            "samples": len(self.samples.times_s),
            "turns": self.turns,
            "failed_turns": self.failed,
            "errors": self.errors,
            "growth": {name: each.as_json() for name, each in self.samples.growth().items()},
        }


def soak(seconds: float, told: Callable[[str], None]) -> SoakResult:
    """Run at least one turn of each churn. Raises `AssertionError` if a churn makes no progress.
    `told` gets each sample as a line of JSON. Nothing is left running."""
    samples = Samples()
    every_s = max(SHORTEST_SAMPLE_S, seconds / SAMPLES)
    with ExitStack() as closing:
        cluster = closing.enter_context(running_cluster(BROKERS, settings=SETTINGS))
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        bucket = cluster.open_bucket()
        closing.callback(bucket.close)
        redis = closing.enter_context(Redis(unix_socket_path=str(cluster.folder / SOCKET)))
        churns = [kind(cluster) for kind in KINDS]
        for churn in churns:
            churn.start()
            closing.callback(churn.stop)
        began = time.monotonic()
        deadline = Deadline(lambda: [churn.errors for churn in churns], seconds + PATIENCE_S)
        while (at_s := time.monotonic() - began) < seconds or not all(
            churn.turns for churn in churns
        ):
            deadline.check()
            for churn in churns:
                churn.check()
            values = sample(cluster, bucket, redis)
            samples.add(at_s, values)
            told(json.dumps({"at_s": round(at_s, 1), **values}))
            let_pass(began + at_s + every_s - time.monotonic())
    return SoakResult(
        seconds,
        samples,
        {churn.name: churn.turns for churn in churns},
        {churn.name: churn.failed for churn in churns},
        [error for churn in churns for error in churn.errors],
    )


def sample(cluster: Cluster, bucket: SyncBucket, redis: "Redis") -> dict[str, float]:
    """The mean over the brokers that are not restarted."""
    found = _processes(cluster.brokers[:-1])
    counts: dict[str, int] = {}
    size_bytes = 0
    for info in bucket.list(""):
        prefix = info.key.partition("/")[0]
        counts[prefix] = counts.get(prefix, 0) + 1
        size_bytes += info.size_bytes
    for prefix in OBJECT_PREFIXES:
        found[f"objects {prefix}"] = counts.pop(prefix, 0)
    found["objects others"] = sum(counts.values())
    found["bucket MiB"] = round(size_bytes / MIB, 2)
    found |= _redis(redis)
    return found


OBJECT_PREFIXES = ("log", "segments", "checkpoints", "epochs", "writers")


def _processes(brokers: list[ClusterBroker]) -> dict[str, float]:
    processes = [psutil.Process(broker.running.process.pid) for broker in brokers]
    return {
        "memory MiB": statistics.mean(each.memory_info().rss / MIB for each in processes),
        "descriptors": statistics.mean(each.num_fds() for each in processes),
        "threads": statistics.mean(each.num_threads() for each in processes),
    }


def _redis(redis: "Redis") -> dict[str, float]:
    """Fields of each key of bucketlog, and the count of keys."""
    asking = cast(Any, redis)
    sizes = {
        "hash": asking.hlen,
        "sorted set": asking.zcard,
        "stream": asking.xlen,
        "set": asking.scard,
    }
    keys = [key.decode() for key in asking.scan_iter("bucketlog:*")]
    prefix = next((key.removesuffix("meta") for key in keys if key.endswith(":meta")), "")
    found = {f"redis {key.name}": float(sizes[key.redis_type](prefix + key.name)) for key in KEYS}
    found["redis keys"] = float(len(keys))
    return found


def draw_soak(found: SoakResult, path: Path) -> None:
    """Each figure with its median slope over the second half, as an SVG."""
    growths = found.samples.growth()
    rows = -(-len(growths) // 3)
    figure = Figure(figsize=(12, 1.7 * rows), layout="constrained")
    minutes = [at / 60 for at in found.samples.times_s]
    for number, (name, each) in enumerate(growths.items(), 1):
        axes = figure.add_subplot(rows, 3, number)
        axes.plot(minutes, found.samples.values[name], linewidth=0.8)
        axes.set_title(
            f"{name}: {each.per_hour:+.1f} an hour", color="black" if each.is_flat else "red"
        )
        axes.set_ylim(bottom=0)
    figure.suptitle(f"Soak, {found.seconds / HOUR_S:.2f} h; x: minutes")
    save(figure, path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=1)
    parser.add_argument("--folder", type=Path, default=Path("soak"), help="for the run's files")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    with (args.folder / "samples.jsonl").open("w") as lines:
        found = soak(args.hours * HOUR_S, lambda line: print(line, file=lines, flush=True))
    draw_soak(found, args.folder / "soak.svg")
    problems = growing(found.samples.growth())
    (args.folder / "result.json").write_text(json.dumps(found.as_json(), indent=1))
    print("\n".join([json.dumps(found.as_json()), *problems]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
