"""Validates produced batches before they are committed: in threads, in the order of each client.

Invariants: batches of one connection keep their order, and at most one thread works for a
connection. The event loop validates only small, uncompressed batches. All decompressed bytes
together stay within `ValidationLimits.bytes_max`. Frames stay in the memory budget until their
batches are settled, so the budget also bounds the batches that wait here.
"""

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from bucketlog.log_format import batch as record_batch
from bucketlog.log_format.batch import (
    BatchHeader,
    BatchTooLargeError,
    Codec,
    CorruptBatchError,
    InvalidBatchError,
    InvalidTimestampError,
    UnsupportedCompressionError,
)
from bucketlog.log_format.compression import MAX_DECOMPRESSED_BYTES, decompressed_bytes_at_most
from bucketlog.log_format.encryption_errors import KeyRefusedError, KeyUnavailableError
from bucketlog.log_format.errors import BucketlogError, InvalidDataError
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.record_check import RecordRules, check_records
from bucketlog.stateless_broker.handlers.recompression import (
    Compression,
    recompress,
)
from bucketlog.stateless_broker.handlers.validation_memory import RecompressedBytes, SharedBytes
from bucketlog.stateless_broker.network.turns import Slices, Turns
from bucketlog.stateless_broker.produce.intake import PendingBatch
from bucketlog.stateless_broker.supervision import Supervisor
from bucketlog.tiered_storage.encryption.batch_seal import BatchSeal

NICENESS = 10
"""Niceness of the validation threads, relative to the broker."""
GROUP_BYTES = 1 << 20
"""Small requests of one connection are validated together, up to this size."""

Verdict: TypeAlias = BatchHeader | BucketlogError | None
"""The header to commit, the reason for a rejection, or None if a defect prevented the check."""
_Seals: TypeAlias = Mapping[tuple[TopicId, str], "BatchSeal | BucketlogError"]


class BatchSealing(Protocol):
    """A source of the seals of encrypted topics (`TopicKeys`)."""

    async def sealing(self, topic_id: TopicId, topic: str, wrapped_by: str) -> BatchSeal:
        """Return the seal for new batches. Raises `KeyRefusedError`, `KeyUnavailableError`."""
        ...

    def note_sealed(self, size_bytes: int) -> None: ...


@dataclass(frozen=True, slots=True)
class ValidationLimits:
    """`bytes_max` bounds all decompressed records in memory, and the recompressed batches of a
    request; `inline_bytes_max` the batches of a request that are validated on the event loop,
    `batch_records_max` a header's record count, `batch_decompressed_bytes_max` the records of a
    batch that is recompressed."""

    threads: int
    bytes_max: int
    inline_bytes_max: int
    batch_records_max: int
    batch_decompressed_bytes_max: int = MAX_DECOMPRESSED_BYTES


class UncheckedBatch(NamedTuple):
    """`rules` are None if the topic requires a check of headers only (`record.validation`).
    `append_time_ms` is set for LogAppendTime. `encrypted_by` names the key-encryption key of an
    encrypted topic; it is empty for all others. `compression` None: the batch keeps its codec."""

    pending: PendingBatch
    rules: RecordRules | None
    zstd_allowed: bool
    append_time_ms: int | None
    encrypted_by: str = ""
    compression: Compression | None = None

    @property
    def sealing(self) -> tuple[TopicId, str]:
        return self.pending.partition.topic_id, self.encrypted_by


@dataclass(frozen=True, slots=True)
class _Waiting:
    batches: Sequence[UncheckedBatch]
    done: Callable[[Sequence[Verdict]], None]

    @property
    def size_bytes(self) -> int:
        return sum(len(batch.pending.data) for batch in self.batches)


class BatchValidation:
    """Outlives epochs: batches validated while an epoch ends are committed in the next epoch.
    `sealing` None: no batch is encrypted."""

    def __init__(
        self,
        limits: ValidationLimits,
        supervisor: Supervisor,
        turns: Turns,
        sealing: BatchSealing | None = None,
    ) -> None:
        self._sealing = sealing
        self._turns = turns
        self._limits = limits
        self._supervisor = supervisor
        self._pool = ThreadPoolExecutor(limits.threads, "validation", _give_way)
        self._slow_pool = ThreadPoolExecutor(limits.threads, "recompression", _give_way)
        """Threads for requests with batches to recompress, so that others do not wait for them."""
        self._decompressed = SharedBytes(limits.bytes_max)
        self._recompressed = RecompressedBytes(limits.bytes_max)
        self._waiting: dict[object, deque[_Waiting]] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(
        self,
        source: object,
        batches: Sequence[UncheckedBatch],
        done: Callable[[Sequence[Verdict]], None],
    ) -> None:
        """Validate `batches`. `done` gets a verdict for each, on the event loop, possibly before
        this call returns. Calls with the same `source`, a connection, are done in order."""
        waiting = self._waiting.get(source)
        if waiting is None and self._is_cheap(batches):
            done(self._verdicts(batches))
            return
        if waiting is None:
            waiting = self._waiting[source] = deque()
            self._idle.clear()
            self._supervisor.spawn(
                self._work(source, waiting),
                "the validation of batches",
                on_failure=lambda _: None,  # only the client gets an error: it may be the cause
            )
        waiting.append(_Waiting(batches, done))

    def accepts_at_once(self, source: object, header: BatchHeader) -> bool:
        """Return whether a batch with valid records and this header needs no further checks, and
        would overtake no earlier batch of the connection `source`."""
        limits = self._limits
        return (
            source not in self._waiting
            and header.record_count <= limits.batch_records_max
            and header.size_bytes <= limits.inline_bytes_max
        )

    async def drained(self) -> None:
        """Wait until no batches are left to validate."""
        await self._idle.wait()

    async def close(self) -> None:
        self._recompressed.close()
        await asyncio.to_thread(self._pool.shutdown)
        await asyncio.to_thread(self._slow_pool.shutdown)

    def _is_cheap(self, batches: Sequence[UncheckedBatch]) -> bool:
        """Return whether validation without a thread is cheaper, as it is for headers only."""
        left = self._limits.inline_bytes_max
        for batch in batches:
            if batch.encrypted_by or batch.compression is not None:
                return False
            if batch.rules is not None:
                left -= len(batch.pending.data)
                if left < 0 or batch.pending.header.codec != Codec.NONE:
                    return False
        return True

    async def _work(self, source: object, waiting: deque[_Waiting]) -> None:
        loop, group = asyncio.get_running_loop(), deque[_Waiting]()
        try:
            while waiting:
                group = _next_group(waiting)
                batches = [batch for each in group for batch in each.batches]
                seals = await self._seals(batches)
                is_slow = any(batch.compression is not None for batch in batches)
                pool = self._slow_pool if is_slow else self._pool
                verdicts = iter(await loop.run_in_executor(pool, self._verdicts, batches, seals))
                if seals and self._sealing is not None:
                    sealed = (len(each.pending.data) for each in batches if each.encrypted_by)
                    self._sealing.note_sealed(sum(sealed))
                slices = Slices(self._turns)
                while group:
                    each = group.popleft()
                    each.done([next(verdicts) for _ in each.batches])
                    await slices.spend(len(each.batches))
        finally:
            del self._waiting[source]
            for each in (*group, *waiting):  # after a defect, or when the broker stops
                each.done([None] * len(each.batches))
            if not self._waiting:
                self._idle.set()

    async def _seals(self, batches: Sequence[UncheckedBatch]) -> _Seals:
        """The seal of each encrypted topic, or why there is none."""
        found: dict[tuple[TopicId, str], BatchSeal | BucketlogError] = {}
        for batch in batches:
            if batch.encrypted_by and batch.sealing not in found and self._sealing is not None:
                topic_id, encrypted_by = batch.sealing
                try:
                    found[batch.sealing] = await self._sealing.sealing(
                        topic_id, batch.pending.topic_name, encrypted_by
                    )
                except (KeyRefusedError, KeyUnavailableError) as error:
                    found[batch.sealing] = error
        return found

    def _verdicts(
        self, batches: Sequence[UncheckedBatch], seals: _Seals = MappingProxyType({})
    ) -> list[Verdict]:
        if any(batch.compression is not None for batch in batches):
            self._recompressed.wait_for_room()
        left, verdicts = self._recompressed.bytes_max, list[Verdict]()
        for batch in batches:
            verdicts.append(self._verdict(batch, seals, left))
            if batch.pending.release is not None:
                left -= len(batch.pending.data)
        return verdicts

    def _verdict(self, batch: UncheckedBatch, seals: _Seals, left: int) -> Verdict:
        """`left`: how many bytes of recompressed batches the request may still have."""
        try:
            header, wanted = self._checked(batch), batch.compression
            if wanted is not None and wanted.codec != header.codec:
                header = self._recompress(batch, wanted, header, left)
            return self._sealed(batch, header, seals) if batch.encrypted_by else header
        except InvalidDataError as error:
            # The traceback's frames would keep decompressed bytes alive, which no bound counts.
            error.__traceback__ = error.__cause__ = error.__context__ = None
            return error

    @staticmethod
    def _sealed(batch: UncheckedBatch, header: BatchHeader, seals: _Seals) -> Verdict:
        """Encrypt the batch. The frame keeps the batch as the client sent it."""
        if not header.record_count:  # of a mirror
            return header
        seal = seals.get(batch.sealing)
        if not isinstance(seal, BatchSeal):
            return seal
        pending = batch.pending
        sealed = memoryview(seal.seal(pending.partition, pending.data, header))
        pending.data = sealed
        return record_batch.read_header(sealed)

    def _checked(self, batch: UncheckedBatch) -> BatchHeader:
        """The header to commit. Sources: Kafka's UnifiedLog (analyzeAndValidateRecords),
        LogValidator, ProduceRequest."""
        data, header = batch.pending.data, batch.pending.header
        if not record_batch.crc_holds(data, header):
            raise CorruptBatchError("the batch's CRC32C does not hold")
        if batch.pending.is_placed:
            record_batch.check_mirrored(header, max_records=self._limits.batch_records_max)
            if header.record_count and batch.rules is not None:
                self._check_records(batch, batch.rules)
            return header
        record_batch.check_produced(header, max_records=self._limits.batch_records_max)
        if header.base_offset:
            raise InvalidBatchError(f"base offset {header.base_offset}: the broker gives offsets")
        if header.codec == Codec.ZSTD and not batch.zstd_allowed:
            raise UnsupportedCompressionError("zstd in a request older than version 7")
        if header.is_transactional != (batch.pending.transaction is not None):
            where = "a transactional batch outside a transaction"
            if not header.is_transactional:
                where = "a batch of a transaction is not transactional"
            raise InvalidBatchError(where)
        if header.attributes & record_batch.LOG_APPEND_TIME:
            raise InvalidTimestampError("producers may not set the timestamp type LogAppendTime")
        if batch.rules is not None:
            largest = self._check_records(batch, batch.rules)
            if batch.append_time_ms is None:
                header = record_batch.set_max_timestamp(data, header, largest)
        if batch.append_time_ms is not None:
            header = record_batch.set_log_append_time(data, header, batch.append_time_ms)
        return header

    def _recompress(
        self, batch: UncheckedBatch, wanted: Compression, header: BatchHeader, left: int
    ) -> BatchHeader:
        """Give the batch its topic's codec. Raises `InvalidDataError`."""
        pending, limits = batch.pending, self._limits
        where = f"{pending.topic_name}-{pending.partition.partition}"
        most = limits.batch_decompressed_bytes_max
        payload = pending.data[record_batch.HEADER_LENGTH : header.size_bytes]
        raw = len(payload)
        if header.codec != Codec.NONE:
            raw = decompressed_bytes_at_most(header.codec, payload, max_bytes=most)
        with self._decompressed.lent(min(2 * raw, limits.bytes_max)):
            found = recompress(pending.data, header, wanted, max_bytes=most, where=where)
        if len(found.data) > left:
            raise BatchTooLargeError(
                f"the batches of a request, recompressed, have more than {limits.bytes_max} bytes"
            )
        pending.data, pending.release = found.data, self._recompressed.hold(len(found.data))
        return found.header

    def _check_records(self, batch: UncheckedBatch, rules: RecordRules) -> int:
        pending, header = batch.pending, batch.pending.header
        where = f"{pending.topic_name}-{pending.partition.partition}"
        payload = pending.data[record_batch.HEADER_LENGTH : header.size_bytes]
        if header.codec == Codec.NONE:
            return check_records(pending.data, header, rules, where)
        needed = decompressed_bytes_at_most(header.codec, payload, max_bytes=rules.max_bytes)
        with self._decompressed.lent(needed):
            return check_records(pending.data, header, rules, where)


def _give_way() -> None:
    """Lower the priority of the calling thread, so that long checks do not delay the event loop if
    there are too few cores. Only on Linux does each thread have its own priority."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        niceness = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(niceness + NICENESS, 19))


def _next_group(waiting: deque[_Waiting]) -> deque[_Waiting]:
    group = deque([waiting.popleft()])
    left = GROUP_BYTES - group[0].size_bytes
    while waiting and waiting[0].size_bytes <= left:
        group.append(waiting.popleft())
        left -= group[-1].size_bytes
    return group
