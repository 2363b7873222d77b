"""What stands in Redis or in the bucket is not bucketlog's: brokers go on by themselves where
nothing that counts is gone, and name it where something is."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode
from redis import Redis as SyncRedis

from bucketlog.log_format.errors import BucketRefusedError, InvalidDataError
from bucketlog.log_format.model import SegmentId
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.sequencer.redis_keys import KEYS, key_prefix
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.faulty import BucketVerb, Fault
from tests.rigs.broker_rig import Rig, create_topic, produce, until
from tests.rigs.patience import PATIENCE_S
from tests.rigs.several_brokers import QUICK, Brokers, stored
from tests.rigs.takeover import delete_key
from tests.servers.own_valkey import OwnValkey

pytestmark = pytest.mark.long

NONE = ErrorCode.none
NO_PACKED_VALUE = b"\xc1foreign"


def overwrite(redis: SyncRedis, key: str) -> None:
    """Every value of the key is a stranger's, and one more."""
    match redis.type(key):
        case b"hash":
            for field in [*redis.hkeys(key), "foreign"]:
                redis.hset(key, field, NO_PACKED_VALUE)
        case b"stream":
            redis.xadd(key, {"foreign": "1"})
        case b"zset":
            redis.zadd(key, {"foreign": 5})
        case _:
            redis.sadd(key, "foreign")


async def goes_on(rig: Rig) -> None:
    """Writing works again, and nothing was stopped."""
    while (await produce(rig, b"after", timeout=500))[0] is not NONE:
        assert rig.health.stopped is None
    await until(lambda: rig.health.ready)
    assert (await stored(rig))[0] == (0, b"before")


@pytest.mark.parametrize("what", ["type", "content"])
@pytest.mark.parametrize("name", [key.name for key in KEYS])
async def test_any_key_of_redis_may_hold_what_is_not_bucketlogs(
    brokers: Brokers, valkey: OwnValkey, name: str, what: str
) -> None:
    rig = await brokers.start(**QUICK)
    await create_topic(rig, "t")
    assert await produce(rig, b"before") == (NONE, 0)
    with SyncRedis(unix_socket_path=str(valkey.path)) as redis:
        key = key_prefix(brokers.cluster_id, 0) + name
        if what == "content":
            overwrite(redis, key)
        else:
            redis.delete(key)
            redis.set(key, "foreign")
    async with asyncio.timeout(PATIENCE_S):
        await goes_on(rig)
    assert (await produce(await brokers.start(**QUICK)))[0] is NONE


async def test_an_epoch_begins_where_the_nonces_are_not_bucketlogs(
    brokers: Brokers, valkey: OwnValkey
) -> None:
    rig = await brokers.start(**QUICK)
    await create_topic(rig, "t")
    assert await produce(rig, b"before") == (NONE, 0)
    with SyncRedis(unix_socket_path=str(valkey.path)) as redis:
        redis.set(key_prefix(brokers.cluster_id, 0) + "nonces", "foreign")
    delete_key(valkey.path, "meta")
    async with asyncio.timeout(PATIENCE_S):
        await goes_on(rig)
    assert rig.epoch == 2


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"claimed_ms": "soon"}'])
async def test_a_claim_that_says_nothing_is_passed_over(
    brokers: Brokers, valkey: OwnValkey, content: bytes
) -> None:
    rig = await brokers.start(claim_wait_ms=100, **QUICK)
    await create_topic(rig, "t")
    assert await produce(rig, b"before") == (NONE, 0)
    assert brokers.memory.create(keys.epoch_claim(2), [content])
    valkey.wipe()
    async with asyncio.timeout(PATIENCE_S):
        await goes_on(rig)
    assert rig.epoch == 3


@pytest.mark.parametrize("name", ["writer", "0" * 31 + "G"])
async def test_a_registration_that_nobody_made_is_named(brokers: Brokers, name: str) -> None:
    key = f"{keys.WRITERS}{keys.number(1)}/{name}"
    assert brokers.memory.create(key, [b"{}"])
    with pytest.raises(InvalidDataError, match=f"unexpected key '{key}'.*keep other objects out"):
        await brokers.start()


@pytest.mark.parametrize("epoch", [keys.EPOCH_MAX + 1, 2**63, 10**20 - 1])
async def test_a_claim_of_an_epoch_that_cannot_be_is_named(brokers: Brokers, epoch: int) -> None:
    key = keys.EPOCHS + keys.number(epoch)
    assert brokers.memory.create(key, [b"{}"])
    with pytest.raises(InvalidDataError, match=f"unexpected key '{key}'.*keep other objects out"):
        await brokers.start()


async def test_a_producer_has_an_id_in_the_last_epoch_that_can_be(brokers: Brokers) -> None:
    assert brokers.memory.create(keys.epoch_claim(keys.EPOCH_MAX - 1), [b"{}"])
    rig = await brokers.start(claim_wait_ms=100)
    assert rig.epoch == keys.EPOCH_MAX
    answer = await rig.call(
        ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=0
    )
    assert answer.producer_id >> 40 == keys.EPOCH_MAX


async def test_a_strange_object_in_a_chain_is_named(brokers: Brokers) -> None:
    rig = await brokers.start(**QUICK)
    await create_topic(rig, "t")
    key = rig.next_key()
    assert brokers.memory.create(key, [b""])
    assert (await produce(rig, b"x", timeout=500))[0] is not NONE
    await until(lambda: rig.health.stopped is not None)
    assert key in str(rig.health.stopped)
    assert "move it away, then restart the brokers" in str(rig.health.stopped)


async def test_a_bucket_that_refuses_for_a_while_does_not_stop_who_seals(brokers: Brokers) -> None:
    alive, dead = await brokers.pair(**QUICK)
    refused: list[str] = []

    def no_rights(verb: BucketVerb, key: str) -> Fault | None:
        if verb is not BucketVerb.CREATE or key != keys.segment(SegmentId(dead.writer, 0)):
            return None
        refused.append(key)
        return Fault(error=BucketRefusedError("no rights")) if len(refused) < 4 else None

    alive.plan = no_rights
    dead.fall_silent()
    await until(lambda: brokers.memory.head(keys.segment(SegmentId(dead.writer, 0))) is not None)
    await until(lambda: not alive.health.is_degraded(BrokerPart.SEALING))
    assert alive.health.stopped is None
    assert len(refused) == 4
