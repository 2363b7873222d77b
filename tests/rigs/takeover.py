"""Idempotent load on brokers while epochs end, and what must hold of it afterwards; faults of a
Redis that forgets, as tests cause them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kio.schema.errors import ErrorCode
from redis import Redis as SyncRedis

from tests.rigs.broker_rig import Rig, end_of, produce, until
from tests.rigs.patience import PATIENCE_S, let_pass_async
from tests.rigs.several_brokers import fetch, stored
from tests.servers.own_valkey import OwnValkey

RETRIABLE = (
    ErrorCode.request_timed_out,
    ErrorCode.not_enough_replicas,
    ErrorCode.not_leader_or_follower,
)


class Load:
    """Producers, each with a partition of its own, that send batch after batch, to one broker after
    the other, and what is not acknowledged again until it is. A reader asks all the while. It may
    be ended and entered again."""

    def __init__(
        self, rigs: Sequence[Rig], *, producers: int = 3, bucket_may_fail: bool = False
    ) -> None:
        self._rigs = rigs
        self._producers = producers
        self._reads = {
            ErrorCode.none,
            ErrorCode.offset_not_available,
            ErrorCode.not_leader_or_follower,
        }
        if bucket_may_fail:
            self._reads.add(ErrorCode.kafka_storage_error)
        self._ending = asyncio.Event()
        self.acknowledged: list[dict[bytes, int]] = [{} for _ in range(producers)]
        """Offsets by value."""

    async def __aenter__(self) -> "Load":
        self._ending.clear()
        self._tasks = [asyncio.create_task(self._produce(n)) for n in range(self._producers)]
        self._tasks += [asyncio.create_task(self._read(rig)) for rig in self._rigs]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ending.set()
        async with asyncio.timeout(2 * PATIENCE_S):
            await asyncio.gather(*self._tasks)

    @property
    def total(self) -> int:
        return sum(map(len, self.acknowledged))

    async def more(self, count: int) -> None:
        """So many acknowledgements later."""
        wanted = self.total + count
        await until(lambda: self.total >= wanted or any(task.done() for task in self._tasks))

    async def _produce(self, number: int) -> None:
        sequence, turn = len(self.acknowledged[number]), number
        while not self._ending.is_set():
            value = b"%d-%d" % (number, sequence)
            while True:
                error, offset = await produce(
                    self._rigs[turn % len(self._rigs)],
                    value,
                    partition=number,
                    timeout=3000,
                    producer_id=100 + number,
                    producer_epoch=0,
                    base_sequence=sequence,
                )
                turn += 1
                if error is ErrorCode.none:
                    break
                assert error in RETRIABLE, error
            self.acknowledged[number][value] = offset
            sequence += 1

    async def _read(self, rig: Rig) -> None:
        """What this broker shows never gets less, and is never out of range."""
        shown = 0
        while not self._ending.is_set():
            acknowledged = max(self.acknowledged[0].values(), default=-1) + 1
            row = await fetch(rig, acknowledged)
            assert row.error_code in self._reads
            if row.error_code is ErrorCode.none:
                assert row.high_watermark >= shown
                shown = row.high_watermark
            end = await end_of(rig)
            assert end >= shown
            await let_pass_async(0.005)

    async def check(self) -> None:
        """Every acknowledged record is there once, where it was said to be, in order, at every
        broker; nothing else is."""
        for number, acknowledged in enumerate(self.acknowledged):
            for rig in self._rigs:
                await end_of(rig, number)
                found = await stored(rig, number)
                assert [value for _, value in found] == [
                    b"%d-%d" % (number, sequence) for sequence in range(len(found))
                ]
                assert {value: offset for offset, value in found} == acknowledged


def delete_key(path: Path, name: str) -> None:
    with SyncRedis(unix_socket_path=str(path)) as redis:
        for key in redis.scan_iter(f"*:{name}"):
            redis.delete(key)


def copy_of(path: Path) -> dict[bytes, bytes]:
    """All that a Redis keeps."""
    with SyncRedis(unix_socket_path=str(path)) as redis:
        return {key: bytes(redis.dump(key)) for key in redis.scan_iter()}


def put_back(path: Path, copy: dict[bytes, bytes]) -> None:
    """Redis has again what it had, and nothing else."""
    with SyncRedis(unix_socket_path=str(path)) as redis, redis.pipeline() as all_at_once:
        all_at_once.flushall()
        for key, content in copy.items():
            all_at_once.restore(key, 0, content)
        all_at_once.execute()


async def wipe(rig: Rig, valkey: OwnValkey) -> None:
    """Redis loses its data. Returns when the broker is in the next epoch."""
    epoch = rig.epoch
    valkey.wipe()
    await until(lambda: rig.epoch > epoch and rig.health.ready)
