"""The console gives way to brokers on the same machine."""

import os
import threading

import pytest

from bucketlog.console.serving import give_way


@pytest.mark.parametrize(("before", "niceness", "after"), [(0, 7, 7), (9, 7, 9), (3, 0, 3)])
def test_a_lower_priority_stays(before: int, niceness: int, after: int) -> None:
    """On Linux, each thread has a niceness, so this test lowers that of another thread."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    found: list[int] = []

    def look() -> None:
        give_way(usual + before)
        give_way(usual + niceness)
        found.append(os.getpriority(os.PRIO_PROCESS, 0) - usual)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [min(after, 19 - usual)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == usual
