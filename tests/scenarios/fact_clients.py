"""Clients of facts: topics that come, grow and go, and groups that commit. Each notes what it was
told, and what it asked for without an answer; that may be so or not."""

import threading
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaException, TopicPartition

import bucketlog
from bucketlog import LogError
from bucketlog.inspect.doctor.digest import LogDigest

PAUSE_S = 0.05
TIMEOUT_S = 5.0


class Client(threading.Thread):
    """Does one thing after the other until it is stopped. It may wait for brokers for ever, and
    does not keep the process from ending."""

    def __init__(self, name: str, bootstrap: str) -> None:
        super().__init__(name=name, daemon=True)
        self.bootstrap = bootstrap
        self.stopping = threading.Event()

    def stop(self) -> None:
        self.stopping.set()
        self.join()


@dataclass
class ToldTopics:
    """`there` has partitions and configs by name; nobody knows of the `unsure`."""

    there: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)

    def complaints(self, log: LogDigest) -> list[str]:
        found = []
        for name in self.there.keys() - self.unsure:
            partitions, configs = self.there[name]
            topic = log.topics.get(name)
            if topic is None:
                found.append(f"topic {name} is lost")
            elif (len(topic.partitions), dict(topic.configs)) != (partitions, configs):
                found.append(
                    f"topic {name} has {len(topic.partitions)} partitions, {topic.configs}"
                )
        found += [f"topic {name} is back" for name in self.gone - self.unsure if name in log.topics]
        return found


class TopicChanger(Client):
    """Topic after topic, each with configs; some grow, some go."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__("topics", bootstrap)
        self.told = ToldTopics()

    def run(self) -> None:
        number = 0
        while not self.stopping.wait(PAUSE_S):
            name = f"fact-{number}"
            self.told.unsure.add(name)
            try:
                self._make(name, number)
            except LogError:
                pass
            else:
                self.told.unsure.discard(name)
            number += 1

    def _make(self, name: str, number: int) -> None:
        configs = {"retention.ms": str(60_000 + number)}
        with bucketlog.connect(self.bootstrap, timeout_s=TIMEOUT_S) as log:
            log.topics.create(name, partitions=2, configs=configs)
            self.told.there[name] = 2, configs
            if number % 2:
                log.topics.add_partitions(name, 3)
                self.told.there[name] = 3, configs
            if number % 3 == 2:
                log.topics.delete(name)
                del self.told.there[name]
                self.told.gone.add(name)


class Committing(Client):
    """Commits offset after offset of one partition for a group of its own."""

    def __init__(self, group: str, bootstrap: str, topic: str, partition: int) -> None:
        super().__init__(group, bootstrap)
        self.spot = topic, partition
        self.asked = 0
        self.acknowledged = 0

    def run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.name,
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        try:
            while not self.stopping.wait(PAUSE_S):
                self.asked += 1
                offset = TopicPartition(
                    *self.spot, self.asked, metadata=f"{self.name}:{self.asked}"
                )
                try:
                    consumer.commit(offsets=[offset], asynchronous=False)
                except KafkaException:
                    continue
                self.acknowledged = self.asked
        finally:
            consumer.close()

    def complaints(self, log: LogDigest, acknowledged: int, asked: int) -> list[str]:
        row = log.groups.get(self.name, {}).get(self.spot)
        if row is None:
            return (
                [f"group {self.name} is lost, {acknowledged} was committed"] if acknowledged else []
            )
        if not acknowledged <= row.offset <= asked:
            return [f"group {self.name} is at {row.offset}, not from {acknowledged} to {asked}"]
        if row.metadata != f"{self.name}:{row.offset}":
            return [f"group {self.name} has the metadata {row.metadata!r} at {row.offset}"]
        return []
