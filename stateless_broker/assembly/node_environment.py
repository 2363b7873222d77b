"""Parts of a broker that a simulation replaces, such as clock, randomness, bucket and Redis."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from redis.asyncio import Redis

from bucketlog.log_format.model import WallClock
from bucketlog.stateless_broker.epochs.servers import EmbeddedRedis
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.tiered_storage.bucket import Bucket
from bucketlog.tiered_storage.counting import CountingBucket


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """Clock, randomness, bucket and Redis of a node. `history` is a second client of the same
    bucket, which reads old segments; None means `bucket`. `monotonic` is in seconds, and runs with
    the event loop's time. `sequencer_now_ms` replaces the clock of Redis. `connect_redis` is None
    without a configured Redis; then `embedded` starts a server. All nodes of a process share
    `turns`."""

    bucket: CountingBucket
    connect_redis: Callable[[], Redis] | None
    now_ms: WallClock
    monotonic: Callable[[], float]
    new_uuid: Callable[[], UUID]
    random: Random
    sequencer_now_ms: WallClock | None = None
    history: Bucket | None = None
    embedded: EmbeddedRedis | None = None
    turns: Turns = field(default_factory=Turns)
