"""All kinds of clients on one topic of one cluster, and the history of what they were told."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.models.history import History, Log
from tests.scenarios.failover import Watch
from tests.scenarios.foreign_load import AioLoad, JavaLoad
from tests.scenarios.judgement import judge
from tests.scenarios.load import Load, Progress
from tests.scenarios.onlookers import (
    AioReader,
    CommittedWatch,
    GroupReader,
    Onlooker,
    PlainReader,
)
from tests.scenarios.pinned import Pinned
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster

TOPIC, GROUP = "crowd", "readers"
PARTITIONS = 6
BURST_RECORDS = 3
AIO_PAUSE_S = 0.005
JAVA_RECORDS_A_SECOND = 200
PROBE_PAUSE_S = 0.01
PROBE_ANSWER_S = 60.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """`probes` send to one broker each, one record at a time."""

    cluster: Cluster
    history: History
    producers: list[Progress]
    onlookers: list[Onlooker]
    probes: list[Pinned]

    def wait_for_progress(self, count: int = 20) -> None:
        """Every producer gets on, and every consumer comes to where the log's end is by then."""
        for producer in self.producers:
            producer.wait_for(count)
        ends = dict.fromkeys(range(PARTITIONS), 0)
        for acknowledged in list(self.history.acknowledged):
            partition, offset = acknowledged.place
            ends[partition] = max(ends[partition], offset + 1)
        for onlooker in self.onlookers:
            onlooker.wait_for(ends)

    def works_again_s(self, since: float) -> dict[str, float]:
        """By broker, how long after `since` a record was acknowledged that was sent after it."""
        return {probe.name: probe.works_again(since) - since for probe in self.probes}

    def end(self) -> list[str]:
        """Stop all; what any of them complains of."""
        threads: list[Progress | Pinned | Onlooker]
        threads = [*self.producers, *self.probes, *self.onlookers]
        for thread in threads:
            thread.stop()
        watched: list[Progress | Onlooker] = [*self.producers, *self.onlookers]
        return [f"{each.name}: {text}" for each in watched for text in each.failures[:5]]

    def judge(self) -> Log:
        """When all have ended. Raises `AssertionError` where a promise is broken."""
        return judge(self.cluster, self.history, topic=TOPIC, partitions=PARTITIONS)


@contextmanager
def crowd(cluster: Cluster, *, java: bool) -> Iterator[Crowd]:
    """At work, until the block is left. Raises `ConfigurationError` where `java` is wanted and
    Apache Kafka's tools are not installed."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it warns of each retry
    history = History()
    create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
    where = cluster.bootstrap
    producers: list[Progress] = [
        Load(
            "librdkafka",
            where,
            history,
            topic=TOPIC,
            partitions=PARTITIONS,
            burst_records=BURST_RECORDS,
        ),
        AioLoad(
            "aiokafka", where, history, topic=TOPIC, partitions=PARTITIONS, pause_s=AIO_PAUSE_S
        ),
    ]
    if java:
        producers.append(
            JavaLoad(
                1,
                where,
                history,
                topic=TOPIC,
                folder=cluster.folder,
                records_a_second=JAVA_RECORDS_A_SECOND,
            )
        )
    onlookers: list[Onlooker] = [
        PlainReader("plain librdkafka", where, history, topic=TOPIC, partitions=PARTITIONS),
        AioReader("plain aiokafka", where, history, topic=TOPIC, partitions=PARTITIONS),
        GroupReader("member", where, history, topic=TOPIC, partitions=PARTITIONS, group=GROUP),
    ]
    probes = [
        Pinned(
            f"probe-{broker.node_id}",
            broker.bootstrap,
            history,
            TOPIC,
            PARTITIONS,
            pause_s=PROBE_PAUSE_S,
            answer_timeout_s=PROBE_ANSWER_S,
        )
        for broker in cluster.brokers
    ]
    found = Crowd(cluster, history, producers, onlookers, probes)
    addresses = [broker.bootstrap for broker in cluster.brokers]
    committed = CommittedWatch(addresses, history, group=GROUP)
    with ExitStack() as closing:
        threads: list[Onlooker | CommittedWatch | Progress | Pinned]
        threads = [*onlookers, committed, *producers, *probes]
        for thread in threads:
            thread.start()
            closing.callback(thread.stop)
        closing.enter_context(Watch(cluster.brokers, history, TOPIC, PARTITIONS))
        yield found
