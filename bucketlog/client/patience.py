"""A wait for acknowledgements that continues without any: it is logged once."""

import logging

TELL_AFTER_S = 5.0

_logger = logging.getLogger("bucketlog.producer")


class Patience:
    """`look` is called while a producer's end waits; at least once a second, by one thread."""

    def __init__(self, at_most_s: float, now_s: float) -> None:
        self._until_s = now_s + at_most_s
        self._moved_s = now_s
        self._left = -1
        self._is_told = False

    def look(self, left: int, now_s: float) -> None:
        """`left` records are not acknowledged yet."""
        if left != self._left:
            self._left, self._moved_s = left, now_s
        elif not self._is_told and now_s - self._moved_s >= TELL_AFTER_S:
            self._is_told = True
            _logger.warning(
                "closing the producer waits for %d records that no broker acknowledges,"
                " for at most %.0f s more",
                left,
                max(0.0, self._until_s - now_s),
            )
