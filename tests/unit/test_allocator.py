"""When free memory is returned to the system."""

import subprocess
import sys
from collections.abc import Iterable

import pytest

from bucketlog.stateless_broker.process.allocator import (
    KEPT_BYTES,
    UNUSED_BYTES_MIN,
    UNUSED_LOOKS,
    Peaks,
    UnusedMemory,
)
from tests.rigs.patience import PATIENCE_S


def test_memory_goes_back_to_the_system_once_after_a_peak() -> None:
    peaks = Peaks()
    held = [0, KEPT_BYTES // 2, 4 * KEPT_BYTES, 3 * KEPT_BYTES, KEPT_BYTES, 0, 0, KEPT_BYTES // 3]
    assert [peaks.is_over(each) for each in held] == [False] * 4 + [True, True, False, False]


def returned(unused: UnusedMemory, looks: Iterable[int]) -> list[bool]:
    return [unused.is_worth_returning(free * UNUSED_BYTES_MIN) for free in looks]


def test_memory_that_stays_free_is_returned_once() -> None:
    unused = UnusedMemory()
    last = UNUSED_LOOKS - 1
    assert returned(unused, [0, *[3] * UNUSED_LOOKS]) == [False] * (last + 1) + [True]
    assert not any(returned(unused, [3] * 100))
    assert returned(unused, [1] + [2] * UNUSED_LOOKS) == [False] * (last + 1) + [True]


def test_memory_that_is_free_now_and_then_is_kept() -> None:
    looks = ([3] * (UNUSED_LOOKS - 1) + [0]) * 10
    assert not any(returned(UnusedMemory(), looks))


@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries do not tell what is free")
def test_free_memory_is_seen_and_returned() -> None:
    program = """
from bucketlog.stateless_broker.process import allocator
import psutil

allocator.keep_buffers_on_one_heap()
buffers = [b"x" * 100_000 for _ in range(2_000)]
last = buffers.pop()
before, full = allocator.free_bytes(), psutil.Process().memory_info().rss
del buffers
assert allocator.free_bytes() - before > 190_000_000
allocator.give_back_unused(0)
assert full - psutil.Process().memory_info().rss > 150_000_000
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE_S)
