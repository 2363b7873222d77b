"""Apache Kafka's share consumers take one queue apart while brokers are killed (-9).

The verifiable share consumers say which records they got, and which acknowledgements were answered.
Judged: every record was delivered; no record was acknowledged twice; nothing is left in the queue.
At full size, from the repository's root: `make prove WHAT=share-groups`.
"""

import json
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, TypeAlias

import confluent_kafka
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.rigs.wire_client import WireClient
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import ClusterBroker, running_cluster
from tests.servers.kafka_tools import KafkaTools

TOPIC, GROUP = "jobs", "workers"
SETTINGS = {"group_share_auto_offset_reset": "earliest"}
SMALL = ("-Xmx96m", "-XX:ActiveProcessorCount=1")
CONFIG = "max.poll.records=500\n"
Place: TypeAlias = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True, slots=True)
class ShareFigures:
    brokers: int
    consumers: int
    records: int
    kills: int
    delivered: int
    """Different records."""
    delivered_again: int
    """Deliveries of a record after its first one."""
    acknowledged: int
    """Records whose acknowledgement was answered."""
    unanswered: int
    """Records that are acknowledged in the log, but whose consumer got no answer."""
    left: int
    records_per_s: float
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class Deliveries:
    """What consumers have said, by partition and offset."""

    delivered: Counter[Place] = field(default_factory=Counter)
    acknowledged: Counter[Place] = field(default_factory=Counter)
    refused: int = 0
    """Acknowledgements that were answered with an error."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, event: Mapping[str, Any]) -> None:
        if event["name"] not in ("records_consumed", "offsets_acknowledged"):
            return
        places = [
            (row["partition"], offset) for row in event["partitions"] for offset in row["offsets"]
        ]
        with self.lock:
            if event["name"] == "records_consumed":
                self.delivered.update(places)
            elif event["success"]:
                self.acknowledged.update(places)
            else:
                self.refused += len(places)


class ShareConsumer:
    """Kafka's verifiable share consumer, in a process of its own."""

    def __init__(
        self, tools: KafkaTools, config: Path, deliveries: Deliveries, complaints: IO[bytes]
    ) -> None:
        self._deliveries = deliveries
        self._process = tools.start(
            "kafka-verifiable-share-consumer",
            *("--topic", TOPIC, "--group-id", GROUP, "--acknowledgement-mode", "sync"),
            *("--command-config", str(config)),
            complaints=complaints,
        )
        self._reading = threading.Thread(target=self._read, name="a share consumer's output")
        self._reading.start()

    def _read(self) -> None:
        output = self._process.stdout
        assert output is not None
        for line in output:
            if line.startswith("{"):
                self._deliveries.note(json.loads(line))

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            self._reading.join()
            if self._process.stdout is not None:
                self._process.stdout.close()


def produce(bootstrap: str, records: int, partitions: int) -> None:
    """Each record once: the producer is idempotent."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
            "message.timeout.ms": int(PATIENCE_S * 1000),
            "log_level": 0,
        }
    )
    for number in range(records):
        while True:
            try:
                producer.produce(TOPIC, b"%d" % number, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(PATIENCE_S) == 0


def left_in_queue(brokers: Sequence[ClusterBroker]) -> int | None:
    """The records that are neither acknowledged nor archived; None if nobody can tell now."""
    for broker in brokers:
        try:
            with WireClient(broker.bootstrap) as client:
                wanted = [{"group_id": GROUP, "topics": None}]
                (found,) = client.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, groups=wanted).groups
        except OSError:
            continue
        if found.error_code is ErrorCode.none:
            return sum(int(part.lag) for topic in found.topics for part in topic.partitions)
    return None


def kill_one_after_another(
    brokers: Sequence[ClusterBroker], kills: int, deliveries: Deliveries, records: int
) -> None:
    """Each kill comes when the next share of the records is acknowledged."""
    for number in range(kills):
        wanted = records * (number + 1) // (kills + 1)
        deadline = Deadline(lambda: f"{len(deliveries.acknowledged)} are acknowledged")
        while len(deliveries.acknowledged) < wanted:
            deadline.pause()
        victim = brokers[number % len(brokers)]
        victim.kill()
        victim.start()


def share_group(
    *, brokers: int, consumers: int, partitions: int, records: int, kills: int
) -> ShareFigures:
    """Raises `AssertionError` if a record is lost or acknowledged twice. Nothing is left
    running."""
    deliveries = Deliveries()
    with ExitStack() as closing:
        cluster = closing.enter_context(running_cluster(brokers, settings=SETTINGS))
        create_topic(cluster.brokers[0].bootstrap, TOPIC, partitions)
        folder = closing.enter_context(TemporaryDirectory(prefix="bucketlog-shares-"))
        config = Path(folder) / "consumer.properties"
        config.write_text(CONFIG)
        began = time.perf_counter()
        members = closing.enter_context(ExitStack())
        tools = KafkaTools(cluster.bootstrap, *SMALL)
        complaints = closing.enter_context((Path(folder) / "complaints").open("wb"))
        for _ in range(consumers):
            members.callback(ShareConsumer(tools, config, deliveries, complaints).end)
        producing = threading.Thread(
            target=produce, args=(cluster.bootstrap, records, partitions), name="the producer"
        )
        producing.start()
        kill_one_after_another(cluster.brokers, kills, deliveries, records)
        producing.join()
        deadline = Deadline(lambda: f"{len(deliveries.delivered)} of {records} are delivered")
        while len(deliveries.delivered) < records:
            deadline.pause()
        left = left_in_queue(cluster.brokers)
        deadline = Deadline(lambda: f"{left} are left in the queue")
        while left != 0:
            deadline.pause(0.2)
            left = left_in_queue(cluster.brokers)
        seconds = time.perf_counter() - began
        members.close()
    twice = [place for place, times in deliveries.acknowledged.items() if times > 1]
    assert not twice, f"acknowledged more than once: {twice[:5]}"
    assert len(deliveries.delivered) == records, "other records than those produced"
    assert deliveries.acknowledged.keys() <= deliveries.delivered.keys()
    return ShareFigures(
        brokers=brokers,
        consumers=consumers,
        records=records,
        kills=kills,
        delivered=len(deliveries.delivered),
        delivered_again=deliveries.delivered.total() - len(deliveries.delivered),
        acknowledged=len(deliveries.acknowledged),
        unanswered=records - len(deliveries.acknowledged),
        left=left,
        records_per_s=round(records / seconds, 1),
        seconds=round(seconds, 1),
    )
