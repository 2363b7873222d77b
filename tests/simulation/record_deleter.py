"""A user of DeleteRecords."""

from asyncio import Future
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.clients import REQUEST_TIMEOUT_S, RETRIABLE, Client, Surface
from tests.simulation.log_starts import TO_THE_END

FURTHER_SHARE = 0.3
"""Of what is there, so much goes at most."""
TO_THE_END_SHARE = 0.03
MAY_BE_TOLD = RETRIABLE | {ErrorCode.offset_out_of_range}
"""A broker that cannot reach Redis knows no better."""


class RecordDeleter(Client):
    """Deletes the oldest records of some partition now and then."""

    def __init__(
        self, name: str, surface: Surface, random: Random, *, topic: str, partitions: int
    ) -> None:
        super().__init__(name, surface, random)
        self._topic = topic
        self._partitions = partitions
        self.is_ending = False

    async def run(self) -> None:
        while not self.is_ending:
            await self.pause(8.0)
            number = self.random.randrange(self._partitions)
            await self._delete(number, self._wanted(number))

    def _wanted(self, number: int) -> int:
        truth = self.surface.truth
        partition = self.surface.partition(self._topic, number)
        start = truth.log_starts.told.get(partition, 0)
        end = max(truth.acknowledged_bases.get(partition, ()), default=0)
        if number == 0 and self.random.random() < TO_THE_END_SHARE:
            return TO_THE_END
        if self.random.random() < 0.2:
            return self.random.randint(0, start)
        return start + int(max(0, end - start) * self.random.random() * FURTHER_SHARE)

    def _ask(self, broker: SimulatedBroker, wanted: dict[int, int]) -> "Future[bytes | None]":
        """By partition, from where on records stay."""
        for number, offset in wanted.items():
            partition = self.surface.partition(self._topic, number)
            self.surface.truth.log_starts.asked.setdefault(partition, set()).add(offset)
        rows = [{"partition_index": number, "offset": wanted[number]} for number in wanted]
        topics = [{"name": self._topic, "partitions": rows}]
        return self.send(broker, ApiKey.DELETE_RECORDS, 2, topics=topics, timeout=3_000)

    def ask_unheard(self, broker: SimulatedBroker, wanted: dict[int, int] | None = None) -> None:
        """Of all partitions where it is not said what is `wanted`; nobody waits for the answer."""
        some = {number: self._wanted(number) for number in range(self._partitions)}
        self._ask(broker, some if wanted is None else wanted)

    async def _delete(self, number: int, offset: int) -> None:
        starts, trace = self.surface.truth.log_starts, self.surface.trace
        partition = self.surface.partition(self._topic, number)
        broker = self.any_broker()
        incarnation = broker.name
        self.surface.provoke("kill", broker, 0.1)
        sent = self._ask(broker, {number: offset})
        answer: Any = await self.decoded(sent, ApiKey.DELETE_RECORDS, 2, REQUEST_TIMEOUT_S)
        row = answer.topics[0].partitions[0] if answer is not None else None
        error = ErrorCode(row.error_code) if row is not None else None
        trace.count(f"delete records: {error.name if error is not None else 'no answer'}")
        if row is None or error is None:
            return
        if error is not ErrorCode.none:
            if error not in MAY_BE_TOLD:
                trace.violate("log start", f"{self.name} at {offset} of {number}: {error.name}")
            return
        if row.low_watermark < offset:
            trace.violate("log start", f"{self.name} wants {offset}, got {row.low_watermark}")
        trace.add(self.name, f"{number} begins at {row.low_watermark}, says {incarnation}")
        starts.show(f"{incarnation} to {self.name}", partition, row.low_watermark)
