"""Sends that wait while the queue of a producer is full; for callers without `await`.

Invariant: memory stays bounded, because no record is kept outside librdkafka's queue.
"""

import time
from typing import Any

from bucketlog.client.sending import Encoded, Outbox, Report, queue_full

POLL_S = 0.1
POLL_EVERY = 256
"""The number of sends after which delivery reports are served."""


class WaitingSends:
    """Queues records in `outbox`. `timeout_s`: how long a record waits for room."""

    def __init__(self, outbox: Outbox, *, timeout_s: float) -> None:
        self._outbox = outbox
        self._timeout_s = timeout_s
        self._sends = 0

    def put(self, record: Encoded, report: Report) -> None:
        """Queue one record, once there is room. Raises `LogError`."""
        deadline = 0.0
        while not self.put_at_once(record, report):
            deadline = self._wait_for_room(deadline)

    def put_at_once(self, record: Encoded, report: Report) -> bool:
        """Queue one record. Returns False if the queue is full. Raises `LogError`."""
        if not self._outbox.put(record, report):
            return False
        self._sends += 1
        if self._sends % POLL_EVERY == 0:
            self._outbox.poll(0)
        return True

    def put_all(self, topic: str, messages: list[dict[str, Any]]) -> None:
        """Queue many records, as there is room. Raises `LogError`."""
        deadline = 0.0
        while messages := self._outbox.put_batch(topic, messages, self._outbox.report_failure):
            deadline = self._wait_for_room(deadline)
        self._outbox.poll(0)

    def _wait_for_room(self, deadline: float) -> float:
        """Serve reports for a moment. Returns the deadline, which the first wait sets (0: not yet
        set)."""
        now = time.monotonic()
        if not deadline:
            deadline = now + self._timeout_s
        elif now > deadline:
            raise queue_full(self._timeout_s)
        self._outbox.poll(POLL_S)
        return deadline
