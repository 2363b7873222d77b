"""FastStream on its two Kafka clients, aiokafka and confluent-kafka.

The published package does not contain FastStream's tests. These cover what its documentation of
Kafka brokers promises. They run in FastStream's environment (`scripts/client_suites.sh`).
"""

import asyncio
import os
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from faststream import AckPolicy, Context
from faststream.confluent import KafkaBroker as ConfluentBroker
from faststream.kafka import KafkaBroker as AiokafkaBroker

BOOTSTRAP = os.environ["GIVEN_BROKER"]
BROKERS: dict[str, Callable[..., Any]] = {"aiokafka": AiokafkaBroker, "confluent": ConfluentBroker}
WAIT_S = 60.0
"""A bound for failures."""


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest) -> Any:
    return BROKERS[request.param](BOOTSTRAP)


@pytest.fixture
def topic() -> str:
    return f"faststream-{uuid.uuid4()}"


class Received:
    """What a handler got, for the test to wait for."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Any] = asyncio.Queue()

    def add(self, value: Any) -> None:
        self._queue.put_nowait(value)

    async def next(self, count: int = 1) -> list[Any]:
        async with asyncio.timeout(WAIT_S):
            return [await self._queue.get() for _ in range(count)]


def from_start(broker: Any, topic: str, **more: Any) -> Any:
    return broker.subscriber(topic, group_id=f"of-{topic}", auto_offset_reset="earliest", **more)


async def test_bodies_keys_and_headers(broker: Any, topic: str) -> None:
    received = Received()

    @from_start(broker, topic)
    async def handle(body: dict[str, int], message: Any = Context()) -> None:  # noqa: B008 - FastStream's way
        raw = message.raw_message
        key = raw.key() if callable(raw.key) else raw.key
        received.add((body, key, message.headers["trace"]))

    async with broker:
        await broker.start()
        await broker.publish({"n": 1}, topic, key=b"k", headers={"trace": "t1"})
        assert await received.next() == [({"n": 1}, b"k", "t1")]


async def test_records_of_a_key_keep_their_order(broker: Any, topic: str) -> None:
    received = Received()

    @from_start(broker, topic)
    async def handle(body: int) -> None:
        received.add(body)

    async with broker:
        await broker.start()
        for number in range(50):
            await broker.publish(number, topic, key=b"k")
        assert await received.next(50) == list(range(50))


async def test_batches(broker: Any, topic: str) -> None:
    received = Received()

    @from_start(broker, topic, batch=True)
    async def handle(bodies: list[int]) -> None:
        for body in bodies:
            received.add(body)

    async with broker:
        await broker.start()
        await broker.publish_batch(1, 2, 3, topic=topic)
        assert sorted(await received.next(3)) == [1, 2, 3]


async def test_a_result_is_published_to_the_next_topic(broker: Any, topic: str) -> None:
    received = Received()

    @broker.publisher(f"{topic}-out")
    @from_start(broker, topic)
    async def double(body: int) -> int:
        return 2 * body

    @from_start(broker, f"{topic}-out")
    async def handle(body: int) -> None:
        received.add(body)

    async with broker:
        await broker.start()
        await broker.publish(21, topic)
        assert await received.next() == [42]


async def test_a_refused_record_comes_again(broker: Any, topic: str) -> None:
    received = Received()
    attempts = 0

    @from_start(broker, topic, ack_policy=AckPolicy.NACK_ON_ERROR)
    async def handle(body: int) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ValueError("the first attempt fails")
        received.add(body)

    async with broker:
        await broker.start()
        await broker.publish(7, topic)
        assert await received.next() == [7]
        assert attempts == 2


async def test_another_consumer_of_the_group_continues(topic: str) -> None:
    async def one_record(number: int) -> None:
        """A broker that publishes and gets one record, and leaves the group."""
        broker, received = AiokafkaBroker(BOOTSTRAP), Received()

        @from_start(broker, topic, ack_policy=AckPolicy.ACK)
        async def handle(body: int) -> None:
            received.add(body)

        async with broker:
            await broker.start()
            await broker.publish(number, topic)
            assert await received.next() == [number]

    await one_record(1)
    await one_record(2)  # does not get the first record


async def test_two_groups_both_get_all_records(broker: Any, topic: str) -> None:
    received = Received()

    @broker.subscriber(topic, group_id=f"a-{topic}", auto_offset_reset="earliest")
    async def first(body: int) -> None:
        received.add(("a", body))

    @broker.subscriber(topic, group_id=f"b-{topic}", auto_offset_reset="earliest")
    async def second(body: int) -> None:
        received.add(("b", body))

    async with broker:
        await broker.start()
        await broker.publish(1, topic)
        assert sorted(await received.next(2)) == [("a", 1), ("b", 1)]


async def test_ping(broker: Any) -> None:
    async with broker:
        await broker.start()
        assert await broker.ping(timeout=WAIT_S)
