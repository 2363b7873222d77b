"""Producers of other people that send one record after another by one client, until it is enough.

Invariant: a producer fails at the first error of which its client tells, also at those after which
the client carries on.
"""

import asyncio
import json
import signal
import threading
from collections import Counter
from collections.abc import Callable

import aiokafka
import kafka
from confluent_kafka import Producer

from tests.rigs.client_tls import ClientTls
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.servers import franz_go
from tests.servers.kafka_tools import KafkaTools

PACE_S = 0.01


def _produce_librdkafka(
    where: str, tls: ClientTls, topic: str, is_enough: Callable[[], bool]
) -> int:
    errors: list[str] = []
    sent = produce_until(where, tls, is_enough, errors, topic=topic)
    assert errors == []
    return sent


def produce_until(
    where: str,
    tls: ClientTls,
    is_enough: Callable[[], bool],
    errors: list[str],
    *,
    topic: str = "t",
) -> int:
    """By librdkafka. `errors` gets those that librdkafka recovers from, as when a session ends
    before a busy machine has logged in again."""
    failures: list[str] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": where,
            "enable.idempotence": True,
            "error_cb": lambda error: errors.append(str(error)),
        }
        | tls.librdkafka()
    )
    sent = 0
    while not is_enough():
        producer.produce(topic, b"%d" % sent, partition=0, on_delivery=delivered)
        sent += 1
        producer.poll(PACE_S)
    assert producer.flush(PATIENCE_S) == 0
    assert failures == []
    return sent


def _produce_aiokafka(where: str, tls: ClientTls, topic: str, is_enough: Callable[[], bool]) -> int:
    async def run() -> int:
        sent = 0
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=where, enable_idempotence=True, **tls.python()
        ) as producer:
            while not await asyncio.to_thread(is_enough):
                await producer.send_and_wait(topic, b"%d" % sent, partition=0)
                sent += 1
        return sent

    return asyncio.run(run())


def _produce_kafka_python(
    where: str, tls: ClientTls, topic: str, is_enough: Callable[[], bool]
) -> int:
    producer = kafka.KafkaProducer(
        bootstrap_servers=where, enable_idempotence=True, acks="all", **tls.python()
    )
    sent = 0
    try:
        while not is_enough():
            producer.send(topic, b"%d" % sent, partition=0).get(PATIENCE_S)
            sent += 1
    finally:
        producer.close(PATIENCE_S)
    return sent


def _produce_java(where: str, tls: ClientTls, topic: str, is_enough: Callable[[], bool]) -> int:
    """Apache Kafka's verifiable producer. Raises `ConfigurationError` where the tools are not
    installed."""
    config = tls.ca.with_name(f"{topic}-java.properties")
    config.write_text(tls.java())
    with config.with_suffix(".log").open("wb") as complaints:
        process = KafkaTools(where, *tls.java_options()).start(
            "kafka-verifiable-producer",
            *("--topic", topic, "--throughput", "100", "--command-config", str(config)),
            complaints=complaints,
        )
    told: Counter[str] = Counter()
    errors: list[str] = []

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                name = json.loads(line)["name"]
                told[name] += 1
                if name == "producer_send_error":
                    errors.append(line)

    reading = threading.Thread(target=read, name="java")
    reading.start()
    try:
        deadline = Deadline("the producer does not end")
        while not is_enough():
            assert process.poll() is None, config.with_suffix(".log").read_text()
            deadline.pause()
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        reading.join()
        assert process.stdout is not None
        process.stdout.close()
    assert not errors, f"{told}, the first: {errors[0]}"
    return told["producer_send_success"]


def _produce_franz_go(where: str, tls: ClientTls, topic: str, is_enough: Callable[[], bool]) -> int:
    """Raises `ConfigurationError` where the program is not installed."""
    process = franz_go.start(where, tls, "paced", topic)
    try:
        deadline = Deadline("the producer does not end")
        while process.poll() is None and not is_enough():
            deadline.pause()
        told, complaints = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
    assert not process.returncode, complaints.decode()
    return int(told)


PACED: dict[str, Callable[[str, ClientTls, str, Callable[[], bool]], int]] = {
    "confluent-kafka": _produce_librdkafka,
    "aiokafka": _produce_aiokafka,
    "kafka-python": _produce_kafka_python,
    "java": _produce_java,
    "franz-go": _produce_franz_go,
}
"""Each produces the numbers 0, 1, … by one client until it is enough, and returns how many."""
