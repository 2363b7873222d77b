"""Other people's clients on a cluster of two brokers, each in a zone of its own.

At full size, from the repository's root: `make prove WHAT=across`. Writers are told one broker's
address, readers the other's; Metadata then sends them to both.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import WireClient, decode_response, encode_request
from tests.scenarios.clients import CLIENTS, Row
from tests.scenarios.round_trip import PARTITIONS, create_topic, differences, make_rows
from tests.servers.cluster import Cluster, Store, running_cluster
from tests.servers.kafka_tools import KafkaTools

ZONES = ("a", "b")
ZONE_PARTITIONS = 20


@dataclass(frozen=True, slots=True)
class AcrossFigures:
    records_each: int
    clients: dict[str, str]
    produce_requests: dict[int, float]
    fetch_requests: dict[int, float]
    """By broker: both took part."""
    leaders: dict[str, list[int]]
    """By the zone that a client names in its id ('': none): the brokers that Metadata names."""
    problems: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def across_brokers(count: int, *, tools: bool, store: Store = Store.MINIO) -> AcrossFigures:
    """Raises `AssertionError`. With `tools`, Apache Kafka's console programs take part; raises
    `ConfigurationError` where they are not installed."""
    versions = {client.name: client.version() for client in CLIENTS.values()}
    with running_cluster(2, store=store, zones=ZONES) as cluster:
        problems = _round_trips(cluster, make_rows(count, seed=1))
        if tools:
            versions["Apache Kafka's tools"] = KafkaTools(cluster.brokers[0].bootstrap).version
            problems += _console_trip(cluster, count)
        leaders = {zone: _leaders(cluster, zone) for zone in ("", *ZONES)}
        produced, fetched = _requests(cluster, "Produce"), _requests(cluster, "Fetch")
    wanted = {"": [0, 1], "a": [0], "b": [1]}
    problems += [
        f"a client of zone {zone!r} is sent to {named}, not {wanted[zone]}"
        for zone, named in leaders.items()
        if named != wanted[zone]
    ]
    for counts in (produced, fetched):
        assert all(counts.values()), f"not every broker was asked: {counts}"
    assert not problems, "\n".join(problems[:10])
    return AcrossFigures(count, versions, produced, fetched, leaders, len(problems))


def _round_trips(cluster: Cluster, rows: list[Row]) -> list[str]:
    """Every client writes, every client reads all."""
    first, second = (broker.bootstrap for broker in cluster.brokers)
    found = []
    for name, client in CLIENTS.items():
        topic = f"across.{name}"
        create_topic(first, topic, PARTITIONS)
        client.produce(first, topic, rows, codec="lz4", idempotent=True)
        for reader, other in CLIENTS.items():
            consumed = other.consume(second, topic, PARTITIONS, len(rows))
            found += [f"{topic} read by {reader}: {text}" for text in differences(rows, consumed)]
    return found


def _console_trip(cluster: Cluster, count: int) -> list[str]:
    first, second = (broker.bootstrap for broker in cluster.brokers)
    topic = "across.console"
    create_topic(first, topic, 2)
    sent = [f"line {number}" for number in range(count)]
    text = "".join(f"{line}\n" for line in sent).encode()
    KafkaTools(first).lines("kafka-console-producer", "--topic", topic, stdin=text)
    reading = KafkaTools(second)
    ends = {
        int(partition): int(end)
        for _, partition, end in (
            row.rsplit(":", 2) for row in reading.lines("kafka-get-offsets", "--topic", topic)
        )
    }
    got: list[str] = []
    for partition, end in ends.items():
        if end:
            got += reading.lines(
                *("kafka-console-consumer", "--topic", topic, "--partition", str(partition)),
                *("--offset", "earliest", "--max-messages", str(end), "--timeout-ms", "30000"),
            )
    return [] if sorted(got) == sorted(sent) else [f"console: {len(got)} of {len(sent)} lines"]


def _leaders(cluster: Cluster, zone: str) -> list[int]:
    """Of a topic of many partitions, as a client whose id names the zone is told by each broker."""
    topic = f"across.zone.{zone or 'none'}"
    create_topic(cluster.brokers[0].bootstrap, topic, ZONE_PARTITIONS)
    named: set[int] = set()
    for broker in cluster.brokers:
        named.update(_leaders_by(broker.bootstrap, topic, f"app,zone={zone}" if zone else "app"))
    return sorted(named)


def _leaders_by(address: str, topic: str, client_id: str) -> Iterable[int]:
    request = encode_request(ApiKey.METADATA, 5, 1, {"topics": [{"name": topic}]}, client_id)
    with WireClient(address) as client:
        while True:
            client.send_frame(request)
            frame = client.read_frame()
            assert frame is not None
            _, answer = decode_response(ApiKey.METADATA, 5, frame)
            if answer.topics[0].error_code == 0:  # else its view does not know the topic yet
                return [row.leader_id for row in answer.topics[0].partitions]


def _requests(cluster: Cluster, api: str) -> dict[int, float]:
    name = f'bucketlog_request_seconds_count{{api="{api}"}}'
    return cluster.metric(name)
