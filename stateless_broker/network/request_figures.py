"""What requests were answered, by API: how many, how fast, how large, with which errors.

A request counts when its answer is handed to the socket, in order. Its time runs from when the
whole frame was here; what a fetch waited because it asked to, is a part of it. Invariant: constant
memory, a few additions a request, nothing per record.
"""

import logging
from collections import Counter
from collections.abc import Sequence

from kio.schema.errors import ErrorCode

from bucketlog.tiered_storage.counting import DurationHistogram

logger = logging.getLogger(__name__)


class ApiFigures:
    __slots__ = ("request_bytes", "response_bytes", "seconds")

    def __init__(self) -> None:
        self.seconds = DurationHistogram()
        self.request_bytes = 0
        self.response_bytes = 0


class RequestFigures:
    """`slow_request_ms`: what took longer is told in the log; 0: nothing is."""

    def __init__(self, *, slow_request_ms: int) -> None:
        self.connections = 0
        """Those that are open now."""
        self.by_api: dict[int, ApiFigures] = {}
        self.errors: Counter[tuple[int, ErrorCode]] = Counter()
        """By API key and code, one for each partition that was answered with it."""
        self._slow_s = slow_request_ms / 1000 if slow_request_ms else float("inf")

    def answered(
        self, api_key: int, seconds: float, *, request_bytes: int, response_bytes: int
    ) -> None:
        figures = self.by_api.get(api_key)
        if figures is None:
            figures = self.by_api[api_key] = ApiFigures()
        figures.seconds.add(seconds)
        figures.request_bytes += request_bytes
        figures.response_bytes += response_bytes

    def failed(self, api_key: int, codes: Sequence[ErrorCode]) -> None:
        for code in codes:
            self.errors[api_key, code] += 1

    def is_slow(self, seconds: float) -> bool:
        return seconds > self._slow_s
