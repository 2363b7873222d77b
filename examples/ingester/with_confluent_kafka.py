"""The ingester on confluent-kafka.

    pip install confluent-kafka pydantic
    python examples/ingester/with_confluent_kafka.py

The ingester takes up to 64 readings, stores those of different sensors at the same time, and
commits.
"""

import asyncio
import signal
from collections import defaultdict

from confluent_kafka import KafkaException, Message
from confluent_kafka.aio import AIOConsumer
from readings import ADDRESS, INSTANCE, Reading, store


async def ingest(messages: list[Message]) -> None:
    """The messages of a sensor."""
    for message in messages:
        await store(Reading.model_validate_json(message.value() or b""))


async def main() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    settings = {
        "bootstrap.servers": ADDRESS,
        "group.id": "ingester",
        "group.instance.id": INSTANCE,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    async with AIOConsumer(settings) as consumer:
        await consumer.subscribe(["readings"])
        while not stopping.is_set():
            sensors = defaultdict(list)
            for message in await consumer.consume(64, 0.5):
                if message.error():
                    raise KafkaException(message.error())
                sensors[message.key()].append(message)
            await asyncio.gather(*(ingest(each) for each in sensors.values()))
            if sensors:
                await consumer.commit(asynchronous=False)


if __name__ == "__main__":
    asyncio.run(main())
