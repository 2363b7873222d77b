"""The order service on aiokafka.

    pip install aiokafka tenacity pydantic
    python examples/order_service/with_aiokafka.py

The service takes up to 100 orders, charges eight at the same time, waits for all acknowledgements,
and commits.
"""

import asyncio
import signal
from collections import defaultdict

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord
from pydantic import ValidationError
from shop import ADDRESS, INSTANCE, Order, PaymentError, acharge
from tenacity import retry, stop_after_attempt, wait_random_exponential

slots = asyncio.Semaphore(8)


@retry(stop=stop_after_attempt(4), wait=wait_random_exponential(0.1, max=10), reraise=True)
async def retried(order: Order):
    async with slots:
        return await acharge(order)


async def handle(producer: AIOKafkaProducer, records: list[ConsumerRecord]) -> None:
    """The records of a customer."""
    for record in records:
        try:
            receipt = await retried(Order.model_validate_json(record.value or b""))
        except (PaymentError, ValidationError) as error:
            await set_aside(producer, record, error)
        else:
            await producer.send_and_wait(
                "receipts", receipt.model_dump_json().encode(), key=record.key
            )


async def set_aside(producer: AIOKafkaProducer, record: ConsumerRecord, error: Exception) -> None:
    added = {
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "stage": "VALUE_CONVERTER" if isinstance(error, ValidationError) else "TASK_PUT",
        "exception.class.name": type(error).__qualname__,
        "exception.message": str(error),
    }
    headers = [(f"__connect.errors.{name}", text.encode()) for name, text in added.items()]
    await producer.send_and_wait(
        "orders-failed", record.value, key=record.key, headers=[*record.headers, *headers]
    )


async def main() -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with (
        AIOKafkaProducer(bootstrap_servers=ADDRESS, enable_idempotence=True) as producer,
        AIOKafkaConsumer(
            "orders",
            bootstrap_servers=ADDRESS,
            group_id="order-service",
            group_instance_id=INSTANCE,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
    ):
        while not stopping.is_set():
            customers = defaultdict(list)
            for records in (await consumer.getmany(timeout_ms=500, max_records=100)).values():
                for record in records:
                    customers[record.key].append(record)
            await asyncio.gather(*(handle(producer, each) for each in customers.values()))
            if customers:
                await consumer.commit()


if __name__ == "__main__":
    asyncio.run(main())
