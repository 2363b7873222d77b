"""The duty that expires idle producers in the sequencer (Kafka: `producer.id.expiration.ms`).

Without this duty, every producer id that ever wrote stays in Redis until the epoch ends.
Checkpoints forget idle producers, too (`metadata.producers`): the next epoch does not load them.
An expired producer that continues its sequence gets UNKNOWN_PRODUCER_ID; Kafka accepts any
sequence then (docs/compatibility.md).
"""

import asyncio
import logging
from typing import Protocol

from bucketlog.stateless_broker.duties.rounds import DutyContext, run_rounds
from bucketlog.stateless_broker.health import BrokerPart

logger = logging.getLogger(__name__)

ROWS_A_CALL = 1_000
"""Rows per call: about a millisecond of Redis' time."""
PAUSE_S = 0.02
"""The pause between calls, in which Redis runs commits."""
BEGIN = "0"


class ProducerStore(Protocol):
    async def forget_producers(
        self, epoch: int, cursor: str, *, count: int, idle_ms: int
    ) -> tuple[str, int, int]: ...


class ProducerExpiry:
    def __init__(
        self, *, epoch: int, sequencer: ProducerStore, context: DutyContext, idle_ms: int
    ) -> None:
        self._epoch = epoch
        self._sequencer = sequencer
        self._context = context
        self._idle_ms = idle_ms

    async def run(self, interval_ms: int) -> None:
        """Run rounds until the epoch ends, each on the broker whose turn it is."""
        await run_rounds(
            BrokerPart.PRODUCERS, self.go_round, interval_ms=interval_ms, context=self._context
        )

    async def go_round(self) -> int:
        """Check all producers once. Returns the number of expired rows. Raises `SequencerError`."""
        cursor, total = BEGIN, 0
        while True:
            cursor, forgotten, _ = await self._sequencer.forget_producers(
                self._epoch, cursor, count=ROWS_A_CALL, idle_ms=self._idle_ms
            )
            total += forgotten
            if cursor == BEGIN:
                break
            await asyncio.sleep(PAUSE_S)
        if total:
            logger.info("expired %d rows of idle producers", total)
        return total
