"""Redis with replicas: brokers follow the primary, by sentinels or in a Redis Cluster, each time
into a new epoch; nothing that was acknowledged is lost or comes twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.redis_keys import key_prefix
from tests.rigs.broker_rig import Rig, end_of, produce, until
from tests.rigs.brokers_on_redis import LOOKS_WHEN_IT_MUST, are_in, brokers
from tests.rigs.several_brokers import stored
from tests.rigs.takeover import Load
from tests.servers.redis_servers import (
    SERVICE,
    RedisCluster,
    WithSentinels,
    redis_cluster,
    wait_for,
    with_sentinels,
)

pytestmark = pytest.mark.long

NONE = ErrorCode.none
LOOKS_OFTEN = {"redis_lookup_interval_ms": 100}


# Sentinels ---------------------------------------------------------------------------------------

Failover = Callable[[WithSentinels], None]


def killed(redis: WithSentinels) -> None:
    redis.servers[0].kill()


def paused_and_back(redis: WithSentinels) -> None:
    """It takes itself for the primary when it is back, until the sentinels tell it better."""
    redis.servers[0].pause()
    wait_for(lambda: redis.primary() == redis.servers[1].port)
    redis.servers[0].go_on()


def planned(redis: WithSentinels) -> None:
    """Connections to the old primary stay, which is a replica now."""
    redis.sentinels[0].ask("SENTINEL FAILOVER", SERVICE)


def left_alone(redis: WithSentinels) -> None:
    """The old primary is there, and nobody has told it that it is none."""
    redis.servers[1].ask("REPLICAOF", "NO", "ONE")
    for sentinel in redis.sentinels:
        sentinel.ask("SENTINEL REMOVE", SERVICE)
        sentinel.ask("SENTINEL MONITOR", SERVICE, "127.0.0.1", str(redis.servers[1].port), "1")


@pytest.mark.parametrize("failover", [killed, paused_and_back, planned, left_alone])
async def test_load_across_a_failover_by_sentinels(tmp_path: Path, failover: Failover) -> None:
    with with_sentinels(tmp_path / "redis") as redis:
        looks = LOOKS_OFTEN if failover is left_alone else LOOKS_WHEN_IT_MUST
        async with brokers(redis.url(), **looks) as rigs:
            async with Load(rigs) as load:
                await load.more(20)
                failover(redis)
                await until(lambda: are_in(rigs, rigs[0].epoch) and rigs[0].epoch > 1)
                await load.more(30)
            await load.check()
            assert redis.primary() == redis.servers[1].port
            identity = await rigs[0].sequencer.identity()
            assert identity.run_id == redis.servers[1].info("server")["run_id"]


async def test_an_idle_broker_leaves_a_server_that_is_the_primary_no_more(tmp_path: Path) -> None:
    with with_sentinels(tmp_path / "redis", sentinels=1) as redis:
        async with brokers(redis.url(), 1, **LOOKS_OFTEN) as rigs:
            (rig,) = rigs
            assert await produce(rig, b"kept") == (NONE, 0)
            left_alone(redis)
            await until(lambda: are_in(rigs, 2))
            assert await stored(rig) == [(0, b"kept")]
            assert await produce(rig, b"next") == (NONE, 1)


async def test_a_sentinel_that_does_not_answer_does_not_matter(tmp_path: Path) -> None:
    with with_sentinels(tmp_path / "redis") as redis:
        redis.sentinels[0].pause()
        async with brokers(redis.url(), 1) as rigs:
            assert await produce(rigs[0], b"kept") == (NONE, 0)
        redis.sentinels[0].go_on()


async def test_passwords_of_servers_and_sentinels(tmp_path: Path) -> None:
    with with_sentinels(
        tmp_path / "redis", sentinels=1, password="of-server", sentinel_password="of-sentinel"
    ) as redis:
        url = redis.url(login=":of-server@", query="?sentinel_password=of-sentinel")
        async with brokers(url, 1) as rigs:
            assert await produce(rigs[0], b"kept") == (NONE, 0)


# A Redis Cluster ---------------------------------------------------------------------------------


def owner_of(redis: RedisCluster, rig: Rig) -> int:
    """Its number among the primaries."""
    return redis.number_of(key_prefix(rig.cluster_id, 0))


async def test_load_across_failovers_in_a_redis_cluster(tmp_path: Path) -> None:
    with redis_cluster(tmp_path / "redis") as redis:
        async with brokers(redis.url(), **LOOKS_WHEN_IT_MUST) as rigs:
            number = owner_of(redis, rigs[0])
            async with Load(rigs) as load:
                await load.more(20)
                redis.replicas[number].ask("CLUSTER", "FAILOVER")  # and the old owner says MOVED
                await until(lambda: are_in(rigs, 2))
                await load.more(20)
                redis.replicas[number].kill()
                await until(lambda: are_in(rigs, rigs[0].epoch) and rigs[0].epoch > 2)
                await load.more(20)
            await load.check()
            assert redis.primaries[number].role == "master"
            for rig in rigs:
                assert await end_of(rig) > 0


async def test_groups_in_a_redis_cluster(tmp_path: Path) -> None:
    with redis_cluster(tmp_path / "redis") as redis:
        async with brokers(redis.url(), 1) as rigs:
            (rig,) = rigs
            group: dict[str, Any] = {
                "group_id": "g",
                "group_instance_id": None,
                "protocol_type": "consumer",
            }
            group |= {"reason": None, "session_timeout": 10_000, "rebalance_timeout": 10_000}
            protocols = [{"name": "range", "metadata": b""}]
            first = await rig.call(ApiKey.JOIN_GROUP, 8, **group, member_id="", protocols=protocols)
            assert first.error_code is ErrorCode.member_id_required
            joined = await rig.call(
                ApiKey.JOIN_GROUP, 8, **group, member_id=first.member_id, protocols=protocols
            )
            assert joined.error_code is NONE
            answer = await rig.call(ApiKey.LIST_GROUPS, 4, states_filter=())
            assert [each.group_id for each in answer.groups] == ["g"]


async def test_one_seed_that_is_there_is_enough(tmp_path: Path) -> None:
    with redis_cluster(tmp_path / "redis") as redis:
        places = f"127.0.0.1:1,127.0.0.1:{redis.replicas[0].port}"
        async with brokers(f"redis+cluster://{places}", 1) as rigs:
            assert await produce(rigs[0], b"kept") == (NONE, 0)
