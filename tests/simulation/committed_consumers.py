"""Consumers of read_committed in the simulation: they filter answers as Kafka's clients do.

Invariants that they hold brokers to: the last stable offset never decreases at a broker, and is at
most the high watermark; in the end, what a consumer was shown is what is committed below its
position, no more and no less.
"""

from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.isolation import batches_of, shown_of
from tests.rigs.wire_client import fetch_values
from tests.simulation.clients import RETRIABLE, Client, Surface

READ_COMMITTED = 1
WAIT_MS = 1_000
ANEW_SHARE = 0.02
Rows = list[tuple[int, bytes]]


class CommittedConsumer(Client):
    """Reads all partitions of a topic from their beginning, at one broker after another."""

    def __init__(
        self, name: str, surface: Surface, random: Random, *, topic: str, partitions: int
    ) -> None:
        super().__init__(name, surface, random)
        self._topic = topic
        self.positions = dict.fromkeys(range(partitions), 0)
        self.shown: dict[int, Rows] = {number: [] for number in range(partitions)}
        self._stable: dict[tuple[str, int], int] = {}
        """By a broker's incarnation and partition."""
        self.stays = False
        """It only reads on from now on."""
        self.is_ending = False

    async def run(self) -> None:
        while not self.is_ending:
            if not self.stays and self.random.random() < ANEW_SHARE:
                number = self.random.choice(list(self.positions))
                self.positions[number], self.shown[number] = 0, []
            if not await self._fetch():
                await self.pause(0.3)

    async def _fetch(self) -> bool:
        broker = self.any_broker()
        incarnation = broker.name
        values = fetch_values(
            self._topic, self.positions, partition_bytes=1 << 14, max_wait=WAIT_MS
        )
        values["isolation_level"] = READ_COMMITTED
        answer = await self.call(broker, ApiKey.FETCH, 11, **values)
        if answer is None:
            return False
        rows = answer.responses[0].partitions
        went_well = [self._take(incarnation, row) for row in rows]  # all of them
        return all(went_well)

    def _take(self, incarnation: str, row: Any) -> bool:
        trace, number, error = self.surface.trace, row.partition_index, ErrorCode(row.error_code)
        if error is not ErrorCode.none:
            if error not in RETRIABLE:
                trace.violate("no reset", f"{self.name} of {number}: {error.name}")
            return False
        stable = row.last_stable_offset
        if stable > row.high_watermark or stable < self._stable.get((incarnation, number), 0):
            trace.violate("last stable offset", f"{incarnation}: {stable} of {number}")
        self._stable[incarnation, number] = stable
        data = bytes(row.records or b"")
        aborted = [(each.producer_id, each.first_offset) for each in row.aborted_transactions or ()]
        shown = {header.base_offset for header in shown_of(data, aborted)}
        position = self.positions[number]
        for header, batch in batches_of(data):
            if header.base_offset in shown:
                self.shown[number] += [
                    (record.offset, record.value or b"")
                    for record in decode_records(batch, header)
                    if record.offset >= position
                ]
            self.positions[number] = max(self.positions[number], header.next_offset)
        if self.positions[number] > max(stable, position):
            trace.violate("last stable offset", f"{incarnation} shows more than {stable}")
        return True
