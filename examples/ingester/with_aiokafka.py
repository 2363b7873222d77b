"""The ingester on aiokafka.

    pip install aiokafka pydantic
    python examples/ingester/with_aiokafka.py

The ingester takes up to 64 readings, stores those of different sensors at the same time, and
commits.
"""

import asyncio
import signal
from collections import defaultdict

from aiokafka import AIOKafkaConsumer, ConsumerRecord
from readings import ADDRESS, INSTANCE, Reading, store


async def ingest(records: list[ConsumerRecord]) -> None:
    """The records of a sensor."""
    for record in records:
        await store(Reading.model_validate_json(record.value or b""))


async def main() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with AIOKafkaConsumer(
        "readings",
        bootstrap_servers=ADDRESS,
        group_id="ingester",
        group_instance_id=INSTANCE,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        while not stopping.is_set():
            sensors = defaultdict(list)
            for records in (await consumer.getmany(timeout_ms=500, max_records=64)).values():
                for record in records:
                    sensors[record.key].append(record)
            await asyncio.gather(*(ingest(each) for each in sensors.values()))
            if sensors:
                await consumer.commit()


if __name__ == "__main__":
    asyncio.run(main())
