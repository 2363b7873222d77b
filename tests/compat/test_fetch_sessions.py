"""Fetch sessions (KIP-227): the same requests to Apache Kafka and to bucketlog, the same answers.

Random sequences of full and incremental requests, wrong ids and epochs, changed versions, forgotten
partitions and new records. Compared are the errors, whether a session is there and whether it is a
new one, and for each named partition the error, the offsets and whether there are records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.wire.api_keys import ApiKey
from localstack.apache_kafka import running_kafka
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient, build_batch
from tests.servers.components import Components

pytestmark = pytest.mark.long

SEQUENCES, STEPS = 40, 25
PARTITIONS = 3
TOPICS = ("a", "b")
BY_NAME, BY_ID = 12, 16
TIMEOUT_MS = 30_000
BATCH = build_batch([(None, b"v")])
Place = tuple[str, int]


@dataclass(frozen=True)
class Wanted:
    """A Fetch: `session` and `epoch` are those of the client's state, plus these numbers."""

    version: int
    session: int
    epoch: int | None
    """None: 0."""
    offsets: Mapping[Place, int]
    forgotten: frozenset[Place] = frozenset()


@dataclass
class Side:
    """One broker, and the client's state of its session there."""

    client: WireClient
    prefix: str = ""
    ids: dict[str, UUID] = field(default_factory=dict)
    session: int = 0
    epoch: int = 0

    def begin(self, prefix: str) -> None:
        self.prefix, self.session, self.epoch = prefix, 0, 0
        rows = [
            {"name": prefix + name, "num_partitions": PARTITIONS, "replication_factor": 1}
            for name in TOPICS
        ]
        self.client.call(ApiKey.CREATE_TOPICS, 5, topics=rows, timeout=TIMEOUT_MS)
        eventually(self._is_ready)
        self.epoch = 0

    def _is_ready(self) -> bool:
        answer = self.client.call(
            ApiKey.METADATA,
            12,
            topics=[{"topic_id": None, "name": self.prefix + name} for name in TOPICS],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        self.ids = {topic.name.removeprefix(self.prefix): topic.topic_id for topic in answer.topics}
        everything = {(name, number): 0 for name in TOPICS for number in range(PARTITIONS)}
        _, _, rows = self.fetch(Wanted(BY_NAME, 0, None, everything))
        self.session = 0
        return all(row[0] is ErrorCode.none for row in rows.values())

    def produce(self, place: Place) -> ErrorCode:
        name, number = place
        rows = [{"index": number, "records": BATCH}]
        topics = [{"name": self.prefix + name, "partition_data": rows}]
        answer = self.client.call(ApiKey.PRODUCE, 9, acks=-1, timeout=TIMEOUT_MS, topic_data=topics)
        error: ErrorCode = answer.responses[0].partition_responses[0].error_code
        return error

    def delete_records(self, place: Place, offset: int) -> tuple[ErrorCode, int]:
        """Return the error and the partition's low watermark."""
        name, number = place
        rows = [{"partition_index": number, "offset": offset}]
        topics = [{"name": self.prefix + name, "partitions": rows}]
        answer = self.client.call(ApiKey.DELETE_RECORDS, 2, topics=topics, timeout=TIMEOUT_MS)
        row = answer.topics[0].partitions[0]
        return row.error_code, row.low_watermark

    def fetch(self, wanted: Wanted) -> tuple[Any, ...]:
        """What is compared of the answer."""
        sent = self.session + wanted.session
        epoch = 0 if wanted.epoch is None else self.epoch + wanted.epoch
        by_topic: dict[str, list[dict[str, int]]] = {}
        for (name, number), offset in wanted.offsets.items():
            row = {"partition": number, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
            by_topic.setdefault(name, []).append(row)
        forgotten: dict[str, list[int]] = {}
        for name, number in sorted(wanted.forgotten):
            forgotten.setdefault(name, []).append(number)
        answer = self.client.call(
            ApiKey.FETCH,
            wanted.version,
            max_wait=0,
            min_bytes=1,
            session_id=sent,
            session_epoch=epoch,
            topics=[
                {**self._topic(name, wanted.version), "partitions": rows}
                for name, rows in by_topic.items()
            ],
            forgotten_topics_data=[
                {**self._topic(name, wanted.version), "partitions": tuple(numbers)}
                for name, numbers in forgotten.items()
            ],
        )
        kind = "none"
        if answer.session_id:
            kind = "same" if answer.session_id == sent else "new"
        if answer.error_code is ErrorCode.none and wanted.session == 0:
            self.session = answer.session_id
            if epoch == 0:
                self.epoch = 1 if self.session else 0
            elif answer.session_id:
                self.epoch = epoch + 1
        return answer.error_code, kind, self._rows(answer, wanted.version)

    def _topic(self, name: str, version: int) -> dict[str, Any]:
        if version >= 13:
            return {"topic_id": self.ids.get(name, UUID(int=77))}
        return {"topic": self.prefix + name}

    def _rows(self, answer: Any, version: int) -> dict[Place, tuple[Any, ...]]:
        names = {topic_id: name for name, topic_id in self.ids.items()}
        return {
            (
                names.get(topic.topic_id, "?")
                if version >= 13
                else topic.topic.removeprefix(self.prefix),
                row.partition_index,
            ): (
                row.error_code,
                row.high_watermark,
                row.last_stable_offset,
                row.log_start_offset,
                bool(row.records),
            )
            for topic in answer.responses
            for row in topic.partitions
        }


class Walk:
    """One random sequence: what both brokers are asked. `ends` are the ends of the partitions."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.version = self._random.choice([BY_NAME, BY_ID])
        self.ends = {(name, number): 0 for name in TOPICS for number in range(PARTITIONS)}
        self.starts = dict.fromkeys(self.ends, 0)

    def place(self) -> Place:
        return self._random.choice(sorted(self.ends))

    def fetch(self) -> Wanted:
        random = self._random
        places = [self.place() for _ in range(random.randint(0, 4))]
        if random.random() < 0.15:
            places.append((random.choice(TOPICS), PARTITIONS + 1))
        if random.random() < 0.1:
            places.append(("unknown", 0))
        offsets = {place: self._offset(place) for place in places}
        version = self.version
        if random.random() < 0.08:
            version = BY_NAME + BY_ID - version
        kind = random.random()
        if kind < 0.2:
            return Wanted(version, 0, None, offsets)
        if kind < 0.25:
            return Wanted(version, 0, -1 - 1_000, offsets)
        if kind < 0.3:
            return Wanted(version, 1, 0, offsets)
        if kind < 0.35:
            return Wanted(version, 0, 1, offsets)
        forgotten = frozenset(self.place() for _ in range(random.choice([0, 0, 0, 1, 3])))
        return Wanted(version, 0, 0, offsets, forgotten)

    def _offset(self, place: Place) -> int:
        end = self.ends.get(place, 0)
        return self._random.choice([end, end, end, self.starts.get(place, 0), end + 5])


def differences(seed: int, kafka: Side, ours: Side) -> list[str]:
    walk, found = Walk(seed), []
    for side in (kafka, ours):
        side.begin(f"sessions-{seed}-")
    for number in range(STEPS):
        kind, place = walk._random.random(), walk.place()
        if kind < 0.25:
            assert kafka.produce(place) == ours.produce(place) == ErrorCode.none
            walk.ends[place] += 1
        elif kind < 0.3 and walk.starts[place] < walk.ends[place]:
            walk.starts[place] += 1
            start = walk.starts[place]
            assert kafka.delete_records(place, start) == ours.delete_records(place, start)
        else:
            wanted = walk.fetch()
            theirs, here = kafka.fetch(wanted), ours.fetch(wanted)
            if theirs != here:
                found.append(f"seed {seed}, step {number}, {wanted}: {theirs} and {here}")
    return found


def test_sessions_are_those_of_kafka(
    broker: EmbeddedCluster, tmp_path: Path, components: Components
) -> None:
    try:
        with (
            running_kafka(tmp_path / "kafka") as kafka,
            WireClient(kafka.bootstrap) as theirs,
            WireClient(broker.bootstrap) as here,
        ):
            components.took_part("Apache Kafka broker", kafka.version)
            sides = Side(theirs), Side(here)
            found = [each for seed in range(SEQUENCES) for each in differences(seed, *sides)]
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    assert not found, "\n".join(found[:5])
