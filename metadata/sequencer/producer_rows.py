"""The number of producers that the sequencer knows, and the log line when new ones are refused.

Invariant: at most one line per minute, which counts all refused batches since the last line.
"""

import logging
from collections.abc import Sequence

from bucketlog.metadata.sequencer.requests import BatchStatus

logger = logging.getLogger(__name__)

LOG_INTERVAL_MS = 60_000
TOO_MANY_PRODUCERS = BatchStatus.TOO_MANY_PRODUCERS.value


class ProducerRows:
    """The rows of producers in the sequencer, one for each producer and partition. At `limit`, new
    rows are refused."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.known = 0
        """The number of rows in the sequencer's last answer."""
        self.held_back = 0
        """Batches that were refused because of the limit."""
        self._logged = 0
        self._next_line_ms: int | None = None

    def note_refusals(self, answers: Sequence[Sequence[tuple[str, int]]], now_ms: int) -> None:
        """`answers`: for each partition, the status and the number of each of its batches."""
        self.held_back += sum(word == TOO_MANY_PRODUCERS for part in answers for word, _ in part)
        if self.held_back == self._logged:
            return
        if self._next_line_ms is None or now_ms >= self._next_line_ms:
            logger.warning(
                "%d batches of new producers were refused, and their clients wait: there are %d "
                "producers, counted per partition (BUCKETLOG_PRODUCERS_MAX). Raise the limit, or "
                "wait until idle producers expire (BUCKETLOG_PRODUCER_ID_EXPIRATION_MS)",
                self.held_back - self._logged,
                self.limit,
            )
            self._logged = self.held_back
            self._next_line_ms = now_ms + LOG_INTERVAL_MS
