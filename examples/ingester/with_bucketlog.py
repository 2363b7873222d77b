"""An asyncio ingester: it stores readings in a database, many at the same time.

    pip install bucketlog
    python examples/ingester/with_bucketlog.py       # until SIGTERM

Up to 64 readings are stored at the same time, those of a sensor (the key) in order. A reading is
committed after it is stored, so `kill -9` loses nothing. SIGTERM ends the ingester after the
running calls, and commits them.
"""

import asyncio
import signal

from readings import ADDRESS, INSTANCE, Reading, store

import bucketlog

READINGS = bucketlog.Topic("readings", value=Reading)


async def ingest(record: bucketlog.Record[bytes, Reading]) -> None:
    await store(record.value)


async def main() -> None:
    async with (
        bucketlog.aconnect(ADDRESS) as log,
        log.consumer(
            READINGS, group="ingester", instance_id=INSTANCE, start="earliest", auto_commit="ack"
        ) as consumer,
    ):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, consumer.stop)
        await consumer.process(ingest, concurrency=64)


if __name__ == "__main__":
    asyncio.run(main())
