"""A compacted topic: who writes it, and what must be left of it in the end."""

from collections.abc import Mapping
from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import build_batch, fetch_values
from tests.simulation.clients import Client, Surface
from tests.simulation.truth import decode

KEYS = 6
CONFIGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1"}
PATIENCE = 40


class KeyedWriter(Client):
    """The only user of topic `k-<name>`: one record after another, some of one key, each tried
    once. A value names its key: `n<name>-<key>:<number>`."""

    def __init__(self, name: str, surface: Surface, random: Random) -> None:
        super().__init__(name, surface, random)
        self.topic = f"k-{name}"
        self.partition: TopicIdPartition | None = None
        self.is_ending = False
        self._written = 0

    async def run(self) -> None:
        created = await self.create_topic(self.topic, 1, CONFIGS)
        self.partition = TopicIdPartition(created, 0)
        self.surface.topics[self.topic] = created
        self.surface.truth.compacted.add(self.partition)
        while not self.is_ending:
            await self._write(self.partition)
            await self.pause(0.6)

    async def _write(self, partition: TopicIdPartition) -> None:
        self._written += 1
        key = f"{self.name}-{self.random.randrange(KEYS)}"
        value = f"n{key}:{self._written}".encode()
        self.surface.truth.sent.add(value)
        records = build_batch(
            [(key.encode(), value)], producer_id=-1, producer_epoch=-1, base_sequence=-1
        )
        rows = [{"index": 0, "records": records}]
        data = [{"name": self.topic, "partition_data": rows}]
        values: dict[str, Any] = {"transactional_id": None, "acks": -1, "timeout": 3_000}
        values["topic_data"] = data
        answer = await self.call(self.any_broker(), ApiKey.PRODUCE, 9, **values)
        row = answer.responses[0].partition_responses[0] if answer is not None else None
        if row is not None and ErrorCode(row.error_code) is ErrorCode.none:
            self.surface.truth.acknowledge(self.name, partition, row.base_offset, [value])

    async def check(self, written: Mapping[int, bytes]) -> None:
        """`written` is all that was ever committed to the topic. The last of each key is there, and
        nothing that was not written."""
        found = await self._read_all(max(written, default=-1) + 1)
        trace = self.surface.trace
        if found is None:
            trace.violate("progress", f"{self.topic} is not read to its end")
            return
        last: dict[bytes, int] = {}
        for offset in sorted(written):
            last[written[offset].partition(b":")[0]] = offset
        for key, offset in last.items():
            if found.get(offset) != written[offset]:
                trace.violate("last of its key", f"{key!r} at {offset} of {self.topic}")
        for offset, value in found.items():
            if written.get(offset) != value:
                trace.violate("moved", f"{value!r} at {offset} of {self.topic}")
        trace.events["keys: records written"] += len(written)
        trace.events["keys: records left"] += len(found)

    async def _read_all(self, end: int) -> dict[int, bytes] | None:
        found: dict[int, bytes] = {}
        at = 0
        for _ in range(PATIENCE):
            if at >= end:
                return found
            wanted = fetch_values(self.topic, {0: at}, partition_bytes=1 << 16, max_wait=500)
            answer: Any = await self.call(self.any_broker(), ApiKey.FETCH, 11, **wanted)
            row = answer.responses[0].partitions[0] if answer is not None else None
            if row is None or ErrorCode(row.error_code) is not ErrorCode.none:
                await self.pause(1.0)
                continue
            records, upto = decode(bytes(row.records or b""))
            found |= {offset: value for offset, value in records if offset >= at}
            at = max(at, upto)
        return found if at >= end else None
