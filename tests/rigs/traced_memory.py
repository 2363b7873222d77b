"""The memory of Python objects, measured with tracemalloc.

Before Python 3.13.2, a process can end with a segmentation fault if tracing stops while another
thread allocates (python/cpython, issue 128679). Clients of earlier tests may have such threads.
Workers of the suite therefore leave out tests that use the fixture `traced_memory`, and one test
runs them in a process of their own (`tests/unit/test_traced_memory.py`).
"""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

FIXTURE = "traced_memory"
ONLY_TRACED = "--only-traced-memory"
MIB = 1 << 20


@dataclass(slots=True)
class TracedBytes:
    """Bytes that the block allocated: `held` at its end, and `peak` at most. Known after it."""

    held: int = 0
    peak: int = 0


class TracedMemory:
    """Python's allocations. Native libraries count if Python allocates their buffers."""

    @contextmanager
    def measured(self) -> Iterator[TracedBytes]:
        """Measure what the block allocates."""
        found = TracedBytes()
        tracemalloc.start()
        try:
            yield found
            found.held, found.peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    @contextmanager
    def below(self, bytes_max: float) -> Iterator[None]:
        """Check that the block never holds more than this."""
        with self.measured() as found:
            yield
        assert found.peak < bytes_max, f"{found.peak / MIB:.1f} MiB"


@pytest.fixture
def traced_memory() -> TracedMemory:
    return TracedMemory()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(ONLY_TRACED, action="store_true", help="run only tests that trace memory")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers leave out tests that trace memory."""
    is_only = bool(config.getoption(ONLY_TRACED))
    if not is_only and not hasattr(config, "workerinput"):
        return
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        is_traced = FIXTURE in getattr(item, "fixturenames", ())
        (kept if is_traced == is_only else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept
