"""asyncio: several sources are read at the same time, and one producer sends their records.

    pip install bucketlog
    python examples/async_ingest.py

A task of a `TaskGroup` reads each source. `send_many` returns when its records are acknowledged;
the source may then discard them. All tasks of one event loop can share a producer.
"""

import asyncio
import os
from collections.abc import AsyncIterator

from pydantic import BaseModel

import bucketlog

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")
BATCH = 100


class Reading(BaseModel):
    sensor: str
    celsius: float


READINGS = bucketlog.Topic("sensor-readings", value=Reading, key=str)


async def readings_of(sensor: str, count: int) -> AsyncIterator[Reading]:
    """Stands in for a socket, a file or an HTTP stream."""
    for number in range(count):
        await asyncio.sleep(0)  # where a real source waits
        yield Reading(sensor=sensor, celsius=20 + number % 10)


async def ingest(producer: bucketlog.AsyncProducer, sensor: str, count: int) -> None:
    batch: list[Reading] = []
    async for reading in readings_of(sensor, count):
        batch.append(reading)
        if len(batch) == BATCH:
            await producer.send_many(READINGS, batch, key=lambda each: each.sensor)
            batch = []
    await producer.send_many(READINGS, batch, key=lambda each: each.sensor)


async def main() -> None:
    async with bucketlog.aconnect(ADDRESS) as log:
        await log.topics.ensure(READINGS, partitions=4)
        async with log.producer(compression="zstd") as producer, asyncio.TaskGroup() as tasks:
            for number in range(5):
                tasks.create_task(ingest(producer, f"sensor-{number}", 250))
        counts: dict[str, int] = {}
        async with log.consumer(READINGS, start="earliest", until="end") as consumer:
            async for batch in consumer.batches(1000):
                for record in batch:
                    sensor = record.value.sensor
                    counts[sensor] = counts.get(sensor, 0) + 1
    for sensor in sorted(counts):
        print(f"{sensor}: {counts[sensor]} readings")


if __name__ == "__main__":
    asyncio.run(main())
