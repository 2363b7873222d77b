"""A checkpoint's bytes: what is written is read, and nothing else is."""

import struct

import pytest
from crc32c import crc32c

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.compression import compress, decompress
from bucketlog.log_format.errors import BucketlogError, CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import SegmentId, Ticket
from bucketlog.metadata.checkpoint import extended, restored
from bucketlog.metadata.fold import fold
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.checkpoint import (
    HEADER_BYTES,
    decode_checkpoint,
    encode_checkpoint,
    newest_first,
)
from tests.models.histories import RandomHistory
from tests.models.indexes import commit, create, partition, row, segment

HISTORY = RandomHistory(7)
TICKET = Ticket(3, 4)
COVERED = [index for index in HISTORY.segments if index.ticket < TICKET]
CHECKPOINT = extended(None, COVERED, TICKET, HISTORY.covered(TICKET), created_ms=123)
KEY = keys.checkpoint(TICKET)
SOUND = encode_checkpoint(CHECKPOINT)


def with_body(body: bytes, *, length: int | None = None) -> bytes:
    """Both checksums hold."""
    stored = compress(Codec.ZSTD, body)
    header = bytearray(SOUND[: HEADER_BYTES - 4])
    struct.pack_into(">Q", header, 44, len(body) if length is None else length)
    struct.pack_into(">I", header, 56, crc32c(stored))
    return bytes(header) + struct.pack(">I", crc32c(bytes(header))) + stored


def sound_body() -> bytes:
    return bytes(decompress(Codec.ZSTD, SOUND[HEADER_BYTES:]))


def test_what_is_written_is_read() -> None:
    assert CHECKPOINT.segments == len(COVERED) > 20
    assert decode_checkpoint(KEY, SOUND) == CHECKPOINT
    assert decode_checkpoint(KEY, with_body(sound_body())) == CHECKPOINT


def test_of_an_empty_log() -> None:
    empty = extended(None, [], Ticket(1, 0), [], created_ms=1)
    read = decode_checkpoint(keys.checkpoint(Ticket(1, 0)), encode_checkpoint(empty))
    assert read == empty
    assert restored(read).topics == {}


def test_every_flipped_byte_is_found() -> None:
    for position in range(len(SOUND)):
        for mask in (0x01, 0xFF):
            damaged = bytearray(SOUND)
            damaged[position] ^= mask
            with pytest.raises(CorruptObjectError) as caught:
                decode_checkpoint(KEY, bytes(damaged))
            assert caught.value.key == KEY
            assert caught.value.position == (0 if position < HEADER_BYTES else HEADER_BYTES)


@pytest.mark.parametrize("length", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, len(SOUND) - 1])
def test_every_truncation_is_found(length: int) -> None:
    with pytest.raises(CorruptObjectError):
        decode_checkpoint(KEY, SOUND[:length])


def test_bytes_after_its_end_are_found() -> None:
    with pytest.raises(CorruptObjectError):
        decode_checkpoint(KEY, SOUND + b"\x00")


def test_it_is_believed_under_its_own_key_only() -> None:
    with pytest.raises(CorruptObjectError, match="it says that it is that of 3/4"):
        decode_checkpoint(keys.checkpoint(Ticket(3, 5)), SOUND)


@pytest.mark.parametrize("version", [1, 11])
def test_another_version_is_no_damage(version: int) -> None:
    header = bytearray(SOUND[: HEADER_BYTES - 4])
    struct.pack_into(">H", header, 8, version)
    data = bytes(header) + struct.pack(">I", crc32c(bytes(header))) + SOUND[HEADER_BYTES:]
    with pytest.raises(InvalidDataError, match=f"of version {version}; .* versions 2 to 10"):
        decode_checkpoint(KEY, data)


@pytest.mark.parametrize("length", [0, 1, 10_000, 1 << 40])
def test_its_length_is_held_to(length: int) -> None:
    with pytest.raises(CorruptObjectError):
        decode_checkpoint(KEY, with_body(sound_body(), length=length))


def test_counts_are_held_against_the_bytes() -> None:
    """Each field of the body's head, made larger and smaller, under checksums that hold."""
    body = sound_body()
    for at, kind in ((0, ">I"), (4, ">I"), (8, ">I"), (12, ">Q"), (20, ">Q")):
        (value,) = struct.unpack_from(kind, body, at)
        for wrong in (value + 1, value - 1, 2**31):
            damaged = bytearray(body)
            struct.pack_into(kind, damaged, at, wrong)
            with pytest.raises(BucketlogError):
                restored(decode_checkpoint(KEY, with_body(bytes(damaged))))


def test_no_damage_under_sound_checksums_passes_for_another_error() -> None:
    body = sound_body()
    refused = 0
    for position in range(0, len(body), 3):
        damaged = bytearray(body)
        damaged[position] ^= 0x80
        try:
            restored(decode_checkpoint(KEY, with_body(bytes(damaged))))
        except BucketlogError:
            refused += 1
    assert refused > 20


def test_the_newest_comes_first_whatever_the_order_of_the_listing() -> None:
    tickets = [Ticket(2, 3), Ticket(10, 0), Ticket(2, 11)]
    listed = [ObjectInfo(keys.checkpoint(ticket), 1, 0) for ticket in tickets]
    assert [info.key for info in newest_first(listed)] == [
        keys.checkpoint(ticket) for ticket in (Ticket(10, 0), Ticket(2, 11), Ticket(2, 3))
    ]
    with pytest.raises(InvalidDataError, match="unexpected key"):
        newest_first([ObjectInfo("checkpoints/latest", 1, 0)])


def test_it_covers_what_is_before_its_positions() -> None:
    (open_writer,) = [r for r in CHECKPOINT.writers if not r.closed][:1]
    assert CHECKPOINT.covers(SegmentId(open_writer.writer, open_writer.end - 1))
    assert not CHECKPOINT.covers(SegmentId(open_writer.writer, open_writer.end))


def test_a_segment_below_the_last_checkpoint_is_refused() -> None:
    late = segment(0, {partition(1): [row(0)]}, create(1), commit("g", {partition(1): 1}))
    with pytest.raises(InvalidDataError, match="is not between"):
        extended(CHECKPOINT, [late], Ticket(4, 0), [], created_ms=1)


def test_two_segments_with_one_ticket_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="is not between"):
        extended(None, [COVERED[0], COVERED[0]], TICKET, HISTORY.covered(TICKET), created_ms=1)


def test_deleted_topics_leave_no_rows() -> None:
    state = fold(COVERED)
    assert CHECKPOINT.partitions.keys() <= state.partitions.keys()
    had = {part.partition for index in COVERED for part in index.partitions}
    assert had - CHECKPOINT.partitions.keys()
