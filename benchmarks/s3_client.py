"""What PUT and GET cost this process: our S3 backend, and obstore (Rust) beside it.

Against a running S3 endpoint whose bucket exists, with credentials in AWS_*:

    python -m benchmarks.s3_client --endpoint http://127.0.0.1:9000 --bucket bench \\
        --object-mib 8 --part-kib 1024 --objects 64 --in-flight 4 --loop uvloop

One JSON line for each client and verb on standard output. CPU seconds are this process's alone,
all threads, per GB (10^9 bytes); MB/s also measures the server. The objects are deleted again.
Both clients send create-only PUTs with unsigned payloads; ours sends the CRC32C too, and its
computation is part of its cost.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import NamedTuple
from uuid import uuid4

import uvloop
from obstore.store import S3Store

from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends.location import S3Options, open_bucket
from bucketlog.tiered_storage.segment import body_crc32c


class Client(NamedTuple):
    name: str
    put: Callable[[str], Awaitable[object]]
    get: Callable[[str], Awaitable[int]]


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@asynccontextmanager
async def our_client(
    args: argparse.Namespace, parts: list[Buffer], prefix: str
) -> AsyncIterator[Client]:
    options = S3Options(endpoint_url=args.endpoint)
    bucket = await open_bucket(f"s3://{args.bucket}/{prefix}", s3=options)

    async def put(key: str) -> None:
        if not await bucket.create(key, parts, crc32c=body_crc32c(parts)):
            raise RuntimeError(f"{key} exists")

    async def get(key: str) -> int:
        return len((await bucket.get(key)).data)

    try:
        yield Client("aiobotocore", put, get)
        await bucket.delete([info.key async for info in bucket.list("")])
    finally:
        await bucket.close()


@asynccontextmanager
async def obstore_client(
    args: argparse.Namespace, parts: list[Buffer], prefix: str
) -> AsyncIterator[Client]:
    store = S3Store(
        args.bucket,
        prefix=prefix,
        endpoint=args.endpoint,
        region=os.environ.get("AWS_REGION", "us-east-1"),
        unsigned_payload=True,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True, "timeout": timedelta(seconds=60)},
    )

    async def put(key: str) -> None:
        # obstore takes one buffer or an iterator of bytes; one PUT needs one buffer
        await store.put_async(key, b"".join(parts), mode="create", use_multipart=False)

    async def get(key: str) -> int:
        answer = await store.get_async(key)
        return len(await answer.bytes_async())

    yield Client("obstore", put, get)
    await store.delete_async([entry["path"] async for page in store.list() for entry in page])


async def measure(
    args: argparse.Namespace, client: Client, verb: str, call: Callable[[str], Awaitable[object]]
) -> None:
    turns = asyncio.Semaphore(args.in_flight)

    async def one(number: int) -> None:
        async with turns:
            await call(f"{number:08d}")

    cpu, began = cpu_seconds(), time.perf_counter()
    await asyncio.gather(*map(one, range(args.objects)))
    cpu, took = cpu_seconds() - cpu, time.perf_counter() - began
    size = args.objects * args.object_mib * 2**20
    result = {
        "client": client.name,
        "verb": verb,
        "cpu_s_per_gb": round(cpu / size * 1e9, 3),
        "mb_per_s": round(size / took / 1e6, 1),
        "objects": args.objects,
        "object_mib": args.object_mib,
        "part_kib": args.part_kib,
        "in_flight": args.in_flight,
        "loop": args.loop,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    print(json.dumps(result), flush=True)


async def run(args: argparse.Namespace) -> None:
    part = args.part_kib * 1024
    count, rest = divmod(args.object_mib * 2**20, part)
    sizes = [part] * count + ([rest] if rest else [])
    parts: list[Buffer] = [memoryview(os.urandom(size)) for size in sizes]
    for open_client in (our_client, obstore_client):
        async with open_client(args, parts, f"bench-{uuid4().hex}") as client:
            await client.put("warm-up")
            await client.get("warm-up")
            await measure(args, client, "put", client.put)
            await measure(args, client, "get", client.get)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--endpoint", required=True, help="such as http://127.0.0.1:9000")
    parser.add_argument("--bucket", required=True, help="must exist")
    parser.add_argument("--object-mib", type=int, default=8)
    parser.add_argument("--part-kib", type=int, default=1024, help="our body comes in such parts")
    parser.add_argument("--objects", type=int, default=64)
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--loop", choices=["uvloop", "asyncio"], default="uvloop")
    args = parser.parse_args(arguments)
    (uvloop.run if args.loop == "uvloop" else asyncio.run)(run(args))


if __name__ == "__main__":
    main(sys.argv[1:])
