"""Questions to a Redis server about itself."""

from redis.asyncio import Redis

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.metadata.sequencer.requests import ServerIdentity


async def check_eviction(redis: Redis) -> None:
    """Refuse a server that may evict. Raises `ConfigurationError`, and redis-py's errors."""
    memory = await redis.info("memory")
    policy = memory.get("maxmemory_policy")
    if policy != "noeviction":
        raise ConfigurationError(
            f"Redis runs with maxmemory-policy {policy}: it may evict the log's state",
            remedy="set maxmemory-policy noeviction",
        )


async def read_identity(redis: Redis) -> ServerIdentity:
    """Raises redis-py's errors."""
    server = await redis.info("server")
    replication = await redis.info("replication")
    return ServerIdentity(
        str(server["run_id"]), str(replication["master_replid"]), str(replication["role"])
    )
