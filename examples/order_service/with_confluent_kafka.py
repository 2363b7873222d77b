"""The order service on confluent-kafka.

    pip install confluent-kafka tenacity pydantic
    python examples/order_service/with_confluent_kafka.py

The service takes up to 100 orders, charges them in eight threads, waits for all acknowledgements,
and commits.
"""

import signal
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from pydantic import ValidationError
from shop import ADDRESS, INSTANCE, Order, PaymentError, charge
from tenacity import retry, stop_after_attempt, wait_random_exponential

failures: list[KafkaError] = []
stopping = threading.Event()


def delivered(error: KafkaError | None, _: Message) -> None:
    if error is not None:
        failures.append(error)


@retry(stop=stop_after_attempt(4), wait=wait_random_exponential(0.1, max=10), reraise=True)
def charge_with_retries(order: Order):
    return charge(order)


def handle(producer: Producer, messages: list[Message]) -> None:
    """The messages of a customer."""
    for message in messages:
        try:
            receipt = charge_with_retries(Order.model_validate_json(message.value() or b""))
        except (PaymentError, ValidationError) as error:
            set_aside(producer, message, error)
        else:
            producer.produce("receipts", receipt.model_dump_json(), message.key())


def set_aside(producer: Producer, message: Message, error: Exception) -> None:
    added = {
        "topic": message.topic(),
        "partition": str(message.partition()),
        "offset": str(message.offset()),
        "stage": "VALUE_CONVERTER" if isinstance(error, ValidationError) else "TASK_PUT",
        "exception.class.name": type(error).__qualname__,
        "exception.message": str(error),
    }
    headers = [(f"__connect.errors.{name}", text) for name, text in added.items()]
    headers = [*(message.headers() or ()), *headers]
    producer.produce("orders-failed", message.value(), message.key(), headers=headers)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    producer = Producer(
        {"bootstrap.servers": ADDRESS, "enable.idempotence": True, "on_delivery": delivered}
    )
    consumer = Consumer(
        {
            "bootstrap.servers": ADDRESS,
            "group.id": "order-service",
            "group.instance.id": INSTANCE,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    try:
        with ThreadPoolExecutor(8) as pool:
            while not stopping.is_set():
                customers = defaultdict(list)
                for message in consumer.consume(100, 0.5):
                    if message.error():
                        raise KafkaException(message.error())
                    customers[message.key()].append(message)
                list(pool.map(lambda each: handle(producer, each), customers.values()))
                producer.flush()
                if failures:
                    raise KafkaException(failures[0])
                if customers:
                    consumer.commit(asynchronous=False)
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
