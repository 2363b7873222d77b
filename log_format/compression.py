"""The codecs of record batches, bounded before memory is allocated.

Invariant: `decompress` never allocates more than `max_bytes` (plus what a decoder's window needs),
whatever the bytes claim. zstd and lz4 frames are walked block by block first, which bounds their
content without trusting a content size (most Kafka producers write none); snappy says its size,
and is held to it; gzip is inflated a bounded piece at a time.

Readers accept several consecutive frames or members as one payload. Brokers accept only a single
frame (`single_frame`): librdkafka reads no second gzip member or lz4 frame, kafka-python reads no
second frame at all, and no producer writes one. Java's client reads no lz4 frame of linked blocks.

Sources: RFC 1952 (gzip), RFC 8878 (zstd), the LZ4 frame format 1.6, snappy's format description,
and the framing of Java's SnappyOutputStream ("xerial"), which Java, Go and Python producers write
and which librdkafka leaves out.
"""

import ctypes
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import TypeAlias

import cramjam

from bucketlog.log_format.batch import Codec, InvalidBatchError, codec_name
from bucketlog.log_format.model import Buffer

MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024
"""Default bound of one batch's records. Kafka's clients have none."""

_GZIP_WINDOW_BITS = 31
_DEFLATE_MAX_RATIO = 1032
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_LZ4_MAGIC = 0x184D2204
_ZSTD_MAGIC = 0xFD2FB528
_SKIPPABLE_MAGIC = 0x184D2A50
_SKIPPABLE_MASK = 0xFFFFFFF0
_ZSTD_MAX_BLOCK_BYTES = 128 * 1024
_LZ4_MAX_RATIO = 255
_KAFKA_LZ4_DEFAULT = 9
"""Kafka's default level, which is the fast compressor, not the ninth level of the slow one."""
_LZ4_FAST = 0
"""The fast compressor, by the levels of the LZ4 library. Cramjam's own default is a slow one."""
_LZ4_UNREADABLE_FLAGS = 0x03
"""Flags of a dictionary and of a reserved bit; Java's client reads neither."""
_LZ4_INDEPENDENT_BLOCKS = 0x20
_LZ4_RESERVED_DESCRIPTOR = 0x8F
_BLOCKS_MIN = 1024
_BLOCK_BYTES_MIN = 64
"""A single frame has at most 1024 blocks, plus one per 64 bytes, as Python walks the blocks."""


_FrameWalk: TypeAlias = Callable[[memoryview, int, bool], tuple[int, int]]
"""Takes the data, the frame's start and `single_frame`; gives its end and its most bytes."""


class _FrameError(Exception):
    """A frame's structure does not hold; `decompress` names codec and remedy."""


def decompress(
    codec: int,
    payload: Buffer,
    *,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    single_frame: bool = False,
) -> Buffer:
    """The records of a batch, from the bytes after its header.

    Without a codec the payload itself comes back, borrowed. Raises `InvalidBatchError` where the
    codec is unknown, the bytes do not decompress, or would give more than `max_bytes` bytes; with
    `single_frame`, also if a Kafka client could not read the bytes.
    """
    data = memoryview(payload)
    if codec == Codec.NONE or not len(data):
        return payload
    try:
        match codec:
            case Codec.GZIP:
                return _gunzip(data, max_bytes, single_frame)
            case Codec.SNAPPY:
                return _unsnappy(data, max_bytes, single_frame)
            case Codec.LZ4:
                bound = _frames_bound(data, _lz4_frame, single_frame)
                return _inflate(cramjam.lz4.decompress_into, data, bound, max_bytes)
            case Codec.ZSTD:
                bound = _frames_bound(data, _zstd_frame, single_frame)
                return _inflate(cramjam.zstd.decompress_into, data, bound, max_bytes)
            case _:
                raise _FrameError("unknown codec")
    except (_FrameError, struct.error, zlib.error, cramjam.DecompressionError) as error:
        raise _undecodable(codec, error) from error


def decompressed_bytes_at_most(
    codec: int, payload: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> int:
    """The upper bound of the memory for the result of `decompress` of a single frame; 0 without a
    codec. Raises `InvalidBatchError` if the frame's structure is invalid."""
    data = memoryview(payload)
    try:
        match codec:
            case Codec.NONE:
                return 0
            case Codec.SNAPPY:
                bound = _snappy_bound(data)
            case Codec.LZ4:
                bound = _frames_bound(data, _lz4_frame, True)
            case Codec.ZSTD:
                bound = _frames_bound(data, _zstd_frame, True)
            case _:
                bound = len(data) * _DEFLATE_MAX_RATIO
    except (_FrameError, struct.error, cramjam.DecompressionError) as error:
        raise _undecodable(codec, error) from error
    return min(bound, max_bytes)


def _undecodable(codec: int, error: Exception) -> InvalidBatchError:
    return InvalidBatchError(f"{codec_name(codec)} records do not decompress: {error}")


def compress(codec: int, payload: Buffer, level: int | None = None) -> bytes:
    """Compress as Kafka's Java producer frames it. `level`: as Kafka numbers them, for gzip, lz4
    and zstd; None for the codec's default."""
    match codec:
        case Codec.NONE:
            return bytes(payload)
        case Codec.GZIP:
            return bytes(cramjam.gzip.compress(payload, level=None if level == -1 else level))
        case Codec.SNAPPY:
            return _xerial(memoryview(payload))
        case Codec.LZ4:
            lz4_level = _LZ4_FAST if level in (None, _KAFKA_LZ4_DEFAULT) else level
            compressor = cramjam.lz4.Compressor(
                level=lz4_level, content_checksum=False, block_linked=False
            )
            compressor.compress(bytes(payload))
            return bytes(compressor.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(payload, level=level))
        case _:
            raise InvalidBatchError(f"unknown compression codec {codec}")


def _too_large(max_bytes: int) -> InvalidBatchError:
    return InvalidBatchError(
        f"the records of a batch decompress to more than {max_bytes} bytes",
        remedy="raise max_decompressed_bytes if the batch is needed",
    )


_unfilled_bytearray = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_char_p, ctypes.c_ssize_t)(
    ("PyByteArray_FromStringAndSize", ctypes.pythonapi)
)


def unfilled(size_bytes: int) -> bytearray:
    """A bytearray for a decompressor to fill. `bytearray(size)` would write zeros first and hold
    the interpreter's lock meanwhile: a tenth of a second for 127 MiB, in which no other thread
    runs. Source: PyByteArray_FromStringAndSize, which copies nothing from NULL."""
    output: bytearray = _unfilled_bytearray(None, size_bytes)
    return output


def _inflate(
    into: Callable[[memoryview, bytearray], int], data: memoryview, bound: int, most: int
) -> Buffer:
    """`bound` is what the blocks may hold at most; more than `most` is never allocated, and what
    was too much is given back: a small batch does not continue holding a block's worth."""
    output = unfilled(min(bound, most))
    try:
        length = into(data, output)
    except cramjam.DecompressionError:
        if bound > most:
            raise _too_large(most) from None
        raise
    del output[length:]
    return output


def _gunzip(data: memoryview, max_bytes: int, single_frame: bool) -> bytes:
    pieces: list[bytes] = []
    left = max_bytes
    rest: Buffer = data
    while rest:
        if pieces and single_frame:
            raise _FrameError("bytes follow the first gzip member")
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        piece = member.decompress(rest, left + 1)
        if len(piece) > left:
            raise _too_large(max_bytes)
        if not member.eof:
            raise _FrameError("the gzip stream is cut short")
        left -= len(piece)
        pieces.append(piece)
        rest = member.unused_data
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _unsnappy(data: memoryview, max_bytes: int, single_frame: bool) -> Buffer:
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _unsnappy_block(data, max_bytes, max_bytes)
    pieces: list[Buffer] = []
    left = max_bytes
    for block in _snappy_blocks(data, single_frame):
        piece = _unsnappy_block(block, left, max_bytes)
        left -= len(piece)
        pieces.append(piece)
    return b"".join(pieces)


def _snappy_blocks(data: memoryview, single_frame: bool) -> Iterator[memoryview]:
    """The compressed blocks in Java's framing."""
    if single_frame and data[: len(_XERIAL_HEADER)] != _XERIAL_HEADER:
        raise _FrameError("a stream header of another version")
    at = blocks = 0
    while at < len(data):
        if data[at : at + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            if at and single_frame:
                raise _FrameError("a second stream follows")
            at += len(_XERIAL_HEADER)
            continue
        (length,) = struct.unpack_from(">i", data, at)
        at += 4
        if not 0 < length <= len(data) - at:
            raise _FrameError(f"a block of {length} bytes does not fit")
        blocks += 1
        _check_blocks(blocks, data, single_frame)
        yield data[at : at + length]
        at += length
    if at > len(data):
        raise _FrameError("the stream header is cut short")


def _snappy_bound(data: memoryview) -> int:
    """The bytes that snappy's blocks claim to hold; twice as many if blocks must be joined."""
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return int(cramjam.snappy.decompress_raw_len(data)) if len(data) else 0
    return 2 * sum(cramjam.snappy.decompress_raw_len(block) for block in _snappy_blocks(data, True))


def _check_blocks(blocks: int, data: memoryview, single_frame: bool) -> None:
    if single_frame and blocks > _BLOCKS_MIN + len(data) // _BLOCK_BYTES_MIN:
        raise _FrameError(f"more than {blocks - 1} blocks in {len(data)} bytes")


def _unsnappy_block(block: memoryview, left: int, max_bytes: int) -> bytearray:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > left:
        raise _too_large(max_bytes)
    output = unfilled(size)
    del output[cramjam.snappy.decompress_raw_into(block, output) :]
    return output


def _xerial(data: memoryview) -> bytes:
    pieces = [_XERIAL_HEADER]
    for at in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + _XERIAL_BLOCK_BYTES]))
        pieces += (struct.pack(">i", len(block)), block)
    return b"".join(pieces)


def _skip_frame(data: memoryview, at: int) -> int | None:
    """Where the skippable frame at `at` ends; None where another frame is there."""
    (magic,) = struct.unpack_from("<I", data, at)
    if magic & _SKIPPABLE_MASK != _SKIPPABLE_MAGIC:
        return None
    (length,) = struct.unpack_from("<I", data, at + 4)
    return at + 8 + int(length)


def _frames_bound(data: memoryview, frame: _FrameWalk, single_frame: bool) -> int:
    """The most bytes that the frames in `data` can hold; `frame` walks one of them."""
    bound = at = 0
    while at < len(data):
        end = None if single_frame else _skip_frame(data, at)
        if end is None:
            end, more = frame(data, at, single_frame)
            bound += more
        at = end
        if single_frame:
            break
    _check_end(at, data)
    return bound


def _check_end(at: int, data: memoryview) -> None:
    if at < len(data):
        raise _FrameError("bytes follow the last frame")
    if at > len(data):
        raise _FrameError("the last frame is cut short")


def _lz4_frame(data: memoryview, at: int, single_frame: bool) -> tuple[int, int]:
    magic, flags, block_descriptor = struct.unpack_from("<IBB", data, at)
    block_code = block_descriptor >> 4 & 7
    if magic != _LZ4_MAGIC or flags >> 6 != 1 or block_code < 4:
        raise _FrameError("not an lz4 frame")
    if single_frame and (
        flags & _LZ4_UNREADABLE_FLAGS
        or not flags & _LZ4_INDEPENDENT_BLOCKS
        or block_descriptor & _LZ4_RESERVED_DESCRIPTOR
    ):
        raise _FrameError("linked blocks, a dictionary or reserved bits")
    max_block = 1 << (8 + 2 * block_code)
    at += 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    checksum = 4 if flags & 0x10 else 0
    bound = blocks = 0
    while True:
        blocks += 1
        _check_blocks(blocks, data, single_frame)
        (word,) = struct.unpack_from("<I", data, at)
        at += 4
        if not word:
            return at + (4 if flags & 0x04 else 0), bound
        length = word & 0x7FFFFFFF
        if length > max_block or length > len(data) - at:
            raise _FrameError(f"a block of {length} bytes does not fit")
        bound += length if word >> 31 else min(max_block, length * _LZ4_MAX_RATIO)
        at += length + checksum


def _zstd_frame(data: memoryview, at: int, single_frame: bool) -> tuple[int, int]:
    magic, descriptor = struct.unpack_from("<IB", data, at)
    if magic != _ZSTD_MAGIC:
        raise _FrameError("not a zstd frame")
    single_segment = descriptor >> 5 & 1
    content_size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    at += 5 + (not single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size_bytes
    bound = blocks = 0
    while True:
        blocks += 1
        _check_blocks(blocks, data, single_frame)
        low, high = struct.unpack_from("<HB", data, at)
        at += 3
        kind = low >> 1 & 3
        length = (high << 16 | low) >> 3
        if length > _ZSTD_MAX_BLOCK_BYTES:
            raise _FrameError(f"a block of {length} bytes, more than {_ZSTD_MAX_BLOCK_BYTES}")
        match kind:
            case 0:
                bound += length
                at += length
            case 1:
                bound += length
                at += 1
            case 2:
                bound += _ZSTD_MAX_BLOCK_BYTES
                at += length
            case _:
                raise _FrameError("a block of a reserved kind")
        if low & 1:
            return at + (4 if descriptor & 4 else 0), bound
