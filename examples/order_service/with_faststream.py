"""The order service on FastStream.

    pip install 'faststream[kafka]' tenacity
    python examples/order_service/with_faststream.py

FastStream calls the function with up to 100 orders, and commits them when the function returns. It
charges eight orders at the same time. `max_workers` would be shorter, but its workers lose their
last commits when the program stops, and an order that waits holds up the others of its partition.
"""

import asyncio
from collections import defaultdict

from aiokafka import ConsumerRecord
from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker, KafkaMessage
from pydantic import ValidationError
from shop import ADDRESS, INSTANCE, Order, PaymentError, acharge
from tenacity import retry, stop_after_attempt, wait_random_exponential

broker = KafkaBroker(ADDRESS, enable_idempotence=True, graceful_timeout=60)
app = FastStream(broker)
slots = asyncio.Semaphore(8)


@retry(stop=stop_after_attempt(4), wait=wait_random_exponential(0.1, max=10), reraise=True)
async def retried(order: Order):
    async with slots:
        return await acharge(order)


async def handle(records: list[ConsumerRecord]) -> None:
    """The records of a customer."""
    for record in records:
        try:
            receipt = await retried(Order.model_validate_json(record.value or b""))
        except (PaymentError, ValidationError) as error:
            await set_aside(record, error)
        else:
            await broker.publish(receipt, "receipts", key=record.key)


async def set_aside(record: ConsumerRecord, error: Exception) -> None:
    added = {
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "stage": "VALUE_CONVERTER" if isinstance(error, ValidationError) else "TASK_PUT",
        "exception.class.name": type(error).__qualname__,
        "exception.message": str(error),
    }
    headers = {name: value.decode() for name, value in record.headers}
    headers |= {f"__connect.errors.{name}": text for name, text in added.items()}
    await broker.publish(record.value, "orders-failed", key=record.key, headers=headers)


@broker.subscriber(
    "orders",
    group_id="order-service",
    group_instance_id=INSTANCE,
    auto_offset_reset="earliest",
    batch=True,
    max_records=100,
    ack_policy=AckPolicy.NACK_ON_ERROR,
)
async def serve(message: KafkaMessage) -> None:
    customers = defaultdict(list)
    for record in message.raw_message:
        customers[record.key].append(record)
    await asyncio.gather(*(handle(each) for each in customers.values()))


if __name__ == "__main__":
    asyncio.run(app.run())
