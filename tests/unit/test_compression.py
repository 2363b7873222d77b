"""Every framing that real producers write is read, and nothing inflates past its bound."""

import gzip
import itertools
import resource
import struct
import sys
import time
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
import pytest
import snappy
import zstandard
from aiokafka import codec as aiokafka_codec

from bucketlog.log_format.batch import Codec, InvalidBatchError, codec_name
from bucketlog.log_format.compression import (
    MAX_DECOMPRESSED_BYTES,
    compress,
    decompress,
    unfilled,
)

DATA = b"".join(b"record %d of a batch; " % number for number in range(20_000))
LZ4_OPTIONS = list(
    itertools.product(
        (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB),
        (False, True),
        (False, True),
        (False, True),
        (False, True),
    )
)


def zstd_of_unknown_size(data: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    return compressor.compress(data) + compressor.flush()


def java_snappy(data: bytes, block_bytes: int) -> bytes:
    """Java's SnappyOutputStream: magic, version 1, compatible with 1, then length and block."""
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for at in range(0, len(data), block_bytes):
        block = snappy.compress(data[at : at + block_bytes])
        assert isinstance(block, bytes)
        out += struct.pack(">i", len(block)) + block
    return out


FRAMINGS = {
    "gzip": (Codec.GZIP, gzip.compress(DATA, 1)),
    "gzip members": (Codec.GZIP, gzip.compress(DATA[:1000]) + gzip.compress(DATA[1000:])),
    "snappy, as librdkafka writes it": (Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(DATA))),
    "snappy, as Java writes it": (Codec.SNAPPY, java_snappy(DATA, 32 * 1024)),
    "snappy, one large xerial block": (Codec.SNAPPY, java_snappy(DATA, 1 << 20)),
    "snappy streams": (Codec.SNAPPY, java_snappy(DATA[:999], 500) + java_snappy(DATA[999:], 9999)),
    "snappy, aiokafka": (Codec.SNAPPY, aiokafka_codec.snappy_encode(DATA)),
    "lz4, aiokafka": (Codec.LZ4, aiokafka_codec.lz4_encode(DATA)),
    "lz4 frames": (Codec.LZ4, lz4.frame.compress(DATA[:77]) + lz4.frame.compress(DATA[77:])),
    "zstd, content size": (Codec.ZSTD, zstandard.ZstdCompressor().compress(DATA)),
    "zstd, no content size": (Codec.ZSTD, zstd_of_unknown_size(DATA)),
    "zstd frames": (
        Codec.ZSTD,
        zstd_of_unknown_size(DATA[:5]) + zstandard.ZstdCompressor().compress(DATA[5:]),
    ),
    "zstd with a skippable frame": (
        Codec.ZSTD,
        b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc" + zstd_of_unknown_size(DATA),
    ),
}


@pytest.mark.parametrize("name", FRAMINGS)
def test_framings_of_real_producers(name: str) -> None:
    codec, payload = FRAMINGS[name]
    assert bytes(decompress(codec, payload)) == DATA
    assert bytes(decompress(codec, memoryview(payload), max_bytes=len(DATA))) == DATA
    with pytest.raises(InvalidBatchError, match=f"more than {len(DATA) - 1} bytes"):
        decompress(codec, payload, max_bytes=len(DATA) - 1)


@pytest.mark.parametrize("level", [None, 9])
def test_lz4_is_compressed_by_the_fast_compressor_as_in_kafka(level: int | None) -> None:
    fast = lz4.frame.compress(DATA, compression_level=0, block_linked=False, store_size=False)
    found = compress(Codec.LZ4, DATA, level)
    assert abs(len(found) - len(fast)) < 64, "but for the block size in the frame"
    assert len(compress(Codec.LZ4, DATA, 8)) < len(found) - 1_000


@pytest.mark.parametrize(("block_size", "linked", "size", "checksum", "block_sum"), LZ4_OPTIONS)
def test_lz4_frames_with_every_option(
    block_size: int, linked: bool, size: bool, checksum: bool, block_sum: bool
) -> None:
    payload = lz4.frame.compress(
        DATA,
        block_size=block_size,
        block_linked=linked,
        store_size=size,
        content_checksum=checksum,
        block_checksum=block_sum,
    )
    assert bytes(decompress(Codec.LZ4, payload)) == DATA


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("data", [b"x", DATA, bytes(300_000)])
def test_compress_is_inverted_here_and_by_aiokafka(codec: Codec, data: bytes) -> None:
    payload = compress(codec, data)
    assert bytes(decompress(codec, payload)) == data
    decoders = {
        Codec.GZIP: aiokafka_codec.gzip_decode,
        Codec.SNAPPY: aiokafka_codec.snappy_decode,
        Codec.LZ4: aiokafka_codec.lz4_decode,
        Codec.ZSTD: aiokafka_codec.zstd_decode,
    }
    if codec is not Codec.NONE:
        assert decoders[codec](payload) == data


def zstd_bomb(content_bytes: int) -> bytes:
    """Blocks of one repeated byte: 4 bytes for each 128 KiB, and no content size."""
    block = struct.pack("<I", 128 * 1024 << 3 | 1 << 1)[:3] + b"\0"
    count = content_bytes // (128 * 1024)
    last = struct.pack("<I", 1 << 3 | 1 << 1 | 1)[:3] + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * count + last


BOMBS = {
    "gzip": (Codec.GZIP, gzip.compress(bytes(1 << 29), 1)),
    "gzip of gzip members": (Codec.GZIP, gzip.compress(bytes(1 << 20), 9) * 512),
    "lz4": (Codec.LZ4, lz4.frame.compress(bytes(1 << 29), store_size=False)),
    "zstd": (Codec.ZSTD, zstd_bomb(1 << 35)),
    "zstd, false content size": (
        Codec.ZSTD,
        b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 40) + zstd_bomb(1 << 35)[6:],
    ),
    "snappy": (Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(100)),
    "xerial": (Codec.SNAPPY, java_snappy(bytes(1 << 24), 1 << 20) * 32),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_takes_memory(name: str) -> None:
    codec, payload = BOMBS[name]
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidBatchError, match="more than 16777216 bytes"):
        decompress(codec, payload, max_bytes=16 * 1024 * 1024)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib < 64 * 1024


@pytest.mark.parametrize("name", FRAMINGS)
def test_bytes_cut_short_are_refused(name: str) -> None:
    codec, payload = FRAMINGS[name]
    for cut in (1, 2, 5, len(payload) // 2, len(payload) - 1):
        try:
            data = decompress(codec, payload[:-cut])
        except InvalidBatchError:
            continue
        # whole members, streams or frames before the cut are a payload of their own
        assert DATA.startswith(bytes(data))
        assert len(data) < len(DATA)


def test_unknown_codecs_and_foreign_bytes_are_refused() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(InvalidBatchError, match=f"codec {codec}"):
            decompress(codec, b"anything")
    for known in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        with pytest.raises(InvalidBatchError, match=known.name.lower()):
            decompress(known, b"\xffno such frame, whatever it says")
    with pytest.raises(InvalidBatchError, match="gzip"):
        decompress(Codec.GZIP, zlib.compress(DATA))


def test_without_a_codec_the_payload_is_borrowed() -> None:
    payload = bytearray(b"records")
    assert decompress(Codec.NONE, payload) is payload


@pytest.mark.parametrize("codec", list(Codec)[1:])
def test_a_small_batch_holds_no_more_memory_than_its_records(codec: Codec) -> None:
    """A block of lz4 or zstd may have 64 KiB and more: what it did not need is given back."""
    found = decompress(codec, compress(codec, b"small" * 100))
    held = found.obj if isinstance(found, memoryview) else found
    assert bytes(found) == b"small" * 100
    assert sys.getsizeof(held) < 2 * len(found)


def test_room_for_decompressed_bytes_is_not_written_first() -> None:
    """Zeros would be written while the interpreter's lock is held."""

    def cpu_s(make: Callable[[int], bytearray]) -> float:
        began = time.thread_time()
        made = make(MAX_DECOMPRESSED_BYTES)
        assert len(made) == MAX_DECOMPRESSED_BYTES
        return time.thread_time() - began

    assert cpu_s(unfilled) < cpu_s(bytearray) / 4


def test_a_codec_without_a_name_has_its_number() -> None:
    assert [codec_name(codec) for codec in range(6)] == [
        *("none", "gzip", "snappy", "lz4", "zstd"),
        "codec 5",
    ]
