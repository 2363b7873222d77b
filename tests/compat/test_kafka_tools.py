"""Apache Kafka's own tools against a broker: topics, configs, offsets, producers, the consumer."""

import json
import re
import time
from itertools import count
from pathlib import Path

import pytest

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.servers.kafka_tools import KafkaTools

pytestmark = pytest.mark.long

_numbers = count()


@pytest.fixture
def topic(broker: EmbeddedCluster) -> str:
    """Two partitions."""
    name = f"kafka-tools-{next(_numbers)}"
    with bucketlog.connect(broker.bootstrap) as log:
        log.topics.create(name, partitions=2)
    return name


def latest(tools: KafkaTools, topic: str, at: str = "latest") -> dict[int, int]:
    """Offsets by partition."""
    rows = tools.lines("kafka-get-offsets", "--topic", topic, "--time", at)
    split = [row.rsplit(":", 2) for row in rows]
    assert {name for name, _, _ in split} == {topic}
    return {int(partition): int(offset) for _, partition, offset in split}


def consume(
    tools: KafkaTools, topic: str, partition: int, records: int, *arguments: str
) -> list[str]:
    return tools.lines(
        *("kafka-console-consumer", "--topic", topic, "--partition", str(partition)),
        *("--max-messages", str(records), "--timeout-ms", "20000", *arguments),
    )


def test_a_topic_from_creation_to_deletion(tools: KafkaTools) -> None:
    name = "kafka-tools-life"
    tools.lines(
        *("kafka-topics", "--create", "--topic", name, "--partitions", "2"),
        *("--replication-factor", "1", "--config", "max.message.bytes=5000"),
    )
    again = tools.run("kafka-topics", "--create", "--topic", name)
    assert (again.returncode, f"Topic '{name}' already exists" in again.stdout.decode()) == (
        1,
        True,
    )
    assert name in tools.lines("kafka-topics", "--list")
    tools.lines("kafka-topics", "--alter", "--topic", name, "--partitions", "4")
    head, *rows = tools.lines("kafka-topics", "--describe", "--topic", name)
    assert re.search(
        r"PartitionCount: 4\tReplicationFactor: 1\tConfigs: max.message.bytes=5000", head
    )
    leaders = [re.search(r"Partition: (\d+)\tLeader: (\d+)\tReplicas: (\S+)", row) for row in rows]
    assert [found and int(found[1]) for found in leaders] == [0, 1, 2, 3]
    assert latest(tools, name, "earliest") == {0: 0, 1: 0, 2: 0, 3: 0}
    tools.lines("kafka-topics", "--delete", "--topic", name)
    gone = tools.run("kafka-topics", "--describe", "--topic", name)
    assert (gone.returncode, b"does not exist" in gone.stdout) == (1, True)


def test_configs(tools: KafkaTools, broker: EmbeddedCluster) -> None:
    name = "kafka-tools-configs"
    tools.lines("kafka-topics", "--create", "--topic", name, "--config", "retention.ms=1000")
    own = tools.lines(
        "kafka-configs", "--describe", "--entity-type", "topics", "--entity-name", name
    )
    assert own[1:] == [
        "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}"
    ]
    topic = ("--entity-type", "topics", "--entity-name", name)
    change = ("kafka-configs", "--alter", *topic)
    assert tools.lines(*change, "--add-config", "segment.ms=7,cleanup.policy=[delete,compact]") == [
        f"Completed updating config for topic {name}."
    ]
    assert tools.lines(*change, "--delete-config", "retention.ms") == [
        f"Completed updating config for topic {name}."
    ]
    now = tools.lines("kafka-configs", "--describe", *topic)[1:]
    assert [line.split()[0] for line in now] == ["cleanup.policy=delete,compact", "segment.ms=7"]
    refused = tools.run(*change, "--add-config", "no.such=1")
    assert (refused.returncode, b"Unknown topic config name: no.such" in refused.stderr) == (
        1,
        True,
    )
    every = tools.lines(
        *("kafka-configs", "--describe", "--all"),
        *("--entity-type", "brokers", "--entity-name", "0"),
    )
    assert "  num.partitions=1 sensitive=false synonyms={DEFAULT_CONFIG:num.partitions=1}" in every


def test_lines_there_and_back(tools: KafkaTools, topic: str) -> None:
    sent = [f"key {at}\tvälue {at}" for at in range(200)]
    tools.lines(
        *("kafka-console-producer", "--topic", topic, "--reader-property", "parse.key=true"),
        *("--compression-codec", "zstd"),
        stdin="".join(f"{line}\n" for line in sent).encode(),
    )
    ends = latest(tools, topic)
    assert sum(ends.values()) == len(sent)
    found: list[str] = []
    for partition, end in ends.items():
        rows = consume(
            *(tools, topic, partition, end, "--offset", "earliest"),
            *("--formatter-property", "print.key=true"),
            *("--formatter-property", "print.offset=true"),
        )
        offsets, lines = zip(*(row.split("\t", 1) for row in rows), strict=True)
        assert list(offsets) == [f"Offset:{at}" for at in range(end)]
        assert list(lines) == sorted(lines, key=sent.index), "in the order sent"
        found += lines
    assert sorted(found) == sorted(sent)


def test_offsets_by_time(tools: KafkaTools, topic: str) -> None:
    at = str(time.time_ns() // 1_000_000 - 3_600_000)  # retention leaves it there
    tools.lines(
        *("kafka-verifiable-producer", "--topic", topic, "--max-messages", "9"),
        *("--message-create-time", at, "--throughput", "1000"),
    )
    ends = latest(tools, topic)
    written = {partition: end for partition, end in ends.items() if end}
    first = latest(tools, topic, at)
    assert first == dict.fromkeys(written, 0)
    highest = latest(tools, topic, "max-timestamp")
    assert highest.keys() == written.keys()
    assert all(offset < written[partition] for partition, offset in highest.items())


def test_the_verifiable_producer_is_acknowledged_what_is_there(
    tools: KafkaTools, topic: str
) -> None:
    said = tools.lines("kafka-verifiable-producer", "--topic", topic, "--max-messages", "100")
    events = [json.loads(line) for line in said]
    sent = [event for event in events if event["name"] == "producer_send_success"]
    assert [event["acked"] for event in events if event["name"] == "tool_data"] == [100]
    ends = latest(tools, topic)
    assert sum(ends.values()) == len(sent) == 100
    last: dict[tuple[int, int], str] = {}
    for partition, end in ends.items():
        mine = sorted((e["offset"], e["value"]) for e in sent if e["partition"] == partition)
        assert [offset for offset, _ in mine] == list(range(end))
        last[partition, end - 1] = mine[-1][1] if end else ""
    (partition, offset), value = max(last.items(), key=lambda item: item[0][1])
    assert consume(tools, topic, partition, 1, "--offset", str(offset)) == [value]


def test_the_performance_test(tools: KafkaTools, topic: str) -> None:
    said = tools.lines(
        *("kafka-producer-perf-test", "--topic", topic, "--num-records", "20000"),
        *("--record-size", "100", "--throughput", "-1"),
    )
    assert said[-1].startswith("20000 records sent")
    assert sum(latest(tools, topic).values()) == 20_000


def test_java_uses_the_newest_versions(tools: KafkaTools) -> None:
    """Those of Apache Kafka 4.3.1."""
    said = "\n".join(tools.lines("kafka-broker-api-versions"))
    newest = dict(re.findall(r"(\w+)\(\d+\): .*\[usable: (\d+)\]", said))
    wanted = {"Produce": "13", "Fetch": "18", "ListOffsets": "11", "Metadata": "13"}
    assert {name: newest[name] for name in wanted} == wanted


def test_a_producer_continues_in_a_topic_that_is_created_again(
    tools: KafkaTools, broker: EmbeddedCluster
) -> None:
    """Java names topics by their ids: it must find out that the id is another. The tool sends no
    record again."""
    topic, offsets, is_new = "kafka-tools-again", list[int](), False
    with bucketlog.connect(broker.bootstrap) as log:
        log.topics.create(topic, partitions=1)
    with (
        bucketlog.connect(broker.bootstrap) as log,
        tools.start("kafka-verifiable-producer", "--topic", topic, "--throughput", "300") as java,
    ):
        assert java.stdout is not None
        for event in map(json.loads, java.stdout):
            if event["name"] != "producer_send_success":
                continue
            if is_new := is_new or (bool(offsets) and event["offset"] < offsets[-1]):
                offsets = [offset for offset in offsets if offset < event["offset"]]
            offsets.append(event["offset"])
            if not is_new and len(offsets) == 200:
                log.topics.delete(topic)
                log.topics.create(topic, partitions=1)
            if is_new and len(offsets) == 200:
                java.terminate()
    assert offsets == list(range(len(offsets)))
    assert latest(tools, topic) == {0: len(offsets)}


def test_log_dirs(tools: KafkaTools, broker: EmbeddedCluster, topic: str) -> None:
    tools.lines("kafka-console-producer", "--topic", topic, stdin=b"x" * 1000 + b"\n")
    *_, described = tools.lines("kafka-log-dirs", "--describe", "--topic-list", topic)
    (node,) = json.loads(described)["brokers"]
    (log_dir,) = node["logDirs"]
    assert (log_dir["error"], log_dir["logDir"]) == (None, broker.bucket_url)
    sizes = {row["partition"]: row["size"] for row in log_dir["partitions"]}
    assert sizes.keys() == {f"{topic}-0", f"{topic}-1"}
    empty, written = sorted(sizes.values())
    assert empty == 0
    assert 1000 < written < 1200


def test_the_quorum(tools: KafkaTools) -> None:
    described = tools.run("kafka-metadata-quorum", "describe", "--status")
    assert described.returncode == 1
    assert b"The cluster has no metadata quorum" in described.stdout + described.stderr


def test_features(tools: KafkaTools) -> None:
    described = "\n".join(tools.lines("kafka-features", "describe"))
    assert re.search(r"Feature: group\.version.*FinalizedVersionLevel: 1\b", described)
    upgrade = ("kafka-features", "upgrade", "--feature")
    assert tools.lines(*upgrade, "group.version=1") == ["group.version was upgraded to 1."]
    refused = tools.run(*upgrade, "metadata.version=20")
    assert refused.returncode == 1
    assert b"does not support this feature" in refused.stdout + refused.stderr


def test_leaders_and_reassignments(tools: KafkaTools, topic: str, tmp_path: Path) -> None:
    elected = tools.run(
        *("kafka-leader-election", "--election-type", "preferred"),
        *("--topic", topic, "--partition", "1"),
    )
    assert f"Valid replica already elected for partitions {topic}-1" in elected.stdout.decode()
    assert tools.lines("kafka-reassign-partitions", "--list") == [
        "No partition reassignments found."
    ]
    plan = tmp_path / "plan.json"
    where = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [7]}]}
    plan.write_text(json.dumps(where))
    moved = tools.run(
        *("kafka-reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
    )
    assert moved.returncode == 1
    assert b"no such broker" in moved.stdout + moved.stderr or b"Unknown broker id 7" in (
        moved.stdout + moved.stderr
    )
