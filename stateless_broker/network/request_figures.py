"""Figures of answered requests, by API: their number, time, size and errors.

A request counts when its answer is handed to the socket, in order. Its time begins when the whole
frame has arrived. The wait that a fetch asked for is part of its time. Invariant: constant memory,
a few additions a request, nothing per record.
"""

import logging
import re
from collections import Counter
from collections.abc import Sequence

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.network.exchange import ResponseSlot
from bucketlog.tiered_storage.counting import DurationHistogram

logger = logging.getLogger(__name__)

OTHER = "other"
"""The reason for connections that were not closed because of a limit, but of a bad request, for
example."""
SOFTWARE_MAX = 100
"""Maximum number of names of client software that are counted separately."""
SOFTWARE_CHARS_MAX = 60
_SETTING_AT_END = re.compile(r"\((?:BUCKETLOG_|quota )([A-Za-z_]{1,60})\)$")


class ApiFigures:
    __slots__ = ("request_bytes", "response_bytes", "seconds")

    def __init__(self) -> None:
        self.seconds = DurationHistogram()
        self.request_bytes = 0
        self.response_bytes = 0


class RequestFigures:
    """Figures of requests. `slow_request_ms`: slower requests are logged; 0: none is."""

    def __init__(self, *, slow_request_ms: int) -> None:
        self.connections = 0
        """Number of open connections."""
        self.by_api: dict[int, ApiFigures] = {}
        self.errors: Counter[tuple[int, ErrorCode]] = Counter()
        """Errors by API key and code. Each partition that was answered with the code counts."""
        self.closed: Counter[str] = Counter()
        """Connections that the broker closed, by the setting that caused it, or OTHER."""
        self.slow: Counter[int] = Counter()
        """Slow requests by API key."""
        self.software: Counter[str] = Counter()
        """Handshakes by the client's software and its version, or OTHER for further names."""
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

    def note(
        self, answer: ResponseSlot, seconds: float, peer: str, principal: str, response_bytes: int
    ) -> None:
        """A response of a connection is written; a slow one is logged."""
        self.answered(
            answer.api_key,
            seconds,
            request_bytes=answer.request_bytes,
            response_bytes=response_bytes,
        )
        if answer.errors:
            self.failed(answer.api_key, answer.errors)
        if self.is_slow(seconds - answer.may_wait_s):
            self.slow[answer.api_key] += 1
            log_slow(answer, seconds, peer, principal, response_bytes)

    def failed(self, api_key: int, codes: Sequence[ErrorCode]) -> None:
        """Count an error for each of `codes`: up to 100,000 codes, with few different ones."""
        while codes:
            code, number = codes[0], codes.count(codes[0])
            self.errors[api_key, code] += number
            codes = [each for each in codes if each is not code] if number < len(codes) else ()

    def shook_hands(self, name: str, version: str) -> None:
        """Count an ApiVersions request. Clients choose the names, so their number and length are
        bounded."""
        software = f"{name} {version}"
        if len(software) > SOFTWARE_CHARS_MAX or (
            software not in self.software and len(self.software) >= SOFTWARE_MAX
        ):
            software = OTHER
        self.software[software] += 1

    def closed_by_limit(self, setting: str) -> None:
        self.closed[setting] += 1

    def closed_because(self, reason: str) -> None:
        """Count a closed connection. `reason` ends with the name of the setting or quota, in
        parentheses, if a limit is the reason."""
        named = _SETTING_AT_END.search(reason)
        self.closed[named[1].lower() if named else OTHER] += 1

    def is_slow(self, seconds: float) -> bool:
        return seconds > self._slow_s


def log_slow(
    answer: ResponseSlot, seconds: float, peer: str, principal: str, response_bytes: int
) -> None:
    logger.warning(
        "%s took %.3f s",
        ApiKey(answer.api_key).message_name,
        seconds,
        extra={
            "client": peer,
            "principal": principal,
            "client_id": answer.client_id,
            "correlation_id": answer.correlation_id,
            "request_bytes": answer.request_bytes,
            "response_bytes": response_bytes,
        },
    )
