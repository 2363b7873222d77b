"""An unchanged program for Kafka: confluent-kafka's own producer and consumer, without the SDK.

    pip install confluent-kafka
    python examples/plain_confluent.py

Only `bootstrap.servers` points to bucketlog's brokers.
"""

import os

from confluent_kafka import Consumer, KafkaError, Message, Producer

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")
TOPIC = "greetings"
WORDS = ["hello", "hallo", "bonjour"]


def on_delivery(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        raise SystemExit(f"not delivered: {error}")
    print(f"delivered at offset {message.offset()}")


def main() -> None:
    producer = Producer({"bootstrap.servers": ADDRESS, "compression.type": "zstd", "acks": "all"})
    for word in WORDS:
        producer.produce(TOPIC, value=word.encode(), partition=0, on_delivery=on_delivery)
    producer.flush()

    consumer = Consumer(
        {
            "bootstrap.servers": ADDRESS,
            "group.id": "greeters",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    for _ in WORDS:
        while (message := consumer.poll(1.0)) is None:
            pass
        problem = message.error()
        if problem is not None:
            raise SystemExit(f"not consumed: {problem}")
        print((message.value() or b"").decode())
        consumer.commit(message=message, asynchronous=False)
    consumer.close()


if __name__ == "__main__":
    main()
