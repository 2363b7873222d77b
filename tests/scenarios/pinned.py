"""A producer that speaks to one broker alone, whoever leads the partition."""

import threading
import time

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.history import Acknowledged, History, Place, Refused, Sent
from tests.rigs.patience import Deadline
from tests.rigs.wire_client import WireClient, build_batch

PAUSE_S = 0.01


class Pinned(threading.Thread):
    """Sends record after record to `bootstrap`, each when the one before is settled.

    What is refused, or whose connection breaks, is not sent again: what became of it, the history
    knows as far as the answer said. `acknowledged` counts.
    Records are `<name> <number> .`; number n goes to partition n modulo `partitions`.
    """

    def __init__(
        self,
        name: str,
        bootstrap: str,
        history: History,
        topic: str,
        partitions: int = 1,
        *,
        pause_s: float = PAUSE_S,
        answer_timeout_s: float = 60.0,
    ) -> None:
        super().__init__(name=name)
        self.acknowledged = 0
        self.refused: list[str] = []
        self.slowest_s = 0.0
        self._answered: list[tuple[float, float]] = []
        """When each acknowledged record was sent, and when it was acknowledged."""
        self._history = history
        self._address = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._pause_s = pause_s
        self._answer_timeout_s = answer_timeout_s
        self._stopping = threading.Event()
        self._number = 0

    def stop(self) -> None:
        """What was sent is settled."""
        self._stopping.set()
        self.join()

    def works_again(self, since: float) -> float:
        """Wait for a record that was sent at `since` or later; when the first of them was
        acknowledged. Raises `AssertionError`."""
        deadline = Deadline(lambda: f"{self.name}: nothing since: {self.refused[-3:]}")
        seen = len(self._answered)
        while seen and self._answered[seen - 1][0] >= since:
            seen -= 1
        while True:
            for sent, acknowledged in self._answered[seen:]:
                if sent >= since:
                    return acknowledged
            deadline.pause(self._pause_s)

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                with WireClient(self._address, timeout_s=self._answer_timeout_s) as client:
                    while not self._stopping.is_set():
                        self._send(client)
                        self._stopping.wait(self._pause_s)
            except OSError as error:
                self.refused.append(str(error))
                self._stopping.wait(self._pause_s)

    def _send(self, client: WireClient) -> None:
        sent = Sent(self.name, self._number)
        self._number += 1
        partition = sent.number % self._partitions
        batch = build_batch([(None, f"{sent.producer} {sent.number} .".encode())])
        began = time.monotonic()
        self._history.invoke(sent, began)
        answer = client.call(
            ApiKey.PRODUCE,
            9,
            acks=-1,
            timeout=int(self._answer_timeout_s * 1000),
            topic_data=[
                {
                    "name": self._topic,
                    "partition_data": [{"index": partition, "records": batch}],
                }
            ],
        )
        row = answer.responses[0].partition_responses[0]
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        error, now = ErrorCode(row.error_code), time.monotonic()
        if error is ErrorCode.none:
            place = Place(partition, row.base_offset)
            self._history.acknowledged.append(Acknowledged(sent, place, now))
            self.acknowledged += 1
            self._answered.append((began, now))
        else:
            self._history.refused.append(Refused(sent, error, now))
            self.refused.append(error.name)
