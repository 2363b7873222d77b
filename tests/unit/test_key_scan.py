"""The hash of keys is SipHash-2-4 with 128 bits, and numbers are written as Kafka writes them."""

import numpy as np
import pytest

from bucketlog.log_format import key_scan, scan

# from the reference code of SipHash (vectors.h, vectors_sip128): key 00 01 .. 0f, input 00 01 ..
REFERENCE = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
    63: "5150d1772f50834a503e069a973fbd7c",
}


@pytest.mark.parametrize("length", REFERENCE)
def test_the_hash_is_the_references(length: int) -> None:
    assert scan.COMPILED
    secret = np.frombuffer(bytes(range(16)), "<u8").astype(np.uint64)
    data = np.frombuffer(b"??" + bytes(range(length)) + b"?", np.uint8)
    halves = key_scan.siphash(data, np.int64(2), np.int64(2 + length), secret)
    assert b"".join(int(half).to_bytes(8, "little") for half in halves).hex() == REFERENCE[length]
