"""Data keys in the clear, in memory: each is unwrapped once, and kept for a while.

Invariants: a data key leaves memory `kept_s` after it was unwrapped, so a key that was deleted, or
whose use was withdrawn, opens nothing after that time. A refusal is remembered for `refused_s`, so
that clients which ask again and again do not cost a call to the key service each time.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from bucketlog.log_format.batch import BatchHeader, read_header
from bucketlog.log_format.encryption_errors import BrokenSealError, KeyRefusedError
from bucketlog.log_format.model import Buffer, TopicIdPartition
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.tiered_storage.encryption.batch_seal import BatchSeal, sealed_by
from bucketlog.tiered_storage.encryption.partition_seals import OpenedBatch

T = TypeVar("T")

KEPT_S = 300.0
REFUSED_S = 5.0
KEYS_KEPT_MAX = 10_000


class OpenedKeys:
    """`unwrap` returns a data key in the clear and may block; it raises `KeyRefusedError`,
    `KeyUnavailableError`. `now_s` is a monotonic clock. Threads may share it."""

    def __init__(
        self,
        unwrap: Callable[[WrappedKey], bytes],
        *,
        now_s: Callable[[], float],
        kept_s: float = KEPT_S,
        refused_s: float = REFUSED_S,
        token_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._unwrap = unwrap
        self._now_s = now_s
        self._kept_s = kept_s
        self._refused_s = refused_s
        self._token_bytes = token_bytes
        self._seals: dict[WrappedKey, tuple[float, BatchSeal]] = {}
        self._refused: dict[WrappedKey, tuple[float, KeyRefusedError]] = {}
        self._lock = threading.Lock()

    def cached(self, key: WrappedKey) -> BatchSeal | None:
        """Return the seal without blocking; None if the key must be unwrapped. Raises
        `KeyRefusedError`."""
        found = self._seals.get(key)
        if found is not None and self._now_s() < found[0]:
            return found[1]
        refused = self._refused.get(key)
        if refused is not None and self._now_s() < refused[0]:
            raise KeyRefusedError(refused[1].message, remedy=refused[1].remedy)
        return None

    def seal_of(self, key: WrappedKey) -> BatchSeal:
        """May block. Raises `KeyRefusedError`, `KeyUnavailableError`."""
        seal = self.cached(key)
        if seal is not None:
            return seal
        try:
            data_key = self._unwrap(key)
        except KeyRefusedError as error:
            with self._lock:
                self._seals.pop(key, None)
                _make_room(self._refused)
                self._refused[key] = (self._now_s() + self._refused_s, error)
            raise
        return self.keep(key, data_key)

    def keep(self, key: WrappedKey, data_key: bytes) -> BatchSeal:
        """A data key that was made or unwrapped just now."""
        seal = BatchSeal(key.key_id, data_key, token_bytes=self._token_bytes)
        with self._lock:
            self._refused.pop(key, None)
            _make_room(self._seals)
            self._seals[key] = (self._now_s() + self._kept_s, seal)
        return seal


def _make_room(rows: dict[WrappedKey, T]) -> None:
    """Forget the keys that came first, until there is room for another one."""
    while len(rows) >= KEYS_KEPT_MAX:
        del rows[next(iter(rows))]


class TopicSeals:
    """Opens the sealed batches of one topic. `keys` are the topic's data keys by id."""

    def __init__(self, opened: OpenedKeys, topic: str, keys: Mapping[bytes, WrappedKey]) -> None:
        self.topic = topic
        self._opened = opened
        self._keys = keys

    def key_of(self, batch: Buffer, header: BatchHeader) -> WrappedKey:
        """The data key of a sealed batch. Raises `BrokenSealError`."""
        key_id = sealed_by(batch, header)
        key = self._keys.get(key_id)
        if key is None:
            raise BrokenSealError(
                f"the batch at offset {header.base_offset} of topic {self.topic!r} names data key "
                f"{key_id.hex()}, which the topic does not have",
                remedy="restore the object from a copy, and find out who writes to the bucket",
            )
        return key

    def open(self, partition: TopicIdPartition, batch: Buffer, header: BatchHeader) -> OpenedBatch:
        """May block for the key. Raises `KeyRefusedError`, `KeyUnavailableError`,
        `BrokenSealError`."""
        return self.seal_of(batch, header).open(partition, batch, header)

    def opened_now(
        self, partition: TopicIdPartition, batch: Buffer, header: BatchHeader
    ) -> OpenedBatch | WrappedKey:
        """Open the batch as `open` does, but without blocking. Returns the data key if it must be
        unwrapped first."""
        key = self.key_of(batch, header)
        with self._naming_topic():
            seal = self._opened.cached(key)
        return key if seal is None else seal.open(partition, batch, header)

    def seal_of(self, batch: Buffer, header: BatchHeader) -> BatchSeal:
        """The seal of a sealed batch. Raises as `open`."""
        key = self.key_of(batch, header)
        with self._naming_topic():
            return self._opened.seal_of(key)

    @contextmanager
    def _naming_topic(self) -> Iterator[None]:
        try:
            yield
        except KeyRefusedError as error:
            raise KeyRefusedError(
                f"topic {self.topic!r} cannot be decrypted: {error.message}", remedy=error.remedy
            ) from error


class KeyedPartition:
    """The seals of one partition (`PartitionSeals`)."""

    def __init__(self, seals: TopicSeals, partition: TopicIdPartition) -> None:
        self._seals = seals
        self._partition = partition

    def open(self, batch: Buffer, header: BatchHeader) -> OpenedBatch:
        return self._seals.open(self._partition, batch, header)

    def seal_as(self, sealed: Buffer, header: BatchHeader, batch: bytes) -> bytes:
        seal = self._seals.seal_of(sealed, header)
        return bytes(seal.seal(self._partition, batch, read_header(batch)))
