"""Consumers that note all they were told in a history: plain ones and a group's member.

None may ever be told that an offset is out of range: they are set to take that for an error.
"""

import asyncio
import threading
import time
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress

import aiokafka
import confluent_kafka
from aiokafka.errors import OffsetOutOfRangeError
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.history import Commit, CommittedSeen, History, Read, Seen, Sent
from tests.rigs.patience import Deadline
from tests.rigs.wire_client import WireClient
from tests.scenarios.load import PROGRESS_TIMEOUT_S, sent_of

POLL_S = 0.1
POLL_RECORDS = 500
ASK_PAUSE_S = 0.1
ASK_TIMEOUT_S = 30.0
SESSION_MS = 10_000
HEARTBEAT_MS = 300


NO_COORDINATOR = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


class Onlooker(threading.Thread):
    """`positions` are the next offsets to be read, by partition; `failures` what went wrong."""

    def __init__(
        self, name: str, bootstrap: str, history: History, *, topic: str, partitions: int
    ) -> None:
        super().__init__(name=name)
        self.failures: list[str] = []
        self.positions = dict.fromkeys(range(partitions), 0)
        self._where = bootstrap
        self._history = history
        self._topic = topic
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        ended = False
        try:
            self._look_on()
            ended = True
        finally:
            if not ended:
                self.failures.append(f"{self.name} ended with an error: see its traceback")

    def wait_for(self, positions: dict[int, int]) -> None:
        """Until it is there. Raises `AssertionError` where it does not get on."""
        deadline = Deadline(lambda: f"{self.name} is at {self.positions}")
        while any(self.positions[partition] < offset for partition, offset in positions.items()):
            assert not self.failures, self.failures[:3]
            deadline.pause(POLL_S)

    @abstractmethod
    def _look_on(self) -> None: ...

    def _take(self, observer: str, rows: dict[int, list[tuple[int, Sent]]], began: float) -> None:
        """The rows follow each partition's position; polling for them began at `began`."""
        for partition, mine in rows.items():
            first = self.positions[partition]
            self._history.reads.append(Read(self.name, partition, first, mine, began))
            self.positions[partition] = mine[-1][0] + 1
            self._history.positions.append(Seen(observer, partition, mine[-1][0] + 1))


class _Confluent(Onlooker):
    """With librdkafka."""

    _began = 0.0

    def __init__(
        self, name: str, bootstrap: str, history: History, *, topic: str, partitions: int
    ) -> None:
        super().__init__(name, bootstrap, history, topic=topic, partitions=partitions)
        self._rows: dict[int, list[tuple[int, Sent]]] = {}

    def _consumer(self, group: str) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._where,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "topic.metadata.refresh.interval.ms": 1000,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "log_level": 0,
            }
        )

    def _observer(self) -> str:
        return self.name

    def _poll(self, consumer: confluent_kafka.Consumer) -> bool:
        """Up to `POLL_RECORDS`. True where there was something."""
        self._began = time.monotonic()
        found = False
        for count in range(POLL_RECORDS):
            message = consumer.poll(0 if count else POLL_S)
            if message is None:
                break
            found = True
            error = message.error()
            if error is None:
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                self._rows.setdefault(partition, []).append((offset, sent_of(message.value())))
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._history.resets.append(f"{self._observer()}: {error.str()}")
            else:
                self.failures.append(f"{self._observer()}: {error}")
        self._note_rows()
        return found

    def _note_rows(self) -> None:
        """Before a rebalance, which may come between any two records of a poll, too."""
        rows, self._rows = self._rows, {}
        self._take(self._observer(), rows, self._began)


class PlainReader(_Confluent):
    def _look_on(self) -> None:
        consumer = self._consumer("none")
        consumer.assign([TopicPartition(self._topic, number, 0) for number in self.positions])
        try:
            while not self._stopping.is_set():
                self._poll(consumer)
        finally:
            consumer.close()


class GroupReader(_Confluent):
    """The one member of group `group`; it commits what it has read after each poll. Whenever it
    joins anew, it begins where the group's offsets are."""

    def __init__(
        self,
        name: str,
        bootstrap: str,
        history: History,
        *,
        topic: str,
        partitions: int,
        group: str,
    ) -> None:
        super().__init__(name, bootstrap, history, topic=topic, partitions=partitions)
        self._group = group
        self._joined = 0
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """A group without offsets would be reset when it begins."""
        consumer = self._consumer(self._group)
        zeros = [TopicPartition(self._topic, number, 0) for number in self.positions]
        try:
            consumer.commit(offsets=zeros, asynchronous=False)
        finally:
            consumer.close()

    def _assigned(
        self, consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]
    ) -> None:
        self._note_rows()
        self._joined += 1
        began, found = self._committed(consumer, partitions)
        now = time.monotonic()
        for row in found:
            seen = CommittedSeen(self._group, row.partition, row.offset, began, now)
            self._history.committed_seen.append(seen)
            self.positions[row.partition] = row.offset
        consumer.assign(found)

    @staticmethod
    def _committed(
        consumer: confluent_kafka.Consumer, partitions: list[TopicPartition]
    ) -> tuple[float, list[TopicPartition]]:
        """And when they were asked for; librdkafka does not ask again by itself."""
        deadline = Deadline("no broker coordinates the group")
        while True:
            began = time.monotonic()
            try:
                return began, consumer.committed(partitions, timeout=PROGRESS_TIMEOUT_S)
            except KafkaException as error:
                if error.args[0].code() not in NO_COORDINATOR:
                    raise
            deadline.pause(POLL_S)

    def _observer(self) -> str:
        return f"{self.name}, joined {self._joined} times"

    def _look_on(self) -> None:
        consumer = self._consumer(self._group)
        consumer.subscribe([self._topic], on_assign=self._assigned)
        try:
            while not self._stopping.is_set():
                if self._poll(consumer):
                    self._commit(consumer)
        finally:
            consumer.close()

    def _commit(self, consumer: confluent_kafka.Consumer) -> None:
        wanted = [TopicPartition(self._topic, *row) for row in self.positions.items()]
        try:
            done = consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException:
            return  # not the member any more, or no coordinator: it is made again
        now = time.monotonic()
        self._history.commits += [
            Commit(self._group, row.partition, row.offset, now)
            for row in done or []
            if row.error is None
        ]


class AioReader(Onlooker):
    def _look_on(self) -> None:
        asyncio.run(self._read_on())

    async def _read_on(self) -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self._where,
            auto_offset_reset="none",
            enable_auto_commit=False,
            metadata_max_age_ms=1000,
            retry_backoff_ms=20,
        )
        await consumer.start()
        try:
            names = [aiokafka.TopicPartition(self._topic, number) for number in self.positions]
            consumer.assign(names)
            for name in names:
                consumer.seek(name, 0)
            while not self._stopping.is_set():
                began = time.monotonic()
                try:
                    found = await consumer.getmany(timeout_ms=round(POLL_S * 1000))
                except OffsetOutOfRangeError as error:
                    self._history.resets.append(f"{self.name}: {error}")
                    return
                rows = {
                    name.partition: [(row.offset, sent_of(row.value)) for row in records]
                    for name, records in found.items()
                }
                self._take(self.name, rows, began)
        finally:
            with suppress(asyncio.CancelledError):  # of its own fetches
                await consumer.stop()


class CommittedWatch(threading.Thread):
    """Asks one broker after the other for a group's committed offsets; the coordinator answers."""

    def __init__(self, addresses: Sequence[str], history: History, *, group: str) -> None:
        super().__init__(name="committed watch")
        self._addresses = addresses
        self._history = history
        self._group = group
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        turn = 0
        while not self._stopping.wait(ASK_PAUSE_S):
            turn += 1
            try:
                self._ask(self._addresses[turn % len(self._addresses)])
            except OSError:
                continue  # it is dead, or does not answer

    def _ask(self, address: str) -> None:
        began = time.monotonic()
        with WireClient(address, timeout_s=ASK_TIMEOUT_S) as client:
            wanted = {"group_id": self._group, "topics": None}
            found = client.call(
                ApiKey.OFFSET_FETCH, 8, groups=[wanted], require_stable=True
            ).groups[0]
        now = time.monotonic()
        if found.error_code:
            return
        self._history.committed_seen += [
            CommittedSeen(self._group, row.partition_index, row.committed_offset, began, now)
            for topic in found.topics
            for row in topic.partitions
            if not row.error_code
        ]
