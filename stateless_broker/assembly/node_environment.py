"""The parts of a broker that a simulation replaces: clock, randomness, bucket and Redis."""

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
    """Clock, randomness, bucket and Redis. `history` is another way to the same bucket, if there is
    one, by which old segments are read. `monotonic` is in seconds, and runs with the event loop's
    time; `sequencer_now_ms` is a clock instead of Redis' own. `connect_redis` is None without a
    configured Redis; then `embedded` starts one. `turns` is shared by the nodes of a process."""

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
