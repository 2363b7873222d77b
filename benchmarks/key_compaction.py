"""Key compaction, pass by pass, beside copying the same batches: MB of stored bytes per CPU second.

    python -m benchmarks.key_compaction --records 100000 --keys 15000 --value-bytes 100

One JSON line for each codec and batch size on standard output. `copy` cuts the bytes into batches,
holds each CRC and joins them again; `index` is the first pass (offset map), `clean` the second one,
both by compiled code; `of_copy` is how fast both passes together are beside copying, in the same
run. `plain_of_compiled` is the code without numba, over a hundredth of the records.
"""

import argparse
import json
import random
import sys
from functools import partial
from itertools import accumulate

from benchmarks.decode import cpu_seconds
from bucketlog.log_format.batch import Codec
from bucketlog.log_format.batch_stream import BatchStream, check_crc
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.tiered_storage.key_compaction import Cleaner, CleaningRound, DirtyPart
from bucketlog.tiered_storage.offset_map import OffsetMap, offset_map

PIECE_BYTES = 1 << 20
MAP_BYTES_MAX = 128 << 20
DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
_WORDS = [b"carrier", b"origin", b"dest", b"delay", b"2013-01-01", b"tail", b"distance", b"EWR"]


def stored(records: int, keys: int, value_bytes: int, batch_records: int, codec: Codec) -> bytes:
    """Batches one after another: keys as they come, values half words and half noise."""
    source = random.Random(1)
    pool = [
        b" ".join(source.choices(_WORDS, k=value_bytes // 14 + 1))[: value_bytes // 2]
        + source.randbytes(value_bytes - value_bytes // 2)
        for _ in range(1000)
    ]
    data = bytearray()
    for base in range(0, records, batch_records):
        data += encode_batch(
            [
                DecodedRecord(
                    offset, NOW_MS, b"key-%012d" % source.randrange(keys), source.choice(pool)
                )
                for offset in range(base, min(base + batch_records, records))
            ],
            codec=codec,
        )
    return bytes(data)


def pieces(data: bytes) -> list[memoryview]:
    ends = accumulate([PIECE_BYTES] * (len(data) // PIECE_BYTES + 1))
    return [memoryview(data)[end - PIECE_BYTES : end] for end in ends]


def copy(data: bytes) -> int:
    stream = BatchStream()
    out = []
    for piece in pieces(data):
        for batch, header in stream.feed(piece):
            check_crc(batch, header)
            out.append(batch)
    return len(b"".join(out))


def index(data: bytes, keys: int, *, compiled: bool) -> tuple[OffsetMap, int]:
    offsets = offset_map(MAP_BYTES_MAX, bytes(16), keys_max=keys, compiled=compiled)
    dirty = DirtyPart(offsets, 0, 2**53)
    for piece in pieces(data):
        dirty.feed(piece)
    return offsets, dirty.finish()


def clean(data: bytes, offsets: OffsetMap, end: int) -> Cleaner:
    cleaning = CleaningRound(0, end, NOW_MS, DAY_MS)
    cleaner = Cleaner(offsets, cleaning)
    b"".join(cleaner.run(pieces(data)))
    return cleaner


def both(data: bytes, keys: int, *, compiled: bool) -> None:
    clean(data, *index(data, keys, compiled=compiled))


def measured(options: argparse.Namespace, codec: Codec, batch_records: int) -> dict[str, object]:
    data = stored(options.records, options.keys, options.value_bytes, batch_records, codec)
    some = stored(options.records // 100, options.keys, options.value_bytes, batch_records, codec)
    both(some, options.keys, compiled=True)  # compiles
    offsets, end = index(data, options.keys, compiled=True)
    stats = clean(data, offsets, end).stats
    seconds = partial(cpu_seconds, at_least=options.seconds)
    copying = seconds(partial(copy, data))
    indexing = seconds(partial(index, data, options.keys, compiled=True))
    cleaning = seconds(partial(clean, data, offsets, end))
    compiled = cpu_seconds(partial(both, some, options.keys, compiled=True), at_least=0.2)
    plain = cpu_seconds(partial(both, some, options.keys, compiled=False), at_least=0.2)
    megabytes = len(data) / 1e6
    return {
        "codec": codec.name.lower(),
        "batch_records": batch_records,
        "stored_mb": round(megabytes, 1),
        "kept": round(stats.records_kept / stats.records_read, 3),
        "map_filled": round(offsets.entries / offsets.capacity, 3),
        "copy_mb_per_cpu_s": round(megabytes / copying, 1),
        "index_mb_per_cpu_s": round(megabytes / indexing, 1),
        "clean_mb_per_cpu_s": round(megabytes / cleaning, 1),
        "records_per_cpu_s": round(options.records / (indexing + cleaning)),
        "of_copy": round(copying / (indexing + cleaning), 4),
        "plain_of_compiled": round(compiled / plain, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=15_000)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--batch-records", type=int, nargs="*", default=[10, 1000])
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds a cell")
    options = parser.parse_args()
    for batch_records in options.batch_records:
        for codec in Codec:
            row = measured(options, codec, batch_records)
            print(json.dumps(row), file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
