"""Hedged PUTs on a real S3 server, behind a proxy that keeps the first PUT of a key for itself."""

import asyncio
from collections.abc import Iterator, Sequence
from uuid import uuid4

import pytest

from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage.backends.location import S3Options, open_bucket
from bucketlog.tiered_storage.bucket import Bucket
from bucketlog.tiered_storage.counting import CountingBucket
from bucketlog.tiered_storage.hedging import HedgePolicy, HedgeSettings, HedgingBucket
from bucketlog.tiered_storage.segment import body_crc32c
from localstack.servers import RunningStore
from localstack.slow_puts import SlowPuts

BUCKET = "bucketlog-hedged"
FOR_EVER_S = 3_600.0
BODY = bytes(range(256)) * 4_096


class FirstIsStuck:
    """The delay of a PUT: the first of every key whose name says so never comes to an end."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def __call__(self, path: str) -> float:
        stuck = "stuck" in path and path not in self.seen
        self.seen.add(path)
        return FOR_EVER_S if stuck else 0


class Refusals(CountingBucket):
    """Tells when a request was refused."""

    def __init__(self, inner: Bucket) -> None:
        super().__init__(inner)
        self.refused = asyncio.Event()

    async def create(self, key: str, parts: Sequence[Buffer], *, crc32c: int | None = None) -> bool:
        created = await super().create(key, parts, crc32c=crc32c)
        if not created:
            self.refused.set()
        return created


@pytest.fixture
def proxy(minio: RunningStore, credentials: None) -> Iterator[SlowPuts]:
    minio.make_bucket(BUCKET)
    with SlowPuts(minio.endpoint_url, FirstIsStuck()) as slow:
        yield slow


@pytest.mark.parametrize("sealed", [False, True], ids=["free", "sealed"])
async def test_a_stuck_put_is_overtaken_on_s3(
    minio: RunningStore, proxy: SlowPuts, sealed: bool
) -> None:
    url = f"s3://{BUCKET}/{uuid4()}"
    counting = Refusals(
        await open_bucket(url, s3=S3Options(endpoint_url=proxy.endpoint_url, max_connections=4))
    )
    direct = await open_bucket(url, s3=S3Options(endpoint_url=minio.endpoint_url))
    policy = HedgePolicy(HedgeSettings(share_max=1, samples_min=20))
    hedging = HedgingBucket(counting, policy, on_hedge=counting.count_hedge)
    crc = body_crc32c([BODY])
    for number in range(20):
        assert await hedging.create(f"quick/{number}", [BODY], crc32c=crc)
    if sealed:
        assert await direct.create("stuck/0", [b"seal"])
        first = asyncio.create_task(hedging.create("stuck/0", [BODY], crc32c=crc))
        await counting.refused.wait()  # the hedge is; the first may yet be anything
        assert not first.done()
        first.cancel()  # as the commit path does after `put_give_up_ms`
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await direct.get("stuck/0")).data == b"seal"
        assert counting.snapshot().hedges_won == 0
    else:
        for number in range(10):  # more than there are connections: the losers give theirs back
            assert await hedging.create(f"stuck/{number}", [BODY], crc32c=crc)
            assert (await direct.get(f"stuck/{number}")).data == BODY
            assert not await hedging.create(f"stuck/{number}", [BODY], crc32c=crc)
        counts = counting.snapshot()
        assert counts.hedges >= counts.hedges_won >= 10
    await hedging.close()
    await direct.close()
