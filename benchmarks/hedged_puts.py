"""Latency of PUTs to a store as slow as S3, with and without hedging.

MinIO (`scripts/install.sh minio`) behind a proxy that holds each PUT for a time drawn from a
log-normal distribution; one JSON line for each quantile, 0 being no hedging:

    python -m benchmarks.hedged_puts --puts 1000 --in-flight 4 --p50-ms 60 --p99-ms 250
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from bucketlog.tiered_storage.backends.location import S3Options, open_bucket
from bucketlog.tiered_storage.counting import CountingBucket
from bucketlog.tiered_storage.hedging import HedgePolicy, HedgeSettings, HedgingBucket
from bucketlog.tiered_storage.segment import body_crc32c
from localstack.servers import StoreName, running
from localstack.slow_puts import SlowPuts, log_normal

BUCKET = "bucketlog-bench"


async def measure(args: argparse.Namespace, endpoint_url: str, quantile: float) -> None:
    counting = CountingBucket(
        await open_bucket(f"s3://{BUCKET}/{uuid4()}", s3=S3Options(endpoint_url=endpoint_url))
    )
    policy = HedgePolicy(HedgeSettings(quantile=quantile)) if quantile else None
    bucket = HedgingBucket(counting, policy, on_hedge=counting.count_hedge) if policy else counting
    body = os.urandom(args.body_kib * 1024)
    crc32c = body_crc32c([body])
    latencies_ms: list[float] = []
    turns = asyncio.Semaphore(args.in_flight)

    async def put(number: int) -> None:
        async with turns:
            begun = time.perf_counter()
            if not await bucket.create(f"log/{number}", [body], crc32c=crc32c):
                raise RuntimeError("a fresh key is taken")
            latencies_ms.append((time.perf_counter() - begun) * 1_000)

    await asyncio.gather(*map(put, range(args.puts)))
    counts = counting.snapshot()
    await bucket.close()
    percentiles = statistics.quantiles(latencies_ms, n=1_000)
    result = {
        "quantile": quantile,
        **{f"p{at / 10:g}_ms": round(percentiles[at - 1], 1) for at in (500, 950, 990, 999)},
        "puts": args.puts,
        "hedges": counts.hedges,
        "hedges_won": counts.hedges_won,
        "body_kib": args.body_kib,
        "in_flight": args.in_flight,
    }
    print(json.dumps(result), flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--puts", type=int, default=1_000)
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--body-kib", type=int, default=64)
    parser.add_argument("--p50-ms", type=float, default=60)
    parser.add_argument("--p99-ms", type=float, default=250)
    parser.add_argument("--quantiles", type=float, nargs="+", default=[0, 0.95, 0.9])
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        running(StoreName.MINIO, Path(folder)) as store,
    ):
        os.environ |= store.environment()
        store.make_bucket(BUCKET)
        for quantile in args.quantiles:
            delay = log_normal(args.p50_ms, args.p99_ms, seed=args.seed)
            with SlowPuts(store.endpoint_url, delay, whole_put=True) as proxy:
                asyncio.run(measure(args, proxy.endpoint_url, quantile))


if __name__ == "__main__":
    main(sys.argv[1:])
