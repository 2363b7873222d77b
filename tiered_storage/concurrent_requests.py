"""Requests to the bucket that run at the same time, in threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def request_each(
    request: Callable[[T], R], wanted: Sequence[T], *, requests_in_flight: int
) -> list[R]:
    """The results in the order of `wanted`. Raises the first exception in that order. If only one
    request may be in flight, no thread is used, and no request begins after a failed one."""
    if requests_in_flight == 1 or len(wanted) < 2:
        return [request(each) for each in wanted]
    with ThreadPoolExecutor(min(requests_in_flight, len(wanted))) as pool:
        return list(pool.map(request, wanted))
