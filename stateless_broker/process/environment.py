"""The clock, randomness, bucket and Redis of a broker's log, on this machine."""

import time
from collections.abc import Callable
from random import Random
from uuid import uuid4

from redis.asyncio import Redis

from bucketlog.metadata.sequencer.redis_url import connect_redis
from bucketlog.stateless_broker.assembly.node_environment import NodeEnvironment
from bucketlog.stateless_broker.process.embedded_redis import ValkeyProcesses
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.tiered_storage.backends.location import open_bucket, open_sync_bucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.counting import CountingBucket
from bucketlog.tiered_storage.state_signature import NO_KEYS, StateKeys, read_state_keys


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


async def node_environment(settings: BrokerSettings) -> NodeEnvironment:
    """The clock, randomness, bucket and Redis of a broker on this machine. Raises
    `BucketlogError`."""
    state_keys = _state_keys(settings)
    bucket = CountingBucket(
        await open_bucket(settings.bucket_url, shard=settings.shard, state_keys=state_keys)
    )
    return NodeEnvironment(
        bucket=bucket,
        history=bucket.beside(_open_history(settings, state_keys)),
        connect_redis=_redis_connector(settings),
        now_ms=wall_clock_ms,
        monotonic=time.monotonic,
        new_uuid=uuid4,
        random=Random(),
        embedded=ValkeyProcesses(settings),
    )


def _redis_connector(settings: BrokerSettings) -> Callable[[], Redis] | None:
    """Return the connector of the configured Redis; None if there is none."""
    url, timeout_ms = settings.redis_url, settings.redis_timeout_ms
    return (lambda: connect_redis(url, timeout_ms=timeout_ms)) if url is not None else None


def _state_keys(settings: BrokerSettings) -> StateKeys:
    if settings.state_key_file is None:
        return NO_KEYS
    return read_state_keys(
        settings.state_key_file, unsigned_accepted=settings.state_unsigned_accepted
    )


def _open_history(settings: BrokerSettings, state_keys: StateKeys) -> ThreadedBucket:
    """The same bucket, with its own requests for old segments."""
    return ThreadedBucket(
        open_sync_bucket(settings.bucket_url, shard=settings.shard, state_keys=state_keys),
        threads=settings.history_ranges_in_flight,
    )
