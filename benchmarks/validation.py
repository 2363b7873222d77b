"""Measures the cost of validating produced records: the check, loading the kernel, and a broker.

    python -m benchmarks.validation                     the check, and loading the kernel
    python -m benchmarks.validation --broker --kafka    also brokers and Kafka, with librdkafka

Writes one JSON line to standard output. The check is in CPU seconds per 10^9 bytes of uncompressed
records, in batches of 1 MB. Half of each value is words and half is noise, which compresses like
log records. `python` is the kernel without llvmlite. `numba` is the kernel of the readers, which
finds each field. `load` is the one-time cost of each kernel in a process. In `produced`, brokers
with and without the check of records, and Kafka, receive records in alternating runs, on the same
machine as the client. Half of each of these records is noise, too.
"""

import argparse
import ctypes
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import produce
from benchmarks.under_test import report
from bucketlog.log_format import record_check, record_kernel
from bucketlog.log_format.batch import Codec, read_header
from bucketlog.log_format.record_check import RecordRules, check_records
from bucketlog.log_format.records import DecodedRecord, decode_records, encode_batch
from localstack.apache_kafka import running_kafka

BATCH_BYTES = 1_000_000
SIZES = (100, 1_000, 10_000)
GB = 1e9
PRODUCED_SIZES = (1_000, 100)
PRODUCED_CODECS = ("none", "lz4", "zstd")
_WORDS = [b"carrier", b"origin", b"dest", b"delay", b"2013-01-01", b"tail", b"distance", b"EWR"]
LOADED = {
    "llvmlite": "from bucketlog.log_format.record_check import warm_up; warm_up()",
    "numba": "import numpy, numba; from bucketlog.log_format.arrow import decode_batches; "
    "from bucketlog.log_format.records import DecodedRecord, encode_batch; "
    "decode_batches(encode_batch([DecodedRecord(0, 0, b'', b'')]), [0])",
}
MEASURED = """
import resource, time, cramjam, crc32c, bucketlog.log_format.records
def kib(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if name in line)
anonymous, mapped, began = kib("RssAnon"), kib("RssFile"), time.process_time()
{code}
print(time.process_time() - began, kib("RssAnon") - anonymous, kib("RssFile") - mapped)
"""


def body(size: int) -> list[DecodedRecord]:
    source = random.Random(1)
    records = []
    for number in range(BATCH_BYTES // size):
        words = b" ".join(source.choices(_WORDS, k=size // 14 + 1))[: size // 2]
        value = words + source.randbytes(size - len(words))
        records.append(DecodedRecord(number, 1_700_000_000_000 + number, b"key", value))
    return records


def cpu_s(work: Callable[[], object], at_least_s: float) -> float:
    """CPU seconds of one call."""
    calls, began = 0, time.process_time()
    while (spent := time.process_time() - began) < at_least_s:
        work()
        calls += 1
    return spent / calls


def check_costs(seconds: float) -> dict[str, dict[str, float]]:
    """CPU s/GB by record size and codec, and of the alternatives in Python."""
    costs = {}
    record_check.warm_up()
    for size in SIZES:
        records, row = body(size), {}
        plain = encode_batch(records)
        gigabytes = (len(plain) - 61) / GB
        for codec in Codec:
            batch = bytearray(encode_batch(records, codec=codec))
            header = read_header(batch)

            def check(batch: bytearray = batch, header: Any = header) -> int:
                return check_records(batch, header, RecordRules(), "t-0")

            row[codec.name.lower()] = round(cpu_s(check, seconds) / gigabytes, 3)
        row["python, none"] = round(cpu_s(lambda: _plain(plain), seconds) / gigabytes, 3)  # noqa: B023 - called at once
        row["objects, none"] = round(
            cpu_s(lambda: decode_records(plain, read_header(plain)), seconds) / gigabytes,  # noqa: B023 - called at once
            3,
        )
        costs[f"{size} B"] = row
    return costs


def _plain(batch: bytes) -> int:
    header = read_header(batch)
    numbers = (ctypes.c_int64 * record_kernel.NUMBERS)()
    most = record_kernel.REFUSED_RECORDS_MAX * record_kernel.REFUSED_COLUMNS
    refused = (ctypes.c_int64 * most)()
    raw = batch[61:]
    times = header.base_timestamp, 0, -(2**63), 2**63 - 1
    counts = header.record_count, header.last_offset_delta
    return record_kernel.check(raw, 0, len(raw), *counts, *times, refused, numbers)


def load_costs() -> dict[str, dict[str, float]]:
    """Costs of the second start, when numba's cache is filled."""
    found = {}
    for name, code in LOADED.items():
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-P", "-c", MEASURED.format(code=code)],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        spent, anonymous, mapped = map(float, done.stdout.split())
        found[name] = {
            "cpu_s": round(spent, 3),
            "private_mib": round(anonymous / 1024, 1),
            "mapped_mib": round(mapped / 1024, 1),
        }
    return found


def produced(seconds: float, turns: int, *, kafka: bool) -> dict[str, Any]:
    """By size and codec, MB/s and CPU s/GB of alternating runs."""
    found = {}
    for size in PRODUCED_SIZES:
        for codec in PRODUCED_CODECS:
            flags = ["--seconds", str(seconds), "--noise-percent", "50"]
            flags += ["--record-bytes", str(size), "--codec", codec]
            runs: dict[str, list[Any]] = {}
            for _ in range(turns):
                for name in ("full", "header"):
                    setting = ["--setting", f"record_validation={name}"]
                    runs.setdefault(name, []).append(_figures([*flags, *setting]))
                if kafka:
                    name, figures = _kafka_figures(flags)
                    runs.setdefault(name, []).append(figures)
            found[f"{size} B, {codec}"] = runs
            print(json.dumps({f"{size} B, {codec}": runs}), file=sys.stderr, flush=True)
    return found


def _kafka_figures(flags: list[str]) -> tuple[str, dict[str, float]]:
    with (
        tempfile.TemporaryDirectory(prefix="bucketlog-bench-") as folder,
        running_kafka(Path(folder) / "kafka") as broker,
    ):
        at = ["--bootstrap", broker.bootstrap, "--broker-pid", str(broker.pid)]
        return f"Apache Kafka {broker.version}", _figures([*flags, *at])


def _figures(flags: list[str]) -> dict[str, float]:
    made = produce.measure(produce.parse(flags))
    return {name: made[name] for name in ("mb_per_s", "broker_cpu_s_per_gb")}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5, help="CPU seconds per figure")
    parser.add_argument("--broker", action="store_true", help="also measure a broker")
    parser.add_argument("--kafka", action="store_true", help="also measure Apache Kafka")
    parser.add_argument("--broker-seconds", type=float, default=8, help="duration of each run")
    parser.add_argument(
        "--turns",
        type=int,
        default=3,
        help="number of runs of each broker, for each size and codec",
    )
    args = parser.parse_args()
    figures: dict[str, Any] = {"check_cpu_s_per_gb": check_costs(args.seconds)}
    figures["load"] = load_costs()
    if args.broker:
        figures["produced"] = produced(args.broker_seconds, args.turns, kafka=args.kafka)
    return report("validation", figures, [])


if __name__ == "__main__":
    sys.exit(main())
