"""Records per CPU second of the two decoders: plain Python, and vectorised to Arrow.

    python -m benchmarks.decode --records 400000 --value-bytes 100 --batch-records 5000

One JSON line for each codec on standard output; nothing is read or written elsewhere. CPU seconds
are this process's, all threads. The compilation of the kernel is timed on its own.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from functools import partial

from bucketlog.log_format.arrow import decode_batches
from bucketlog.log_format.batch import Codec, read_header
from bucketlog.log_format.records import DecodedRecord, decode_records, encode_batch

_WORDS = [b"carrier", b"origin", b"dest", b"delay", b"2013-01-01", b"tail", b"distance", b"EWR"]


def _value(source: random.Random, length: int) -> bytes:
    """Half words, half noise: compresses about as log records do."""
    half = b" ".join(source.choices(_WORDS, k=length // 14 + 1))[: length // 2]
    return half + source.randbytes(length - len(half))


def make_batches(
    records: int, value_bytes: int, batch_records: int, codec: Codec
) -> tuple[bytes, list[int]]:
    """Batches one after another, and where each begins."""
    source = random.Random(1)
    data = bytearray()
    positions = []
    for base in range(0, records, batch_records):
        batch = [
            DecodedRecord(base + index, 1_700_000_000_000 + index, b"key%04d" % index, value)
            for index, value in enumerate(
                _value(source, value_bytes) for _ in range(min(batch_records, records - base))
            )
        ]
        positions.append(len(data))
        data += encode_batch(batch, codec=codec)
    return bytes(data), positions


def cpu_seconds(work: Callable[[], object], *, at_least: float) -> float:
    """CPU seconds of one call, over as many calls as take `at_least` seconds."""
    calls = 0
    start = time.process_time()
    while (spent := time.process_time() - start) < at_least:
        work()
        calls += 1
    return spent / calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--batch-records", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds a cell")
    options = parser.parse_args()
    for codec in Codec:
        data, positions = make_batches(
            options.records, options.value_bytes, options.batch_records, codec
        )
        start = time.process_time()
        decode_batches(data, positions[:1], headers=True)
        first_call = time.process_time() - start
        arrow = cpu_seconds(partial(decode_batches, data, positions), at_least=options.seconds)
        plain = cpu_seconds(partial(plain_decode, data, positions), at_least=0.1)
        row = {
            "codec": codec.name.lower(),
            "records": options.records,
            "value_bytes": options.value_bytes,
            "batch_records": options.batch_records,
            "stored_bytes": len(data),
            "arrow_records_per_cpu_s": round(options.records / arrow),
            "plain_records_per_cpu_s": round(options.records / plain),
            "first_call_cpu_s": round(first_call, 3),
        }
        print(json.dumps(row), file=sys.stdout, flush=True)


def plain_decode(data: bytes, positions: list[int]) -> int:
    view = memoryview(data)
    return sum(
        len(decode_records(view[position:], read_header(view, position))) for position in positions
    )


if __name__ == "__main__":
    main()
