"""The bucket is out of reach, alone or together with Redis: writing waits within its bounds, each
writer is given up once at most, and all goes on by itself."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode
from redis import Redis as SyncRedis

from bucketlog.log_format.errors import BucketUnavailableError
from bucketlog.tiered_storage.faulty import BucketVerb, Effect, Fault
from tests.rigs.broker_rig import Rig, create_topic, outcome, produce, send, until
from tests.rigs.patience import PATIENCE_S, Deadline, let_pass_async
from tests.rigs.several_brokers import Brokers, fetch, stored
from tests.rigs.takeover import Load
from tests.servers.own_valkey import OwnValkey
from tests.servers.way import State, Way

pytestmark = pytest.mark.long

NONE, TIMED_OUT = ErrorCode.none, ErrorCode.request_timed_out
PUTS_IN_FLIGHT = 2
GIVE_UP_MS = 1_000
READ_MS = 300
QUICK = {
    "puts_in_flight": PUTS_IN_FLIGHT,
    "put_give_up_ms": GIVE_UP_MS,
    "reservation_limit_ms": 2 * GIVE_UP_MS,
    "heartbeat_interval_ms": 50,
    "session_timeout_ms": 1000,
    "redis_timeout_ms": 500,
}
OUTAGE_S = 4 * GIVE_UP_MS / 1000
"""Writers are given up, and others find that they are stuck."""

REFUSED = Fault(error=BucketUnavailableError("injected: 503"))
ANSWERS_LOST = Fault(Effect.DONE)
LATE = Fault(Effect.LATER, later_ms=GIVE_UP_MS * 1.5)
SILENT = Fault(error=BucketUnavailableError("injected: no answer"), delay_ms=2 * GIVE_UP_MS)
OUTAGES = [
    pytest.param(REFUSED, id="refused"),
    pytest.param(ANSWERS_LOST, id="answers lost"),
    pytest.param(LATE, id="carried out late"),
    pytest.param(SILENT, id="silent"),
]


def fail(fault: Fault, *rigs: Rig) -> None:
    """From now on, every request."""
    for rig in rigs:
        rig.plan = lambda verb, key: fault


def work_again(*rigs: Rig) -> None:
    for rig in rigs:
        rig.plan = lambda verb, key: None


def reservations(valkey: OwnValkey) -> int:
    with SyncRedis(unix_socket_path=str(valkey.path)) as redis:
        (key,) = redis.scan_iter("*:reservations")
        return int(redis.hlen(key)) - 1  # and an empty field that is always there


@pytest.mark.parametrize("fault", OUTAGES)
async def test_idempotent_load_across_an_outage(
    brokers: Brokers, valkey: OwnValkey, fault: Fault
) -> None:
    a, b = await brokers.pair(**QUICK)
    async with Load([a, b], bucket_may_fail=True) as load:
        await load.more(20)
        writers = brokers.writers()
        fail(fault, a, b)
        await until(lambda: any("writer" in rig.health.report() for rig in (a, b)))
        outage = Deadline(bound_s=OUTAGE_S)
        while not outage.is_over:
            assert reservations(valkey) <= 2 * PUTS_IN_FLIGHT
            assert a.budget.held_bytes + b.budget.held_bytes < 1 << 16
            await let_pass_async(0.05)
        work_again(a, b)
        await load.more(30)
    await load.check()
    await until(lambda: a.health.ready and b.health.ready)
    assert brokers.writers() <= writers + 2, "one successor each"
    assert a.epoch == b.epoch == 1


@pytest.mark.parametrize("fault", [REFUSED, SILENT])
async def test_what_is_told_meanwhile(rig_of: Rig, fault: Fault) -> None:
    rig = rig_of
    assert await produce(rig, b"kept") == (NONE, 0)
    fail(fault, rig)
    row = await fetch(rig, 1, max_wait=50)
    assert (row.error_code, row.high_watermark) == (NONE, 1)
    async with asyncio.timeout(PATIENCE_S):
        row = await fetch(rig, 0)
    assert (row.error_code, row.high_watermark) == (ErrorCode.kafka_storage_error, 1)
    assert "reading" in rig.health.report()
    assert await produce(rig, b"late", timeout=50) == (TIMED_OUT, -1)
    assert await create_topic(rig, "n", timeout_ms=50) is TIMED_OUT
    report = rig.health.report
    await until(lambda: "did not end in" in report().get("writer", ""), report)
    waiting = send(rig, b"waits")
    work_again(rig)
    assert (await outcome(waiting))[0] is NONE
    async with asyncio.timeout(PATIENCE_S):
        while (row := await fetch(rig, 0)).error_code is not NONE:
            assert row.error_code is ErrorCode.kafka_storage_error
    assert [value for _, value in await stored(rig)][:1] == [b"kept"]
    await until(lambda: rig.health.ready, report)


async def test_what_is_recent_is_read_from_memory_meanwhile(brokers: Brokers) -> None:
    rig = await brokers.start(**QUICK)
    await create_topic(rig, "t", 4)
    assert await produce(rig, b"kept") == (NONE, 0)
    fail(SILENT, rig)
    row = await fetch(rig, 0)
    assert (row.error_code, row.high_watermark) == (NONE, 1)
    work_again(rig)
    assert [value for _, value in await stored(rig)] == [b"kept"]


@pytest.fixture
async def rig_of(brokers: Brokers) -> Rig:
    rig = await brokers.start(**QUICK, fetch_read_ms_max=READ_MS, cache_recent_bytes_max=0)
    await create_topic(rig, "t", 4)
    return rig


@pytest.mark.parametrize("redis_first", [False, True])
async def test_idempotent_load_while_both_are_out_of_reach(
    way: Way, ways: Brokers, redis_first: bool
) -> None:
    a, b = await ways.pair(**QUICK)
    async with Load([a, b], bucket_may_fail=True) as load:
        await load.more(20)
        fail(SILENT, a, b)
        way.be(State.BLACK_HOLE)
        await until(lambda: all("heartbeat" in rig.health.report() for rig in (a, b)))
        await let_pass_async(OUTAGE_S)
        if redis_first:
            way.be(State.OPEN)
            await until(lambda: all("heartbeat" not in rig.health.report() for rig in (a, b)))
            work_again(a, b)
        else:
            work_again(a, b)
            await let_pass_async(OUTAGE_S)
            way.be(State.OPEN)
        await load.more(30)
    await load.check()
    await until(lambda: a.health.ready and b.health.ready)
    assert a.epoch == b.epoch == 1


@pytest.fixture
def way(valkey: OwnValkey, tmp_path: Path) -> Iterator[Way]:
    with Way(valkey.path, tmp_path / "way.sock") as way:
        yield way


@pytest.fixture
async def ways(way: Way, brokers: Brokers) -> Brokers:
    """Brokers whose way to Valkey is `way`."""
    assert isinstance(way.address, Path)
    return brokers.by(way.address)


def _refuse(verb: BucketVerb, asked: BucketVerb, key: str) -> Fault | None:
    return REFUSED if asked is verb else None


async def test_verbs_of_every_kind_fail_one_after_the_other(brokers: Brokers) -> None:
    """Each alone: nobody waits for what is not asked of the bucket."""
    a, b = await brokers.pair(**QUICK)
    async with Load([a, b], bucket_may_fail=True) as load:
        for verb in BucketVerb:
            with ExitStack() as over:
                for rig in (a, b):
                    rig.plan = partial(_refuse, verb)
                over.callback(work_again, a, b)
                await load.more(5 if verb is not BucketVerb.CREATE else 0)
                await let_pass_async(GIVE_UP_MS / 1000)
            await load.more(5)
    await load.check()
