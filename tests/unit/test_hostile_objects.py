"""Checkpoints, manifests and floors that announce or expand to too much: they are refused before
memory is allocated, or are read with memory in proportion to their bytes."""

import logging
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from crc32c import crc32c

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.checkpoint import (
    CHECKPOINT_VERSION,
    BatchColumns,
    Checkpoint,
    CoveredPartition,
)
from bucketlog.log_format.compression import compress, decompress
from bucketlog.log_format.errors import BucketlogError, CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import (
    Ticket,
    TierObject,
    TopicId,
    TopicIdPartition,
    WriterId,
)
from bucketlog.metadata.checkpoint import extended
from bucketlog.metadata.checkpoint_state import decode_state
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.epochs.activation import Claim, EpochStarter
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.checkpoint import (
    CHECKPOINT_BYTES_MAX,
    check_stored_bytes,
    decode_checkpoint,
    encode_checkpoint,
)
from bucketlog.tiered_storage.floors import decode_floor
from bucketlog.tiered_storage.log_cut_reading import read_checkpoint
from bucketlog.tiered_storage.manifest import JSON_BYTES_MAX, MANIFEST_BYTES_MAX, decode_manifest
from tests.models.histories import RandomHistory
from tests.rigs.traced_memory import MIB, TracedMemory

HISTORY = RandomHistory(7)
TICKET = Ticket(3, 4)
KEY = keys.checkpoint(TICKET)
COVERED = [index for index in HISTORY.segments if index.ticket < TICKET]
CHECKPOINT = extended(None, COVERED, TICKET, HISTORY.covered(TICKET), created_ms=123)
THERE = TierObject(TopicIdPartition(TopicId(bytes(15) + b"\1"), 0), 0, "x", True)
FLOOR_KEY = keys.floor(Ticket(1, 5))
W = WriterId("a" * 32)


def zstd_of_zeros(blocks: int, block_bytes: int = 128 * 1024) -> bytes:
    """Blocks of four bytes each."""
    frame = struct.pack("<IBB", 0xFD2FB528, 0, 0x58)
    for number in range(blocks):
        head = block_bytes << 3 | 1 << 1 | (number == blocks - 1)
        frame += struct.pack("<I", head)[:3] + b"\0"
    return frame


def checkpoint_of(stored: bytes, length: int, ticket: Ticket = TICKET) -> bytes:
    header = struct.pack(
        ">8sHHQQqQQ4xI", b"bktlogcp", CHECKPOINT_VERSION, 0, *ticket, 1, 0, length, crc32c(stored)
    )
    return header + struct.pack(">I", crc32c(header)) + stored


def checkpoint_with(body: bytes) -> bytes:
    return checkpoint_of(compress(Codec.ZSTD, body), len(body))


def test_the_frames_made_here_are_zstd() -> None:
    assert decompress(Codec.ZSTD, zstd_of_zeros(3, 1000)) == bytes(3000)


@pytest.mark.parametrize("block_bytes", [128 * 1024 + 1, 0x1FFFFF])
def test_a_zstd_block_holds_at_most_what_the_format_allows(
    block_bytes: int, traced_memory: TracedMemory
) -> None:
    data = checkpoint_of(zstd_of_zeros(1_500, block_bytes), 1 << 40)
    assert len(data) < 6_100
    for bytes_max in (None, 1 << 41):
        with traced_memory.below(MIB), pytest.raises(CorruptObjectError):
            decode_checkpoint(KEY, data, bytes_max=bytes_max)


def test_a_body_beyond_the_limit_is_not_unpacked(traced_memory: TracedMemory) -> None:
    length = 1_500 * 128 * 1024
    data = checkpoint_of(zstd_of_zeros(1_500), length)
    with (
        traced_memory.below(MIB),
        pytest.raises(CorruptObjectError, match="more than the limit") as caught,
    ):
        decode_checkpoint(KEY, data, bytes_max=length - 1)
    assert caught.value.key == KEY
    assert "BUCKETLOG_CHECKPOINT_BYTES_MAX" in str(caught.value.remedy)
    with traced_memory.below(MIB), pytest.raises(CorruptObjectError, match="more than the limit"):
        decode_checkpoint(KEY, checkpoint_of(zstd_of_zeros(9_999), CHECKPOINT_BYTES_MAX + 1))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(CHECKPOINT, segments=2**64 - 1),
        replace(CHECKPOINT, writers=(CHECKPOINT.writers[0]._replace(end=2**63),)),
        replace(CHECKPOINT, writers=(CHECKPOINT.writers[0]._replace(epoch=2**64 - 1),)),
    ],
)
def test_numbers_that_would_not_fit_the_next_checkpoint(wrong: Checkpoint) -> None:
    with pytest.raises(CorruptObjectError, match=r"impossible|not listed"):
        decode_checkpoint(KEY, encode_checkpoint(wrong))


@pytest.mark.parametrize("column", [0, 1, -2, -1])
def test_negative_numbers_of_batches(column: int) -> None:
    partition, part = next(each for each in CHECKPOINT.partitions.items() if each[1].batches)
    columns = [each[:] for each in part.batches.columns]
    columns[column][0] = -1
    wrong = CoveredPartition(part.high_watermark, BatchColumns(tuple(columns)))
    data = encode_checkpoint(replace(CHECKPOINT, partitions={partition: wrong}))
    with pytest.raises(CorruptObjectError, match="negative"):
        decode_checkpoint(KEY, data)


def test_batches_of_partitions_that_the_state_lacks() -> None:
    part = next(iter(CHECKPOINT.partitions.values()))
    wrong = replace(CHECKPOINT, partitions={THERE.partition: part})
    with pytest.raises(InvalidDataError, match=r"state lacks.*delete it"):
        View.of([], decode_checkpoint(KEY, encode_checkpoint(wrong)))


def test_a_claim_beyond_the_last_epoch_is_not_written() -> None:
    """Every reader would refuse the key, even after the hostile claim before it is deleted."""
    with pytest.raises(InvalidDataError, match=r"claims.*no broker wrote"):
        keys.epoch_claim(keys.EPOCH_MAX + 1)


async def test_a_huge_claim_is_read_in_part(
    caplog: pytest.LogCaptureFixture, traced_memory: TracedMemory
) -> None:
    bucket = MemoryBucket()
    content = b'{"incarnation":"x","claimed_ms":' + b"9" * 4000 + b"}"
    assert bucket.create(keys.epoch_claim(1), [content])
    assert bucket.create(keys.epoch_claim(2), [content + bytes(8 * MIB)])
    threaded = ThreadedBucket(bucket)
    starter = EpochStarter(
        bucket=threaded,
        committed=CommittedLog(threaded, footer_reads_in_flight=1),
        sequencer=cast(Any, None),
        incarnation="me",
        now_ms=lambda: 1,
        new_id=lambda: "",
    )
    with traced_memory.below(MIB):
        assert await starter.highest_claim() == Claim(2, "")
    bucket.delete([keys.epoch_claim(2)])
    assert await starter.highest_claim() == Claim(1, "")
    assert "is passed over" in caplog.text


def test_a_checkpoint_beyond_the_limit_is_neither_fetched_nor_written() -> None:
    check_stored_bytes(ObjectInfo(KEY, 1_000, 0), 1_000)
    with pytest.raises(CorruptObjectError, match=r"it has 1001 bytes, more than the limit of 1000"):
        check_stored_bytes(ObjectInfo(KEY, 1_001, 0), 1_000)
    size_bytes = struct.unpack_from(">Q", encode_checkpoint(CHECKPOINT), 44)[0]
    assert encode_checkpoint(CHECKPOINT, bytes_max=size_bytes)
    with pytest.raises(InvalidDataError, match="more than the limit") as caught:
        encode_checkpoint(CHECKPOINT, bytes_max=size_bytes - 1)
    assert "BUCKETLOG_CHECKPOINT_BYTES_MAX" in str(caught.value.remedy)


def test_readers_fall_back_to_the_checkpoint_before(caplog: pytest.LogCaptureFixture) -> None:
    class Swollen(MemoryBucket):
        def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
            for info in super().list(prefix, start_after=start_after):
                is_newest = info.key == keys.checkpoint(Ticket(9, 0))
                yield info._replace(size_bytes=1 << 50) if is_newest else info

    bucket = Swollen()
    assert bucket.create(KEY, [encode_checkpoint(CHECKPOINT)])
    large = checkpoint_of(zstd_of_zeros(2), 1 << 40, Ticket(8, 0))
    assert bucket.create(keys.checkpoint(Ticket(8, 0)), [large])
    assert bucket.create(keys.checkpoint(Ticket(9, 0)), [b""])
    with caplog.at_level(logging.ERROR):
        assert read_checkpoint(bucket) == CHECKPOINT
    assert caplog.text.count("more than the limit") == 2


async def test_brokers_fall_back_to_the_checkpoint_before(caplog: pytest.LogCaptureFixture) -> None:
    bucket = MemoryBucket()
    assert bucket.create(KEY, [encode_checkpoint(CHECKPOINT)])
    size_bytes = struct.unpack_from(">Q", encode_checkpoint(CHECKPOINT), 44)[0]
    large = [
        checkpoint_of(zstd_of_zeros(1, size_bytes + 1), size_bytes + 1, Ticket(8, 0)),
        bytes(size_bytes + 1),
    ]
    for epoch, data in enumerate(large, 8):
        assert bucket.create(keys.checkpoint(Ticket(epoch, 0)), [data])
    for bytes_max, expected in ((size_bytes, CHECKPOINT), (size_bytes - 1, None)):
        committed = CommittedLog(
            ThreadedBucket(bucket), footer_reads_in_flight=1, checkpoint_bytes_max=bytes_max
        )
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            assert await committed.checkpoint() == expected
        assert caplog.text.count("more than the limit") == 2 + (expected is None)


HEADS = [(2**32 - 1, 0, 0, 0, 0), (0, 2**32 - 1, 0, 0, 0), (0, 0, 2**32 - 1, 0, 0)]
HEADS += [(0, 0, 0, 2**64 - 1, 0), (0, 0, 0, 0, 2**64 - 1), (0, 0, 0, 2**62, 2**62)]


@pytest.mark.parametrize("head", HEADS)
def test_counts_that_the_body_has_no_bytes_for(
    head: tuple[int, ...], traced_memory: TracedMemory
) -> None:
    data = checkpoint_with(struct.pack(">IIIQQ", *head) + bytes(1_000))
    with (
        traced_memory.below(MIB),
        pytest.raises(CorruptObjectError, match=r"cut short|do not agree"),
    ):
        decode_checkpoint(KEY, data)


def state_head(topics: int = 0, produced: int = 0, groups: int = 0, offsets: int = 0) -> bytes:
    head = struct.pack(">IIIIIQQ", topics, produced, groups, offsets, 0, 0, 0)
    return head + struct.pack(">qqIqq", 0, 0, 0, 0, 0)


def text(value: str) -> bytes:
    return struct.pack(">I", len(value)) + value.encode()


def one_topic(partitions: int, configs: int = 0) -> bytes:
    head = struct.pack(">16sII", bytes(16), partitions, configs) + text("t")
    head += b"".join(text(f"{at:x}") + text("") for at in range(configs))
    return head + struct.pack(">qqqqI", 0, 0, 0, -1, 0) * partitions


STATES: dict[str, Callable[[int], bytes]] = {
    "topics": lambda n: (
        state_head(topics=n)
        + b"".join(
            struct.pack(">16sII", at.to_bytes(16), 0, 0) + text(f"{at:x}") for at in range(n)
        )
    ),
    "partitions": lambda n: state_head(topics=1) + one_topic(n),
    "configs": lambda n: state_head(topics=1) + one_topic(0, n),
    "producers": lambda n: (
        state_head(topics=1, produced=n)
        + one_topic(1)
        + b"".join(struct.pack(">IIqhiiqq", 0, 0, 1 << 40 | at, 0, 9, 9, at, at) for at in range(n))
    ),
    "groups": lambda n: (
        state_head(topics=1, groups=n, offsets=n)
        + one_topic(1)
        + b"".join(
            text(f"{at:x}") + struct.pack(">IIIqiqBq", 1, 0, 0, at, 0, at, 1, at) + text("")
            for at in range(n)
        )
    ),
}


@pytest.mark.parametrize("what", STATES)
def test_memory_is_in_proportion_to_the_state(what: str, traced_memory: TracedMemory) -> None:
    data = STATES[what](4_000)
    with traced_memory.below(20 * len(data)):
        decode_state(data)


@pytest.mark.parametrize("at", range(0, 20, 4))
def test_counts_that_the_state_has_no_bytes_for(at: int, traced_memory: TracedMemory) -> None:
    data = bytearray(state_head() + bytes(1_000))
    struct.pack_into(">I", data, at, 2**32 - 1)
    with traced_memory.below(MIB), pytest.raises(InvalidDataError):
        decode_state(bytes(data))


@pytest.mark.parametrize("count", [0, 2**32 - 1])
def test_a_group_has_as_many_offsets_as_it_says(count: int, traced_memory: TracedMemory) -> None:
    data = state_head(groups=1) + text("g") + struct.pack(">I", count)
    with traced_memory.below(MIB), pytest.raises(InvalidDataError):
        decode_state(data)


def test_partitions_without_batches_take_little(traced_memory: TracedMemory) -> None:
    topic = TopicId(bytes(16))
    partitions = {
        TopicIdPartition(topic, number): CoveredPartition(1, BatchColumns())
        for number in range(10_000)
    }
    data = encode_checkpoint(replace(CHECKPOINT, writers=(), partitions=partitions))
    assert len(decode_checkpoint(KEY, data).partitions) == 10_000
    with traced_memory.below(25 * 24 * 10_000):
        decode_checkpoint(KEY, data)


def manifest_of(content: bytes) -> bytes:
    stored = compress(Codec.ZSTD, content)
    header = struct.pack(">8sHHII", b"bktlogmf", 1, 0, len(content), crc32c(stored))
    return header + struct.pack(">I", crc32c(header)) + stored


JSONS = {
    "lists": b"[" + b"[]," * 1_300_000 + b"[]]",
    "depth": b"[" * 3_900_000,
    "numbers": b"[" + b"7," * 1_900_000 + b"7]",
    "objects": b"[" + b"{}," * 1_300_000 + b"{}]",
    "keys": b"{" + b'"":0,' * 700_000 + b'"":0}',
}


@pytest.mark.parametrize("what", JSONS)
def test_json_of_many_values_is_not_parsed(what: str, traced_memory: TracedMemory) -> None:
    content = JSONS[what]
    assert len(content) <= JSON_BYTES_MAX
    with (
        traced_memory.below(4 * len(content)),
        pytest.raises(CorruptObjectError, match="too many values"),
    ):
        decode_manifest(THERE, manifest_of(content))
    with (
        traced_memory.below(4 * len(content)),
        pytest.raises(CorruptObjectError, match="too many values"),
    ):
        decode_floor(FLOOR_KEY, content)


def test_a_manifest_beyond_its_limit_is_refused(traced_memory: TracedMemory) -> None:
    data = manifest_of(b"[]") + bytes(MANIFEST_BYTES_MAX)
    with (
        traced_memory.below(MIB),
        pytest.raises(CorruptObjectError, match="too many for a manifest"),
    ):
        decode_manifest(THERE, data)


def test_all_of_these_errors_are_errors_of_bucketlog() -> None:
    assert issubclass(CorruptObjectError, BucketlogError)
