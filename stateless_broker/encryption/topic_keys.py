"""The data keys of encrypted topics: created and found for producers, opened for consumers.

Invariants: no batch is sealed with a data key before the log has the key, so every reader of the
batch finds its key. Topics without data keys cost one look-up. Nobody waits for a key service
longer than `wait_ms_max`, and calls to key services have their own threads, so that a slow service
stops only the topics that need it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from bucketlog.log_format.batch import BatchHeader
from bucketlog.log_format.encryption_errors import KeyRefusedError, KeyUnavailableError
from bucketlog.log_format.errors import BucketlogError, SequencerError
from bucketlog.log_format.model import Buffer, TopicId, TopicIdPartition, WallClock
from bucketlog.log_format.wrapped_key import DATA_KEY_ID_BYTES, WrappedKey
from bucketlog.metadata.encryption_facts import DataKeyCreated
from bucketlog.metadata.sequencer.requests import FactStatus, WantedSecurityEntry
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.encryption.opening import OpenedPart, opened_part
from bucketlog.tiered_storage.encryption.batch_seal import BatchSeal
from bucketlog.tiered_storage.encryption.key_service import CreatedKey, KeyUse
from bucketlog.tiered_storage.encryption.opened_keys import KeyedPartition, OpenedKeys, TopicSeals
from bucketlog.tiered_storage.encryption.partition_seals import OpenedBatch, PartitionSeals

logger = logging.getLogger(__name__)

T = TypeVar("T")
KEY_THREADS = 4
TOLD_S = 60.0
"""A topic whose key is refused is in the log once in this time."""
TOLD_MAX = 1_000


class DataKeyCommitter(Protocol):
    async def commit_fact(
        self, fact: DataKeyCreated, wanted: WantedSecurityEntry
    ) -> FactStatus: ...


class KeySource(Protocol):
    """The places of key-encryption keys (`KeyServices`). Calls block."""

    def create(self, wrapped_by: str, use: KeyUse) -> CreatedKey: ...

    def unwrap(self, key: WrappedKey) -> bytes: ...


@dataclass(frozen=True, slots=True)
class EncryptionRules:
    """Rules of encryption. `data_key_ms`: how long a data key seals new batches."""

    data_key_ms: int
    kept_ms: int
    refused_ms: int
    wait_ms_max: int
    threads: int


@dataclass(slots=True)
class EncryptionCounts:
    """Bytes are those of batches, sealed. `refused` and `unavailable` count failed uses of keys,
    `broken` batches that were changed or moved."""

    sealed_bytes: int = 0
    opened_bytes: int = 0
    data_keys: int = 0
    refused: int = 0
    unavailable: int = 0
    broken: int = 0


class _Sealing(NamedTuple):
    topic_id: TopicId
    wrapped_by: str


class TopicKeys:
    """Outlives epochs. `token_bytes` gives random bytes."""

    def __init__(
        self,
        *,
        view: View,
        committer: DataKeyCommitter,
        source: KeySource,
        rules: EncryptionRules,
        now_ms: WallClock,
        now_s: Callable[[], float],
        token_bytes: Callable[[int], bytes],
        counts: EncryptionCounts,
    ) -> None:
        self.counts = counts
        self._view = view
        self._committer = committer
        self._source = source
        self._rules = rules
        self._now_ms = now_ms
        self._now_s = now_s
        self._token_bytes = token_bytes
        self._opened = OpenedKeys(
            source.unwrap,
            now_s=now_s,
            kept_s=rules.kept_ms / 1000,
            refused_s=rules.refused_ms / 1000,
            token_bytes=token_bytes,
        )
        self._key_pool = ThreadPoolExecutor(KEY_THREADS, "keys")
        self._pool = ThreadPoolExecutor(rules.threads, "decryption")
        self._creating: dict[_Sealing, asyncio.Lock] = {}
        self._refused: dict[_Sealing, tuple[float, KeyRefusedError]] = {}
        self._told: dict[str, float] = {}

    async def close(self) -> None:
        for pool in (self._key_pool, self._pool):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    # for producers

    async def sealing(self, topic_id: TopicId, topic: str, wrapped_by: str) -> BatchSeal:
        """The seal for new batches of the topic, whose `encryption.key.id` is `wrapped_by`. Raises
        `KeyRefusedError`, `KeyUnavailableError`."""
        with self._telling(topic):
            key = self._current(topic_id, wrapped_by)
            seal = self._opened.cached(key) if key is not None else None
            if seal is not None:
                return seal
            return await self._in_time(self._sealing(_Sealing(topic_id, wrapped_by)))

    def note_sealed(self, size_bytes: int) -> None:
        self.counts.sealed_bytes += size_bytes

    def _current(self, topic_id: TopicId, wrapped_by: str) -> WrappedKey | None:
        """The topic's data key, if it is young enough for new batches."""
        key = self._view.data_keys.newest(topic_id, wrapped_by)
        if key is None or self._now_ms() - key.created_ms >= self._rules.data_key_ms:
            return None
        return key

    async def _sealing(self, wanted: _Sealing) -> BatchSeal:
        lock = self._creating.setdefault(wanted, asyncio.Lock())
        try:
            async with lock:
                key = self._current(*wanted)
                if key is not None:
                    return await self._unwrapped(key)
                refused = self._refused.get(wanted)
                if refused is not None and self._now_s() < refused[0]:
                    raise KeyRefusedError(refused[1].message, remedy=refused[1].remedy)
                return await self._created(wanted)
        finally:
            if not lock.locked():
                self._creating.pop(wanted, None)

    async def _created(self, wanted: _Sealing) -> BatchSeal:
        use = KeyUse(wanted.topic_id, self._token_bytes(DATA_KEY_ID_BYTES))
        try:
            made = await self._call(lambda: self._source.create(wanted.wrapped_by, use))
        except KeyRefusedError as error:
            while len(self._refused) >= TOLD_MAX:
                del self._refused[next(iter(self._refused))]
            self._refused[wanted] = (self._now_s() + self._rules.refused_ms / 1000, error)
            raise
        except KeyUnavailableError as error:
            older = self._view.data_keys.newest(*wanted)
            seal = self._opened.cached(older) if older is not None else None
            if seal is None:
                raise
            logger.warning("a data key serves longer than it should: %s", error)
            return seal
        fact = DataKeyCreated(
            topic_id=UUID(bytes=wanted.topic_id),
            key_id=use.key_id,
            wrapped_by=wanted.wrapped_by,
            wrapped=made.wrapped,
            at_ms=self._now_ms(),
        )
        try:
            await self._committer.commit_fact(fact, WantedSecurityEntry())
        except SequencerError as error:
            raise KeyUnavailableError(
                f"a new data key is not in the log: {error.message}", remedy=error.remedy
            ) from error
        key = self._view.data_keys.of_topic(wanted.topic_id).get(use.key_id)
        if key is None:
            raise KeyUnavailableError("the topic was deleted while its data key was created")
        self.counts.data_keys += 1
        return self._opened.keep(key, made.data_key)

    async def _unwrapped(self, key: WrappedKey) -> BatchSeal:
        seal = self._opened.cached(key)
        if seal is None:
            seal = await self._call(lambda: self._opened.seal_of(key))
        return seal

    # for consumers

    def seals_of(self, topic_id: TopicId) -> TopicSeals | None:
        """Return the seals of a topic. None: the topic has no data key, so none of its batches is
        sealed."""
        keys = self._view.data_keys.of_topic(topic_id)
        if not keys:
            return None
        return TopicSeals(self._opened, self._view.topic_name(topic_id) or topic_id.hex(), keys)

    def seals_at(self, partition: TopicIdPartition) -> PartitionSeals | None:
        """Return the seals of one partition, for callers that open and seal its batches in a
        thread. None: as `seals_of`."""
        seals = self.seals_of(partition.topic_id)
        return None if seals is None else KeyedPartition(seals, partition)

    async def opened(self, partition: TopicIdPartition, parts: list[Buffer]) -> list[Buffer]:
        """Return whole batches without their seals. If a later batch does not open, the batches
        before it are returned. Raises `KeyRefusedError`, `KeyUnavailableError`, `BrokenSealError`,
        `InvalidDataError`."""
        seals = self.seals_of(partition.topic_id)
        if seals is None or not parts:
            return parts
        with self._telling(seals.topic):
            found = await self._in_time(self._opened_by(seals, partition, parts))
        self.counts.opened_bytes += found.sealed_bytes
        return [found.batches]

    async def opened_batch(
        self, partition: TopicIdPartition, batch: Buffer, header: BatchHeader
    ) -> OpenedBatch:
        """Open a sealed batch. Raises as `opened`."""
        seals = self.seals_of(partition.topic_id)
        if seals is None:
            seals = TopicSeals(self._opened, partition.topic_id.hex(), {})
        with self._telling(seals.topic):
            key = seals.key_of(batch, header)
            await self._in_time(self._unwrapped(key))
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, seals.open, partition, batch, header)

    async def _opened_by(
        self, seals: TopicSeals, partition: TopicIdPartition, parts: Sequence[Buffer]
    ) -> OpenedPart:
        loop = asyncio.get_running_loop()
        while True:
            found = await loop.run_in_executor(self._pool, opened_part, seals, partition, parts)
            if found.missing is None:
                return found
            try:
                await self._unwrapped(found.missing)
            except (KeyRefusedError, KeyUnavailableError):
                if not found.batches:
                    raise
                return found  # the next fetch is told

    # keys

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._key_pool, call)

    async def _in_time(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._rules.wait_ms_max / 1000):
                return await work
        except TimeoutError:
            raise KeyUnavailableError(
                f"no data key within {self._rules.wait_ms_max} ms",
                remedy="check the way to the key service; BUCKETLOG_ENCRYPTION_WAIT_MS_MAX is the "
                "limit",
            ) from None

    @contextmanager
    def _telling(self, topic: str) -> Iterator[None]:
        """Count failures, and tell of them once a minute for each topic."""
        try:
            yield
        except BucketlogError as error:
            if isinstance(error, KeyRefusedError):
                self.counts.refused += 1
            elif isinstance(error, KeyUnavailableError):
                self.counts.unavailable += 1
            else:
                self.counts.broken += 1
            now_s = self._now_s()
            if now_s >= self._told.get(topic, now_s):
                while len(self._told) >= TOLD_MAX:
                    del self._told[next(iter(self._told))]
                self._told[topic] = now_s + TOLD_S
                logger.error("topic %r: %s", topic, error)
            raise
