"""The services of `examples/` at work: killed, stopped by SIGTERM, and started again.

Each scenario runs one program, of whatever client, against the same checks. An offset is committed
only after its record was handled. A graceful stop commits all records up to the first that is not
handled. In the end, each record was handled, and records of a key were first handled in order.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.patience import PATIENCE_S, eventually
from tests.scenarios.example_backends import Database, Payments, row_counter
from tests.scenarios.example_lines import programs
from tests.scenarios.examples import ROOT

PARTITIONS = 4
CUSTOMERS = 12
UNREADABLE = b'{"id": 7, "cents": "much"}'
Place = tuple[int, int]
"""Partition and offset."""


class Run:
    """A program that runs. Its output goes to files: nobody reads while it runs."""

    def __init__(self, program: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self._out, self._err = folder / "stdout", folder / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", str(program)],
                stdout=out,
                stderr=err,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for the condition, while the program runs."""

        def holds() -> bool:
            found = condition()
            assert found or self._process.poll() is None, self._err.read_text()
            return found

        eventually(holds, self._err.read_text)

    def stop(self) -> None:
        """End it by SIGTERM, which it obeys without an error."""
        self._process.send_signal(signal.SIGTERM)
        self.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.returncode == -signal.SIGKILL, "it ended before it was killed"

    def wait(self) -> list[str]:
        """Wait for its end. Returns the lines that it printed."""
        self._process.wait(PATIENCE_S)
        assert self._process.returncode == 0, (self._process.returncode, self._err.read_text())
        return self._out.read_text().splitlines()


def committed(log: bucketlog.Log, group: str, topic: str) -> dict[int, int]:
    """0 for partitions without a committed offset."""
    partitions = dict.fromkeys(range(log.topics.partition_count(topic)), 0)
    if group not in {each.group for each in log.groups.list()}:
        return partitions
    found = log.groups.describe(group).positions
    return partitions | {each.partition: each.committed or 0 for each in found}


class Progress:
    """The committed offsets of a group, compared with the records that a program handles."""

    def __init__(
        self, log: bucketlog.Log, group: str, topic: str, handled: Callable[[], list[Place]]
    ) -> None:
        self._log, self._group, self._topic, self._handled = log, group, topic, handled
        self._before: Counter[Place] = Counter()
        self._committed: dict[int, int] = {}

    def begin(self) -> None:
        """A program is about to start."""
        self._before = Counter(self._handled())
        self._committed = committed(self._log, self._group, self._topic)

    def check_killed(self) -> None:
        """Each record below a committed offset was handled."""
        places = set(self._handled())
        for partition, offset in committed(self._log, self._group, self._topic).items():
            missing = {(partition, at) for at in range(offset)} - places
            assert not missing, f"committed, but not handled: {sorted(missing)}"

    def check_stopped(self) -> int:
        """The program has committed what it handled, up to the first record that it did not
        handle. Returns the sum of the committed offsets."""
        self.check_killed()
        places = set(Counter(self._handled()) - self._before)
        found = committed(self._log, self._group, self._topic)
        for partition, offset in found.items():
            first = self._committed[partition]
            while (partition, first) in places:
                first += 1
            assert offset == first, f"{offset} is committed, not {first}, in {partition}"
        return sum(found.values())


def check_order(keys: Mapping[int, str], handled: Iterable[int]) -> None:
    """Records of a key were first handled in the order of their numbers."""
    newest: dict[str, int] = {}
    for number in dict.fromkeys(handled):
        assert number > newest.get(keys[number], -1), f"{number} after {newest[keys[number]]}"
        newest[keys[number]] = number


class OrderService:
    """Orders of customers; every 10th fails twice, every 25th always."""

    def __init__(
        self, client: str, cluster: EmbeddedCluster, log: bucketlog.Log, folder: Path
    ) -> None:
        self._program = programs("order_service")[client]
        self._cluster, self._log, self._folder = cluster, log, folder
        self._orders = bucketlog.Topic("orders", key=str)
        self._places: dict[int, Place] = {}
        self._customers: dict[int, str] = {}
        self._bad: Place = (-1, -1)
        for name in ("orders", "receipts", "orders-failed"):
            log.topics.ensure(name, partitions=PARTITIONS)

    def send(self, numbers: range) -> None:
        with self._log.producer() as producer:
            for number in numbers:
                customer = self._customers[number] = f"customer-{number % CUSTOMERS}"
                value = b'{"id": %d, "cents": %d}' % (number, number * 100)
                headers = [("source", b"web"), ("source", b"shop")]
                sent = producer.send(self._orders, value, key=customer, headers=headers).result()
                self._places[number] = (sent.partition, sent.offset)

    def send_unreadable(self) -> None:
        with self._log.producer() as producer:
            sent = producer.send(self._orders, UNREADABLE, key="customer-1").result()
            self._bad = (sent.partition, sent.offset)

    def handled(self) -> list[Place]:
        """The places of the orders that have a receipt or a dead letter."""
        places = []
        receipts, failed = bucketlog.Topic("receipts"), bucketlog.Topic("orders-failed")
        with self._log.consumer(receipts, start="earliest", until="end") as consumer:
            for record in consumer:
                number = int(record.value.split(b":")[1].split(b",")[0])
                assert record.raw_key == self._customers[number].encode()
                places.append(self._places[number])
        with self._log.consumer(failed, start="earliest", until="end") as consumer:
            for record in consumer:
                headers = dict(record.headers)
                partition, offset = (
                    int(headers[f"__connect.errors.{name}"] or b"-1")
                    for name in ("partition", "offset")
                )
                place = (partition, offset)
                self._check_dead_letter(record, place)
                places.append(place)
        return places

    def _check_dead_letter(self, record: "bucketlog.Record[bytes, bytes]", place: Place) -> None:
        headers = dict(record.headers)
        assert headers["__connect.errors.topic"] == b"orders"
        message = headers["__connect.errors.exception.message"] or b""
        if place == self._bad:
            assert (record.value, record.raw_key) == (UNREADABLE, b"customer-1")
            assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
            return
        (number,) = (number for number, where in self._places.items() if where == place)
        assert record.raw_key == self._customers[number].encode()
        assert record.value == b'{"id": %d, "cents": %d}' % (number, number * 100)
        assert headers["source"] == b"shop"
        assert b"no money" in message
        assert (headers["__connect.errors.exception.class.name"] or b"").endswith(b"PaymentError")

    def run(self) -> dict[str, int]:
        progress = Progress(self._log, "order-service", "orders", self.handled)
        with Payments(fails_twice=10, fails_always=25) as payments:
            where = {
                "BUCKETLOG_BOOTSTRAP": self._cluster.bootstrap,
                "PAYMENTS_URL": payments.url,
            }
            self.send(range(60))
            self.send_unreadable()
            with Run(self._program, self._folder, where) as program:
                program.until(lambda: len(payments.charged) >= 20)
                program.kill()
            progress.check_killed()
            self.send(range(60, 120))
            progress.begin()
            with Run(self._program, self._folder, where) as program:
                program.until(lambda: len(set(payments.charged)) >= 80)
                program.stop()
            progress.check_stopped()
            self.send(range(120, 125))  # the third run has work before it is stopped
            progress.begin()
            with Run(self._program, self._folder, where) as program:
                everything = {*self._places.values(), self._bad}
                program.until(lambda: set(self.handled()) == everything)
                program.stop()
            assert progress.check_stopped() == len(everything)
            check_order(self._customers, payments.charged)
            assert 1 < payments.most_at_once <= 8, payments.most_at_once
            for number in range(25, 120, 25):
                assert payments.attempts[number] >= 4, "an order was set aside too early"
            return {"records": len(everything), "handled": len(self.handled())}


class Ingester:
    """Readings of sensors."""

    SENSORS = 20

    def __init__(
        self, client: str, cluster: EmbeddedCluster, log: bucketlog.Log, folder: Path
    ) -> None:
        self._program = programs("ingester")[client]
        self._cluster, self._log, self._folder = cluster, log, folder
        self._readings = bucketlog.Topic("readings", key=str)
        self._places: dict[int, Place] = {}
        self._sensors: dict[int, str] = {}
        log.topics.ensure("readings", partitions=PARTITIONS)

    def send(self, numbers: range) -> None:
        with self._log.producer() as producer:
            sent = []
            for number in numbers:
                sensor = self._sensors[number] = f"sensor-{number % self.SENSORS}"
                value = b'{"sensor": "%s", "number": %d, "celsius": 20.5}'
                record = value % (sensor.encode(), number)
                sent.append(producer.send(self._readings, record, key=sensor))
            for number, delivery in zip(numbers, sent, strict=True):
                place = delivery.result()
                self._places[number] = (place.partition, place.offset)

    def run(self) -> dict[str, int]:
        with Database() as database:
            progress = Progress(
                self._log,
                "ingester",
                "readings",
                lambda: [self._places[number] for number in list(database.stored)],
            )
            where = {"BUCKETLOG_BOOTSTRAP": self._cluster.bootstrap, "DATABASE": database.address}
            self.send(range(400))
            with Run(self._program, self._folder, where) as program:
                program.until(lambda: len(database.stored) >= 150)
                program.kill()
            progress.check_killed()
            self.send(range(400, 800))
            progress.begin()
            with Run(self._program, self._folder, where) as program:
                program.until(lambda: len(set(database.stored)) >= 500)
                program.stop()
            progress.check_stopped()
            self.send(range(800, 820))
            progress.begin()
            with Run(self._program, self._folder, where) as program:
                program.until(lambda: len(set(database.stored)) == 820)
                program.stop()
            assert progress.check_stopped() == 820
            check_order(self._sensors, database.stored)
            assert database.most_at_once > 1
            return {"records": 820, "handled": len(database.stored)}


def etl(
    client: str, cluster: EmbeddedCluster, log: bucketlog.Log, folder: Path, postgres: str
) -> dict[str, int]:
    """Loads are killed, and repeated."""
    sales = bucketlog.Topic("sales")
    log.topics.ensure(sales, partitions=PARTITIONS)
    totals: Counter[str] = Counter()

    def send(numbers: range) -> None:
        with log.producer() as producer:
            for number in numbers:
                product = f"product-{number % 3}"
                totals[product] += number
                record = b'{"product": "%s", "cents": %d}' % (product.encode(), number)
                producer.send(sales, record, partition=number % PARTITIONS)

    where = {
        "BUCKETLOG_BOOTSTRAP": cluster.bootstrap,
        "BUCKET": cluster.bucket_url,
        "DUCKDB_FILE": str(folder / "sales.duckdb"),
        "POSTGRES_URL": postgres,
    }
    send(range(6000))
    with Run(programs("etl")[client], folder, where) as program:
        rows = row_counter(postgres)
        program.until(lambda: rows() > 0)
        program.kill()
    for _ in range(2):
        send(range(6000, 7000))
        eventually(lambda: bucketlog.replay(cluster.bucket_url, sales).plan.withheld_records == 0)
        with Run(programs("etl")[client], folder, where) as program:
            printed = program.wait()
        assert printed == [
            f"{name} {sorted(totals.items())}" for name in ("duckdb", "postgresql", "polars")
        ]
    return {"records": 8000}
