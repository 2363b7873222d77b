"""Fresh stamps: no acknowledged record stays hidden from readers of the bucket alone.

A void reservation leaves a gap in a partition's offsets. Readers of the bucket alone stop there
until a committed segment carries a high watermark stamp that reaches the gap's end. The next batch
of the partition brings such a stamp. If no batch comes, a broker writes a segment with stamps
alone.

Invariants: each round finds the gaps in the view and remembers no earlier request, so the death of
a broker loses no request. A stamp is requested after its gap is visible, so it reaches the gap's
end. Once the stamp is visible, no further stamp is requested. One segment carries the stamps of
many partitions.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.stateless_broker.epochs.end import EpochEnd

TASK = "fresh stamps"
"""The task that brokers are in line for."""
ROUNDS_APART = 2
"""Rounds that a broker waits for the broker before it in line."""
PLACES = 2
"""Brokers further back in line wait no longer than the broker in this place. So the delay does not
grow with the number of dead brokers."""


class FreshStamps:
    """Requests the stamps of one broker in one epoch.

    `gaps` returns, by partition, the end of the view's last gap that no visible stamp reaches.
    `in_flight` returns the highest stamps in this broker's segments that are not visible yet. If
    such a stamp reaches a gap's end, no other is requested. A round takes `round_ms`.
    """

    def __init__(
        self,
        *,
        end: EpochEnd,
        gaps: Callable[[], Mapping[TopicIdPartition, int]],
        in_flight: Callable[[], Mapping[TopicIdPartition, int]],
        request: Callable[[Sequence[TopicIdPartition]], None],
        place_in_line: Callable[[str], int],
        round_ms: int,
    ) -> None:
        self._end = end
        self._gaps = gaps
        self._in_flight = in_flight
        self._request = request
        self._place_in_line = place_in_line
        self._round_ms = round_ms
        self._rounds: dict[TopicIdPartition, int] = {}
        """For each partition, the number of earlier rounds in a row that found an unproven gap."""

    async def run(self) -> None:
        while self._end.reason is None:
            await asyncio.sleep(self._round_ms / 1000)
            wanted = self.due()
            if wanted:
                self._request(wanted)

    def due(self) -> list[TopicIdPartition]:
        """Begin a round. Returns the partitions whose stamps this broker has to request now."""
        gaps = self._gaps()
        self._rounds = {partition: self._rounds.get(partition, -1) + 1 for partition in gaps}
        if not gaps:
            return []
        patience = ROUNDS_APART * min(self._place_in_line(TASK), PLACES)
        in_flight = self._in_flight()
        return [
            partition
            for partition, offset in gaps.items()
            if self._rounds[partition] >= patience and in_flight.get(partition, 0) < offset
        ]
