"""The partitions of a topic over three brokers, and each broker's share of the load.

At full size, from the repository's root: `make prove WHAT=leader-shares`. A producer writes records
with keys as fast as it can. Keys are numbers, so every run has the same records in each partition.
"""

import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S
from tests.rigs.wire_client import WireClient
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster

TOPIC = "shares"
BROKERS, PARTITIONS = 3, 24
VALUE = bytes(range(256)) * 4
QUEUE_FULL_S = 0.05


@dataclass(frozen=True, slots=True)
class ShareFigures:
    records: int
    partitions: dict[int, int]
    """By the broker that leads them."""
    produced_bytes: dict[int, float]
    """Bytes of Produce requests, by broker."""
    unevenness: float
    """The largest distance of a broker's bytes from the mean, as a fraction of the mean."""
    mb_per_s: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def leader_shares(store: Store, records: int) -> ShareFigures:
    """Raises `AssertionError` if a record is not acknowledged, or the brokers' leaders differ."""
    with running_cluster(BROKERS, store=store) as cluster:
        cluster.wait_until_all_are_members()
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        before = _produced_bytes(cluster)
        began_s = time.perf_counter()
        _produce(cluster.brokers[0].bootstrap, records)
        took_s = time.perf_counter() - began_s
        after = _produced_bytes(cluster)
        leaders = [_leaders(broker.bootstrap) for broker in cluster.brokers]
    assert all(named == leaders[0] for named in leaders), f"the brokers' leaders differ: {leaders}"
    grown = {number: after[number] - before[number] for number in after}
    mean = sum(grown.values()) / BROKERS
    return ShareFigures(
        records=records,
        partitions=dict(sorted(leaders[0].items())),
        produced_bytes=grown,
        unevenness=round(max(abs(each - mean) for each in grown.values()) / mean, 4),
        mb_per_s=round(records * len(VALUE) / took_s / 1e6, 1),
    )


def _produce(bootstrap: str, records: int) -> None:
    errors: list[KafkaError] = []

    def noted(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(records):
        while True:
            try:
                producer.produce(TOPIC, VALUE, str(number).encode(), on_delivery=noted)
                break
            except BufferError:
                producer.poll(QUEUE_FULL_S)
    left = producer.flush(PATIENCE_S)
    assert not left, f"{left} records are not acknowledged"
    assert not errors, f"{len(errors)} records failed: {errors[0]}"


def _produced_bytes(cluster: Cluster) -> dict[int, float]:
    name = 'bucketlog_request_bytes_total{api="Produce"}'
    return cluster.metric(name)


def _leaders(bootstrap: str) -> Counter[int]:
    with WireClient(bootstrap) as client:
        answer = client.call(ApiKey.METADATA, 5, topics=[{"name": TOPIC}])
    return Counter(row.leader_id for row in answer.topics[0].partitions)
