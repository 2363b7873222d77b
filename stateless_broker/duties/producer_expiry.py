"""The duty of forgetting idle producers in the sequencer (Kafka: `producer.id.expiration.ms`).

Without it every producer id that ever wrote stays in Redis until the epoch ends. A producer that
comes back later begins with sequence 0, or is answered UNKNOWN_PRODUCER_ID, as in Kafka.
"""

import asyncio
import logging
from typing import Protocol

from bucketlog.stateless_broker.duties.rounds import DutyContext, run_rounds
from bucketlog.stateless_broker.health import BrokerPart

logger = logging.getLogger(__name__)

ROWS_A_CALL = 1_000
"""About a millisecond of Redis' time."""
PAUSE_S = 0.02
"""Between calls, for the commits of others."""
BEGIN = "0"


class ProducerStore(Protocol):
    async def forget_producers(
        self, epoch: int, cursor: str, *, count: int, idle_ms: int
    ) -> tuple[str, int]: ...


class ProducerExpiry:
    def __init__(
        self, *, epoch: int, sequencer: ProducerStore, context: DutyContext, idle_ms: int
    ) -> None:
        self._epoch = epoch
        self._sequencer = sequencer
        self._context = context
        self._idle_ms = idle_ms

    async def run(self, interval_ms: int) -> None:
        """For the epoch's life; only where it is this broker's turn."""
        await run_rounds(
            BrokerPart.PRODUCERS, self.go_round, interval_ms=interval_ms, context=self._context
        )

    async def go_round(self) -> int:
        """Look at all producers once; returns how many rows are forgotten. Raises
        `SequencerError`."""
        cursor, total = BEGIN, 0
        while True:
            cursor, forgotten = await self._sequencer.forget_producers(
                self._epoch, cursor, count=ROWS_A_CALL, idle_ms=self._idle_ms
            )
            total += forgotten
            if cursor == BEGIN:
                break
            await asyncio.sleep(PAUSE_S)
        if total:
            logger.info("forgot %d producers of partitions, idle for long", total)
        return total
