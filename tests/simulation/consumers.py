"""Consumers of the simulation: they read on where they are, at any broker."""

from collections import defaultdict
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import fetch_values
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.clients import RETRIABLE, Client, Surface
from tests.simulation.truth import ReadRange, decode

WAIT_MS = 1_000
LATEST = -1
EARLIEST = -2
AGAIN_SHARE = 0.03
"""So often a partition is read from its beginning once more."""


class Consumer(Client):
    """Reads all partitions of a topic from their beginning."""

    def __init__(
        self, name: str, surface: Surface, random: Random, *, topic: str, partitions: int
    ) -> None:
        super().__init__(name, surface, random)
        self._topic = topic
        self.positions = dict.fromkeys(range(partitions), 0)
        self._begins = dict.fromkeys(range(partitions), 0)
        self._records: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        self._shown: dict[tuple[str, int], int] = {}
        """By a broker's incarnation and partition: the highest high watermark."""
        self.is_ending = False
        self.stays = False
        """It only reads on from now on."""

    async def run(self) -> None:
        broker = self.any_broker()
        while not self.is_ending:
            if self.random.random() < 0.3:
                broker = self.any_broker()
            if self.random.random() < 0.1:
                await self._ask_latest(broker)
            if not self.stays and self.random.random() < AGAIN_SHARE:
                self._go_to(self.random.choice(list(self.positions)), 0)
            if not await self._fetch(broker):
                broker = self.any_broker()
                await self.pause(0.3)

    def note_ranges(self) -> None:
        """What was read so far is to be held against the log."""
        for number in self.positions:
            self._note_range(number)

    def _note_range(self, number: int) -> None:
        begin, end = self._begins[number], self.positions[number]
        partition = self.surface.partition(self._topic, number)
        records = tuple(self._records.pop(number, ()))
        self._begins[number] = end
        self.surface.truth.ranges.append(ReadRange(self.name, partition, begin, end, records))

    def _go_to(self, number: int, offset: int) -> None:
        self._note_range(number)
        self.surface.trace.add(self.name, f"goes to {offset} of {number}")
        self._begins[number] = self.positions[number] = offset

    async def _fetch(self, broker: SimulatedBroker) -> bool:
        incarnation = broker.name
        values = fetch_values(
            self._topic, self.positions, partition_bytes=1 << 16, max_wait=WAIT_MS
        )
        answer = await self.call(broker, ApiKey.FETCH, 11, **values)
        if answer is None:
            return False
        went_well = True
        for row in answer.responses[0].partitions:
            if ErrorCode(row.error_code) is ErrorCode.offset_out_of_range:
                await self._begin_where_it_begins(broker, row.partition_index)
            else:
                went_well &= self._take(incarnation, row)
        return went_well

    async def _begin_where_it_begins(self, broker: SimulatedBroker, number: int) -> None:
        """Whether it was below the log start is seen in the end."""
        incarnation, at = broker.name, self.positions[number]
        partition = self.surface.partition(self._topic, number)
        self.surface.truth.log_starts.reset(self.name, partition, at)
        start = await self._ask(broker, number, EARLIEST)
        if start is not None:
            self.surface.truth.log_starts.show(f"{incarnation} to {self.name}", partition, start)
            if start > at:
                self._go_to(number, start)

    def _take(self, incarnation: str, row: Any) -> bool:
        trace, number = self.surface.trace, row.partition_index
        error = ErrorCode(row.error_code)
        if error is not ErrorCode.none:
            trace.count(f"fetch: {error.name}")
            if error not in RETRIABLE:
                at = self.positions[number]
                trace.violate("no reset", f"{self.name} at {at} of {number}: {error.name}")
            return False
        self._check_shown(incarnation, number, row.high_watermark)
        partition = self.surface.partition(self._topic, number)
        self.surface.truth.log_starts.show(
            f"{incarnation} to {self.name}", partition, row.log_start_offset
        )
        records, end = decode(bytes(row.records or b""))
        records = [record for record in records if record[0] >= self.positions[number]]
        self.surface.truth.read(self.name, partition, records)
        if end > row.high_watermark:
            trace.violate("high watermark", f"{number} ends at {end}, not {row.high_watermark}")
        if end > self.positions[number]:
            trace.add(self.name, f"read {number} to {end} at {incarnation}")
            self.positions[number] = end
            self._records[number] += records
        return True

    def _check_shown(self, incarnation: str, number: int, shown: int) -> None:
        before = self._shown.get((incarnation, number), 0)
        if shown < before:
            self.surface.trace.violate(
                "high watermark", f"{incarnation} showed {before} of {number}, and now {shown}"
            )
        self._shown[incarnation, number] = shown

    async def _ask_latest(self, broker: SimulatedBroker) -> None:
        number = self.random.choice(list(self.positions))
        incarnation = broker.name
        offset = await self._ask(broker, number, LATEST)
        if offset is not None:
            self._check_shown(incarnation, number, offset)

    async def _ask(self, broker: SimulatedBroker, number: int, timestamp: int) -> int | None:
        answer = await self.call(
            broker,
            ApiKey.LIST_OFFSETS,
            7,
            replica_id=-1,
            isolation_level=0,
            topics=[
                {
                    "name": self._topic,
                    "partitions": [{"partition_index": number, "timestamp": timestamp}],
                }
            ],
        )
        if answer is None:
            return None
        row = answer.topics[0].partitions[0]
        return int(row.offset) if ErrorCode(row.error_code) is ErrorCode.none else None
