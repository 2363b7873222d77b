"""The clients of chaos: producers, readers and group members of several libraries, on one topic.

Each notes the answers that it gets in a history, and runs until the block is left.
"""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.models.history import History
from tests.rigs.patience import Deadline
from tests.scenarios.broker_reader import BrokerReader
from tests.scenarios.failover import Watch
from tests.scenarios.foreign_load import AioLoad, JavaLoad
from tests.scenarios.load import Load, Progress
from tests.scenarios.onlookers import AioReader, CommittedWatch, GroupReader, Onlooker
from tests.scenarios.pinned import Pinned
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster

TOPIC, GROUP, MEMBER = "chaos", "chaos-readers", "member"
PARTITIONS = 6
BURST_RECORDS = 3
AIO_PAUSE_S = 0.01
JAVA_RECORDS_A_SECOND = 100
PROBE = "probe-"
PROBE_PAUSE_S = 0.05
PROBE_ANSWER_S = 60.0


Client = Progress | Onlooker | BrokerReader | Pinned | CommittedWatch


@dataclass(frozen=True, slots=True)
class ChaosClients:
    """All are threads; `producers` notice errors that their libraries give up on."""

    producers: list[Progress]
    onlookers: list[Onlooker]
    readers: list[BrokerReader]
    probes: list[Pinned]

    def wait_for_progress(self, count: int = 20) -> None:
        """Each producer gets `count` records acknowledged, and each onlooker reads something."""
        for producer in self.producers:
            producer.wait_for(count)
        deadline = Deadline("an onlooker has read nothing")
        while not all(any(one.positions.values()) for one in self.onlookers):
            deadline.pause()

    def complaints(self) -> list[str]:
        watched: list[Progress | Onlooker] = [*self.producers, *self.onlookers]
        return [f"{each.name}: {text}" for each in watched for text in each.failures[:5]]

    def stop(self) -> None:
        """Stop the producers first, so that the readers have more time to read."""
        threads: list[Client] = [*self.producers, *self.probes, *self.onlookers, *self.readers]
        for thread in threads:
            thread.stop()


def _producers(cluster: Cluster, history: History, *, java: bool) -> list[Progress]:
    where, partitions = cluster.bootstrap, PARTITIONS
    found: list[Progress] = [
        Load(
            "librdkafka",
            where,
            history,
            topic=TOPIC,
            partitions=partitions,
            burst_records=BURST_RECORDS,
        ),
        AioLoad(
            "aiokafka", where, history, topic=TOPIC, partitions=partitions, pause_s=AIO_PAUSE_S
        ),
    ]
    if java:
        found.append(
            JavaLoad(
                1,
                where,
                history,
                topic=TOPIC,
                folder=cluster.folder,
                records_a_second=JAVA_RECORDS_A_SECOND,
            )
        )
    return found


@contextmanager
def chaos_clients(cluster: Cluster, history: History, *, java: bool) -> Iterator[ChaosClients]:
    """The clients run while the block lasts. Raises `ConfigurationError` if `java` is wanted and
    Apache Kafka's tools are not installed."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it warns of each retry
    create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
    where, partitions = cluster.bootstrap, PARTITIONS
    producers = _producers(cluster, history, java=java)
    onlookers: list[Onlooker] = [
        AioReader("plain aiokafka", where, history, topic=TOPIC, partitions=partitions),
        GroupReader(MEMBER, where, history, topic=TOPIC, partitions=partitions, group=GROUP),
    ]
    places = [(broker.node_id, broker.bootstrap) for broker in cluster.brokers]
    readers = [
        BrokerReader(*place, history, topic=TOPIC, partitions=partitions) for place in places
    ]
    probes = [
        Pinned(
            f"{PROBE}{node_id}",
            address,
            history,
            TOPIC,
            partitions,
            pause_s=PROBE_PAUSE_S,
            answer_timeout_s=PROBE_ANSWER_S,
        )
        for node_id, address in places
    ]
    found = ChaosClients(producers, onlookers, readers, probes)
    committed = CommittedWatch([address for _, address in places], history, group=GROUP)
    threads: list[Client] = [*readers, *onlookers, committed, *producers, *probes]
    with ExitStack() as closing:
        for thread in threads:
            thread.start()
            closing.callback(thread.stop)
        closing.enter_context(Watch(cluster.brokers, history, TOPIC, partitions))
        found.wait_for_progress()
        yield found
        found.stop()
