"""The ingester on FastStream.

    pip install 'faststream[kafka]'
    python examples/ingester/with_faststream.py

FastStream calls the function with up to 64 readings, and commits them when the function returns.
`max_workers` would be shorter, but its workers lose their last commits when the program stops.
"""

import asyncio
from collections import defaultdict

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker
from readings import ADDRESS, INSTANCE, Reading, store

broker = KafkaBroker(ADDRESS, graceful_timeout=60)
app = FastStream(broker)


async def ingest(readings: list[Reading]) -> None:
    """The readings of a sensor."""
    for reading in readings:
        await store(reading)


@broker.subscriber(
    "readings",
    group_id="ingester",
    group_instance_id=INSTANCE,
    auto_offset_reset="earliest",
    batch=True,
    max_records=64,
    ack_policy=AckPolicy.NACK_ON_ERROR,
)
async def ingest_batch(readings: list[Reading]) -> None:
    sensors = defaultdict(list)
    for reading in readings:
        sensors[reading.sensor].append(reading)
    await asyncio.gather(*(ingest(each) for each in sensors.values()))


if __name__ == "__main__":
    asyncio.run(app.run())
