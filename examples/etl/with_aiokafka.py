"""The ETL on aiokafka.

    pip install aiokafka pydantic duckdb pg8000 polars
    python examples/etl/with_aiokafka.py

The frame is made of records that are consumed from the brokers.
"""

import asyncio
from collections.abc import AsyncIterator

import polars
from aiokafka import AIOKafkaConsumer
from warehouse import ADDRESS, Row, Sale, Warehouse, frame_totals


def open_consumer(group: str | None) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        "sales",
        bootstrap_servers=ADDRESS,
        group_id=group,
        group_instance_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


async def read(consumer: AIOKafkaConsumer) -> AsyncIterator[list[Row]]:
    """Batches up to the present end of each partition."""
    while not consumer.assignment():  # noqa: ASYNC110  # aiokafka has no event for it
        await asyncio.sleep(0.1)
    ends = await consumer.end_offsets(consumer.assignment())
    left = {part for part, end in ends.items() if await consumer.position(part) < end}
    while left:
        rows = []
        for records in (await consumer.getmany(timeout_ms=1000, max_records=500)).values():
            for record in records:
                sale = Sale.model_validate_json(record.value or b"")
                rows.append(Row(record.partition, record.offset, sale.product, sale.cents))
        if rows:
            yield rows
        left = {part for part in left if await consumer.position(part) < ends[part]}


async def load(warehouse: Warehouse) -> None:
    async with open_consumer(warehouse.name) as consumer:
        async for rows in read(consumer):
            await asyncio.to_thread(warehouse.upsert, rows)
            await consumer.commit()


async def frame() -> polars.DataFrame:
    async with open_consumer(None) as consumer:
        return polars.DataFrame([row async for rows in read(consumer) for row in rows])


async def main() -> None:
    for name in ("duckdb", "postgresql"):
        with Warehouse(name) as warehouse:
            await load(warehouse)
            print(name, warehouse.totals())
    print("polars", frame_totals(await frame()))


if __name__ == "__main__":
    asyncio.run(main())
