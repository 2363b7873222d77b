"""The SDK for asyncio against a real broker."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest
from pydantic import BaseModel

import bucketlog
from bucketlog import AsyncLog, Log, Topic
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError, LogError
from tests.rigs.patience import PATIENCE_S, eventually, let_pass_async

_numbers = count()


class Order(BaseModel):
    id: int


@pytest.fixture
async def alog(broker: EmbeddedCluster) -> AsyncIterator[AsyncLog]:
    async with bucketlog.aconnect(broker.bootstrap) as connected:
        yield connected


@pytest.fixture
def name() -> str:
    return f"async-{next(_numbers)}"


async def filled(alog: AsyncLog, name: str, records: int) -> Topic[bytes, str]:
    topic = Topic(name, value=str)
    await alog.topics.ensure(topic, partitions=1)
    async with alog.producer() as producer:
        await producer.send_many(topic, (str(at) for at in range(records)))
    return topic


def committed(log: Log, group: str) -> list[int | None]:
    return [row.committed for row in log.groups.describe(group).positions]


async def test_typed_records_there_and_back(alog: AsyncLog, name: str) -> None:
    orders = Topic(name, value=Order, key=str)
    assert (await alog.topics.ensure(orders, partitions=3, retention="7d")).partitions == 3
    async with alog.producer() as producer:
        first = await producer.send(orders, Order(id=0), key="eu", headers={"src": "web"})
        rest = [producer.send(orders, Order(id=at), key=f"k{at}") for at in range(1, 500)]
        placed = [first, *[await each for each in rest]]
        assert await producer.send_many(orders, [Order(id=500)], key=lambda order: "x") == 1
    async with alog.consumer(orders, start="earliest", until="end") as consumer:
        back = {(record.partition, record.offset): record async for record in consumer}
    assert len(back) == 501
    assert [back[place.partition, place.offset].value.id for place in placed] == list(range(500))
    assert back[first.partition, first.offset].headers == (("src", b"web"),)


async def test_waiting_in_many_ways(alog: AsyncLog, name: str) -> None:
    topic = await filled(alog, name, 0)
    async with alog.producer() as producer:
        delivery = producer.send(topic, "a")
        twice = await asyncio.gather(delivery, delivery, producer.send(topic, "b"))
        assert [place.offset for place in twice] == [0, 0, 1]
        assert delivery.done
        assert (await asyncio.wait_for(producer.send(topic, "c"), PATIENCE_S)).offset == 2


async def test_a_small_queue_holds_back_in_order(alog: AsyncLog, name: str) -> None:
    topic = await filled(alog, name, 0)
    async with alog.producer(queue_records=50) as producer:
        early = [producer.send(topic, str(at)) for at in range(100)]
        # the loop is kept waiting: room comes while it cannot give it to the line
        eventually(lambda: not len(producer._outbox.kafka))
        early += [producer.send(topic, str(at)) for at in range(100, 500)]
        assert await producer.send_many(topic, (str(at) for at in range(500, 3000))) == 2500
        assert [(await each).offset for each in early] == list(range(500))
    async with alog.consumer(topic, start="earliest", until="end") as consumer:
        assert [int(record.value) async for record in consumer] == list(range(3000))


async def test_the_line_moves_on_by_itself(alog: AsyncLog, name: str) -> None:
    """All that was queued is reported while nobody waits, and only then is one in line awaited."""
    topic = await filled(alog, name, 0)
    async with alog.producer(queue_records=50) as producer:
        sent = [producer.send(topic, str(at)) for at in range(500)]
        # the loop is kept waiting, so that no report finds a waiter
        eventually(lambda: not len(producer._outbox.kafka))
        async with asyncio.timeout(PATIENCE_S):
            assert [(await each).offset for each in sent] == list(range(500))


async def test_the_line_is_bounded(
    alog: AsyncLog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketlog.client.async_producer.LINE_RECORDS_MAX", 20)
    topic = await filled(alog, name, 0)
    async with alog.producer(queue_records=10) as producer:
        sent = []
        with pytest.raises(LogError, match="await some") as caught:  # noqa: PT012  # which one is refused is the broker's doing
            for at in range(1000):
                sent.append(producer.send(topic, str(at)))  # noqa: PERF401  # what was sent is kept
        assert caught.value.code == "QUEUE_FULL"
        assert [(await each).offset for each in sent] == list(range(len(sent)))


async def test_a_cancelled_wait_keeps_the_records_fate(alog: AsyncLog, name: str) -> None:
    """What failed is raised at the end; what was delivered stays delivered."""
    topic = Topic(name)
    await alog.topics.create(topic, configs={"max.message.bytes": "1000"})
    async with alog.producer(linger_ms=200) as producer:
        good = producer.send(topic, b"x")
        waiting = asyncio.ensure_future(good)
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await good).offset == 0

    async def cancelled(*, many: bool) -> None:
        async with alog.producer(linger_ms=200) as producer:

            async def send() -> None:
                if many:
                    await producer.send_many(topic, [b"x" * 5000])
                else:
                    await producer.send(topic, b"x" * 5000)

            waiting = asyncio.ensure_future(send())
            await let_pass_async(0.05)
            waiting.cancel()

    for many in (False, True):
        with pytest.raises(LogError) as caught:
            await cancelled(many=many)
        assert caught.value.code == "MESSAGE_TOO_LARGE"


async def test_a_failure_is_raised_once(alog: AsyncLog, name: str) -> None:
    topic = Topic(name)
    await alog.topics.create(topic, configs={"max.message.bytes": "1000"})
    async with alog.producer() as producer:
        with pytest.raises(LogError):
            await producer.send(topic, b"x" * 5000)
        with pytest.raises(LogError, match="not delivered"):
            await producer.send_many(topic, [b"x" * 5000, b"y" * 5000])
        await producer.flush()
        with pytest.raises(InvalidDataError):
            producer.send(topic, "text")  # type: ignore[misc]  # what a type checker refuses too

    async def fail() -> None:
        async with alog.producer() as producer:
            producer.send(topic, b"x" * 5000)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        await fail()
    assert "not delivered" in caught.value.__notes__[0]


async def test_flush_has_a_timeout(alog: AsyncLog, name: str, broker: EmbeddedCluster) -> None:
    topic = await filled(alog, name, 0)
    nobody = bucketlog.aconnect("127.0.0.1:1")  # not entered: nothing listens there
    producer = nobody.producer(delivery_timeout_s=1.0)
    delivery = producer.send(topic, "x")
    with pytest.raises(TimeoutError, match=r"up to \d+ records were not delivered"):
        await producer.flush(0.1)
    with pytest.raises(LogError):
        await delivery
    await nobody.close()


async def test_groups_commit_after_the_body(alog: AsyncLog, log: Log, name: str) -> None:
    topic = await filled(alog, name, 100)

    async def fail_at(number: int) -> None:
        async with alog.consumer(topic, group=name, start="earliest") as consumer:
            async for record in consumer:
                if record.offset == number:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_at(40)
    assert committed(log, name) == [40]
    async with alog.consumer(topic, group=name) as consumer:
        async for record in consumer:
            assert record.offset >= 40
            if record.offset == 59:
                break
    assert committed(log, name) == [60]
    async with alog.consumer(topic, group=name, until="end") as consumer:
        sizes = [len(batch) async for batch in consumer.batches(15)]
        assert consumer.assignment == {0}
    assert (sum(sizes), max(sizes)) == (40, 15)
    assert committed(log, name) == [100]


async def test_committing_by_hand(alog: AsyncLog, log: Log, name: str) -> None:
    topic = await filled(alog, name, 30)
    options: dict[str, Any] = {"group": name, "start": "earliest", "auto_commit": False}
    async with alog.consumer(topic, **options) as consumer:
        await consumer.poll(10, PATIENCE_S)
        await consumer.commit()
        await consumer.poll(10, PATIENCE_S)
    assert committed(log, name) == [10]


async def test_a_copy_as_the_documentation_has_it(alog: AsyncLog, log: Log, name: str) -> None:
    topic = await filled(alog, name, 5000)
    clean = await filled(alog, f"{name}-clean", 0)
    async with alog.producer() as producer:
        consumer = alog.consumer(topic, group=name, start="earliest", until="end")
        async for batch in consumer.batches(1000):
            await producer.send_many(clean, (f"c{record.value}" for record in batch))
    async with alog.consumer(clean, start="earliest", until="end") as back:
        assert [record.value async for record in back] == [f"c{at}" for at in range(5000)]


async def test_a_cancelled_wait_loses_no_record(alog: AsyncLog, name: str) -> None:
    """Waits are cut short again and again while records come."""
    topic = await filled(alog, name, 0)
    seen: list[str] = []
    async with alog.producer() as producer, alog.consumer(topic, start="earliest") as consumer:
        for at in range(60):
            delivery = producer.send(topic, str(at))
            try:
                async with asyncio.timeout(0.001 * (at % 7)):
                    if at % 2:
                        seen.append((await anext(consumer)).value)
                    else:
                        seen += [record.value for record in await consumer.poll(100, 5)]
            except TimeoutError:
                pass
            await delivery
        while len(seen) < 60:
            seen.append((await asyncio.wait_for(anext(consumer), PATIENCE_S)).value)
    assert seen == [str(at) for at in range(60)]


async def test_the_loop_stays_free_while_waiting(
    alog: AsyncLog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await filled(alog, name, 0)
    async with alog.consumer(topic) as consumer:
        waiting = asyncio.ensure_future(anext(consumer))
        loop = asyncio.get_running_loop()
        run_once, rounds = loop._run_once, 0  # type: ignore[attr-defined]  # asyncio's own

        def counted() -> None:
            nonlocal rounds
            rounds += 1
            run_once()

        monkeypatch.setattr(loop, "_run_once", counted)
        await let_pass_async(0.5)
        assert rounds < 1000, "it does not wait, it asks again and again"
        async with alog.producer() as producer:  # by the same loop, which is therefore free
            await producer.send(topic, "x")
        assert (await asyncio.wait_for(waiting, PATIENCE_S)).value == "x"


async def test_poison(alog: AsyncLog, name: str) -> None:
    raw = Topic(name)
    await alog.topics.create(raw)
    await alog.topics.create(f"{name}-dead")
    async with alog.producer() as producer:
        await producer.send_many(raw, [b'{"id":0}', b"poison", b'{"id":2}'])
    orders = Topic(name, value=Order)
    async with alog.consumer(orders, start="earliest", until="end") as consumer:
        assert (await anext(consumer)).value.id == 0
        with pytest.raises(InvalidDataError, match="@1"):
            await anext(consumer)
        assert [record.value.id async for record in consumer] == [2]
    async with alog.consumer(orders, start="earliest", until="end") as consumer:
        assert len(await consumer.poll(10, PATIENCE_S)) == 1
        with pytest.raises(InvalidDataError, match="@1"):
            await consumer.poll(10, PATIENCE_S)
        assert [record.value.id async for record in consumer] == [2]
    aside = bucketlog.DeadLetter(f"{name}-dead")
    async with alog.consumer(orders, start="earliest", until="end", on_error=aside) as consumer:
        assert [record.value.id async for record in consumer] == [0, 2]
        assert consumer.passed_over == 1
    assert (await alog.topics.describe(f"{name}-dead")).partitions[0].latest == 1


async def test_administration_and_errors(alog: AsyncLog, name: str) -> None:
    await alog.topics.create(name, partitions=2)
    assert name in {info.name for info in await alog.topics.list()}
    with pytest.raises(LogError) as caught:
        await alog.groups.describe(f"no-{name}")
    assert caught.value.code == "GROUP_ID_NOT_FOUND"
    with pytest.raises(TypeError, match="grup"):
        alog.consumer(Topic(name), grup="x")  # type: ignore[call-overload]  # that is the point
    with pytest.raises(ConfigurationError, match="no partition 2"):
        await anext(alog.consumer(Topic(name), partitions=[2]))
    with pytest.raises(LogError, match="no broker answers"):
        async with bucketlog.aconnect("127.0.0.1:1"):
            pass


_ENDLESS = """
import asyncio, sys
import bucketlog

async def main(bootstrap, name):
    topic = bucketlog.Topic(name, value=str)
    async with bucketlog.aconnect(bootstrap) as log:
        async with log.producer() as producer:
            async with log.consumer(topic, group=name, start="earliest") as consumer:
                async for record in consumer:
                    await producer.send(topic, "again")
                    print(record.offset, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def test_ctrl_c_ends_soon_and_leaves_the_group(
    log: Log, broker: EmbeddedCluster, name: str
) -> None:
    topic = Topic(name, value=str)
    log.topics.create(topic, partitions=1)
    with log.producer() as producer:
        producer.send_many(topic, ["a", "b", "c"])
    command = [sys.executable, "-c", _ENDLESS, broker.bootstrap, name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for _ in range(20):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in told
    assert "never retrieved" not in told
    assert log.groups.describe(name).members == ()
    assert (committed(log, name)[0] or 0) >= 19
