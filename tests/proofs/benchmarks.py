"""The claims about speed; targets of `tests.proofs`. Each runs a benchmark as a process of its own.

In short form no limit counts: machines of CI are shared.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.proofs.shortfall import Figures, ShortfallError

ROOT = Path(__file__).parents[2]
SHORT_S, FULL_S = 3, 20
ONE_MINIO = ("--store", "minio", "--partitions", "12")
AS_SLOW_AS_S3 = ("--put-p50-ms", "60", "--put-p99-ms", "250")
S3_LATENCY_LOAD = ("--rate-mb-s", "2", "--linger-ms", "1")
NO_HEDGING = ("--setting", "put_hedge_quantile=0")


def run_benchmark(module: str, *flags: str) -> Figures:
    """The figures, with what they fall short of in `shortfalls`."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    lines = done.stdout.strip().splitlines()
    if not lines:
        raise ShortfallError(f"{' '.join(command)} ended with {done.returncode}", {})
    figures: Figures = json.loads(lines[-1])
    return figures


def checked_benchmark(module: str, *flags: str) -> Figures:
    """The figures of a benchmark that falls short of nothing. Raises `ShortfallError`."""
    figures = run_benchmark(module, *flags)
    if figures["shortfalls"]:
        raise ShortfallError("; ".join(figures["shortfalls"]), figures)
    return figures


def bench(
    module: str, short: bool, *flags: str, limits: tuple[str, ...], seconds: int = FULL_S
) -> Figures:
    duration = ("--seconds", str(SHORT_S if short else seconds))
    return checked_benchmark(module, *flags, *duration, *(() if short else limits))


def prove_produce(short: bool) -> Figures:
    """1 KB records in 1 MB batches by librdkafka on a bucket with fsync."""
    limits = ("--min-mb-s", "200", "--max-cpu-s-per-gb", "2.5")
    return bench("produce", short, limits=limits)


def prove_fetch(short: bool) -> Figures:
    """The same records, read back."""
    fill = ("--fill-mb", "100" if short else "1000")
    return bench("fetch", short, *fill, limits=("--max-cpu-s-per-gb", "0.8"))


def prove_latency(short: bool) -> Figures:
    """20 MB/s with group commit."""
    flags = ("--rate-mb-s", "20", "--linger-ms", "1")
    return bench("produce", short, *flags, limits=("--max-p99-ms", "10"))


def prove_catch_up(short: bool) -> Figures:
    """One consumer reads history from MinIO while others produce 20 MB/s there, flushing as brokers
    on S3 do."""
    flags = (*ONE_MINIO, "--rate-mb-s", "20", "--setting", "flush_interval_ms=250")
    size = ("--fill-mb", "300", "--pairs", "1", "--quiet-seconds", "3")
    limits = ("--fill-mb", "5000", "--pairs", "5", "--max-ratio", "1.5")
    return checked_benchmark("catch_up", *flags, *(size if short else limits))


def prove_minio(short: bool) -> Figures:
    """As fast as it goes into one MinIO: 1 KB records, and 100 B ones, which have no limit."""
    limits = ("--min-mb-s", "110", "--max-cpu-s-per-gb", "3")
    small = bench("produce", short, *ONE_MINIO, "--record-bytes", "100", limits=(), seconds=15)
    try:
        large = bench("produce", short, *ONE_MINIO, limits=limits, seconds=15)
    except ShortfallError as error:
        raise ShortfallError(str(error), {"1000_b": error.figures, "100_b": small}) from None
    return {"1000_b": large, "100_b": small}


def prove_s3latency(short: bool) -> Figures:
    """Flushes every 250 ms into a store as slow as S3, with hedged PUTs and without."""
    interval = ("--setting", "flush_interval_ms=250")
    duration = ("--seconds", str(SHORT_S if short else 60))
    limits = () if short else ("--max-p50-ms", "200", "--max-p99-ms", "400")
    flags = (*ONE_MINIO, *AS_SLOW_AS_S3, *S3_LATENCY_LOAD, *interval, *duration, *limits)
    figures = {
        "hedged": run_benchmark("produce", *flags),
        "not_hedged": run_benchmark("produce", *flags, *NO_HEDGING),
    }
    found = [f"{name}: {text}" for name, one in figures.items() for text in one["shortfalls"]]
    if found:
        raise ShortfallError("; ".join(found), figures)
    return figures


def prove_tls_cost(short: bool) -> Figures:
    """CPU time of TLS, in and out, beside plain text and beside Apache Kafka."""
    size = ("--mb", "20", "--turns", "1", "--warm-up-turns", "0", "--reads", "1")
    return checked_benchmark("tls", *(size if short else ("--max-ratio", "1")))


def prove_small_requests(short: bool) -> Figures:
    """Single-record requests: CPU time and latencies beside Apache Kafka."""
    size = ("--rates", "100,1000", "--seconds", "2", "--turns", "1")
    return checked_benchmark("small_requests", *(size if short else ("--max-cpu-ratio", "1")))


def prove_polls(short: bool) -> Figures:
    """CPU time of idle polls, beside Apache Kafka."""
    size = ("--consumers", "2", "--connections", "100", "--seconds", "2", "--turns", "1")
    limits = ("--connections", "5000", "--max-session-us", "200", "--max-single-us", "54")
    return checked_benchmark("polls", *(size if short else limits))


FILE_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "produce": prove_produce,
    "fetch": prove_fetch,
    "latency": prove_latency,
    "tls-cost": prove_tls_cost,
    "small-requests": prove_small_requests,
    "polls": prove_polls,
}
STORE_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "minio": prove_minio,
    "s3latency": prove_s3latency,
    "catchup": prove_catch_up,
}
