"""The CPU time that the encryption of a topic costs a broker, beside the same records in the clear.

    python -m benchmarks.encryption --mb 500 --turns 5

One broker runs, with a key file. In each turn, a topic in the clear and an encrypted topic get
records of 1 KB in batches of 1 MB, and then give them to a consumer. The turns alternate between
the two, so that what else the machine does falls on both. The producer and the consumer
(librdkafka) are in this process, which is not measured. The figures are CPU seconds of the broker
and of Valkey per 10^9 bytes of values, medians over the turns. One JSON line on standard output.
With --max-added, the exit code is 1 if encryption adds more CPU seconds per GB than that, in either
direction.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from cryptography.hazmat.backends.openssl import backend

from benchmarks import fetch
from benchmarks.under_test import GB, add_turn_arguments, processes_cpu_s, report, settings_of
from bucketlog.client.log import connect
from bucketlog.embedded.cluster import EmbeddedCluster

KINDS = {"plain": "", "encrypted": "local:benchmark"}
INTO, OUT = "in", "out"


def run(
    args: argparse.Namespace, cluster: EmbeddedCluster, kind: str, topic: str
) -> dict[str, float]:
    """CPU s/GB into the broker and out of it."""
    pids = cluster.pids["broker"], cluster.pids["valkey"]
    with connect(cluster.bootstrap) as log:
        configs = {"encryption.key.id": KINDS[kind]}
        log.topics.create(topic, partitions=args.partitions, configs=configs)
    before = processes_cpu_s(pids)
    records = fetch.load(args, cluster.bootstrap, topic, {})
    between = processes_cpu_s(pids)
    settings = fetch.reader_settings(cluster.bootstrap, args.fetch_bytes)
    read_bytes = sum(
        fetch.read(settings, topic, args.partitions, records) for _ in range(args.reads)
    )
    after = processes_cpu_s(pids)
    return {
        INTO: (between - before) / (records * args.record_bytes / GB),
        OUT: (after - between) / (read_bytes / GB),
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    runs: dict[str, dict[str, list[float]]] = {kind: {INTO: [], OUT: []} for kind in KINDS}
    with tempfile.TemporaryDirectory(prefix="bucketlog-bench-") as name:
        folder = Path(name)
        key_file = folder / "keys"
        key_file.touch(0o600)
        key_file.write_text(f"benchmark {'5a' * 32}\n")
        settings = {"encryption_key_file": str(key_file)}
        settings |= settings_of(args)
        with EmbeddedCluster(folder / "data", settings=settings) as cluster:
            for turn in range(args.warm_up_turns + args.turns):
                for kind in KINDS if turn % 2 else reversed(KINDS):
                    found = run(args, cluster, kind, f"{kind}-{turn}")
                    print(turn, kind, found, file=sys.stderr, flush=True)
                    if turn >= args.warm_up_turns:
                        for way, cost in found.items():
                            runs[kind][way].append(round(cost, 3))
    costs = {
        kind: {way: round(median(found), 3) for way, found in ways.items()}
        for kind, ways in runs.items()
    }
    return {
        "cpu_s_per_gb": costs,
        "encryption_adds": {
            way: round(costs["encrypted"][way] - costs["plain"][way], 3) for way in (INTO, OUT)
        },
        "openssl": backend.openssl_version_text(),
        "turns": args.turns,
        "runs": runs,
    }


def shortfalls(args: argparse.Namespace, figures: dict[str, Any]) -> list[str]:
    if not args.max_added:
        return []
    return [
        f"encryption {way} adds {added} CPU s/GB, at most {args.max_added} wanted"
        for way, added in figures["encryption_adds"].items()
        if added > args.max_added
    ]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_turn_arguments(parser, warm_up_turns=1)
    parser.add_argument("--max-added", type=float)
    return parser.parse_args(arguments)


def main() -> int:
    args = parse(sys.argv[1:])
    figures = measure(args)
    return report("encryption", figures, shortfalls(args, figures))


if __name__ == "__main__":
    sys.exit(main())
