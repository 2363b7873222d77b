"""`bucketlog replay` beside a real broker: what it prints is what consumers get; into a topic."""

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import bucketlog
from bucketlog import Log, Topic
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import LogError
from bucketlog.replaying import to_topic
from bucketlog.replaying.selection import parse_offsets
from bucketlog.replaying.to_topic import Copy
from tests.rigs.shell import Shell

pytestmark = pytest.mark.long

_numbers = count()
Seen = dict[int, list[tuple[bytes | None, bytes | None, object, int]]]


@pytest.fixture
def name() -> str:
    return f"replay-{next(_numbers)}"


@pytest.fixture
def source(log: Log, name: str) -> Topic[bytes, bytes]:
    """300 records in 3 partitions: nulls, headers, timestamps, bytes that are not UTF-8."""
    topic = Topic(name)
    log.topics.create(topic, partitions=3)
    with log.producer() as producer:
        for at in range(300):
            producer.send(
                topic,
                None if at % 50 == 7 else b"value-%d\xff" % at,
                key=None if at % 20 == 3 else b"key-%d" % (at % 11),
                headers=[("at", str(at)), ("none", None)] if at % 2 else [],
                partition=at % 3,
                timestamp_ms=1_700_000_000_000 + at,
            )
    return topic


def records(log: Log, topic: str) -> Seen:
    found: Seen = {}
    with log.consumer(Topic(topic), start="earliest", until="end") as consumer:
        for record in consumer:
            value = None if record.is_tombstone else record.value
            row = (record.key, value, record.headers, record.timestamp_ms)
            found.setdefault(record.partition, []).append(row)
    return found


def by_place(lines: bytes) -> Iterator[tuple[tuple[int, int], str]]:
    for line in lines.decode().splitlines():
        row = json.loads(line)
        yield (row["partition"], row["offset"]), line


def test_the_lines_are_those_of_consume(
    broker: EmbeddedCluster, shell: Shell, source: Topic[bytes, bytes]
) -> None:
    replayed = dict(by_place(shell.ok("replay", broker.bucket_url, source.name)))
    consumed = dict(
        by_place(shell.ok("consume", source.name, "-f", "start", "--until-end", "-o", "jsonl"))
    )
    assert len(replayed) == 300
    assert replayed == consumed


def test_they_pipe_into_produce(
    broker: EmbeddedCluster, shell: Shell, log: Log, source: Topic[bytes, bytes]
) -> None:
    copy = f"{source.name}-piped"
    log.topics.create(copy)
    lines = shell.ok("replay", broker.bucket_url, source.name, "-p", "1")
    assert lines.count(b"\n") == 100
    shell.ok("produce", copy, "--jsonl", stdin=lines)
    assert records(log, copy)[0] == records(log, source.name)[1]


def test_into_a_topic_partitions_are_kept(
    broker: EmbeddedCluster, shell: Shell, log: Log, source: Topic[bytes, bytes]
) -> None:
    copy = f"{source.name}-copy"
    log.topics.create(copy, partitions=4)
    shell.ok("replay", broker.bucket_url, source.name, "--to-topic", copy)
    assert records(log, copy) == records(log, source.name)


def test_into_a_topic_timestamps_without_a_date_are_kept(
    broker: EmbeddedCluster, shell: Shell, log: Log, name: str
) -> None:
    """0 is sent as 1: librdkafka takes 0 for now."""
    topic, copy, piped = Topic(name), f"{name}-copy", f"{name}-piped"
    for made in (topic, copy, piped):
        log.topics.create(made)
    with log.producer() as producer:
        for timestamp_ms in (-1, -2_000, 0, 5, 1_700_000_000_000):
            producer.send(topic, b"at", timestamp_ms=timestamp_ms).result()
    assert [row[3] for row in records(log, name)[0]] == [-1, -2_000, 1, 5, 1_700_000_000_000]
    Copy(bucketlog.replay(broker.bucket_url, topic.name), copy, by_key=False).run(log)
    shell.ok("produce", piped, "--jsonl", stdin=shell.ok("replay", broker.bucket_url, name))
    assert records(log, copy) == records(log, piped) == records(log, name)


def test_not_into_the_topic_that_is_read(
    broker: EmbeddedCluster, shell: Shell, log: Log, source: Topic[bytes, bytes]
) -> None:
    before = records(log, source.name)
    told = shell.failing(2, "replay", broker.bucket_url, source.name, "--to-topic", source.name)
    assert f"topic '{source.name}' would be written to itself" in told
    assert records(log, source.name) == before


def test_into_a_topic_by_key(
    broker: EmbeddedCluster, shell: Shell, log: Log, source: Topic[bytes, bytes]
) -> None:
    copy = f"{source.name}-by-key"
    log.topics.create(copy, partitions=2)
    few = shell.failing(2, "replay", broker.bucket_url, source.name, "--to-topic", copy)
    assert "has 2 partitions, the records are in up to partition 2" in few
    shell.ok("replay", broker.bucket_url, source.name, "--to-topic", copy, "--by-key")
    found = records(log, copy)
    rows = [row for partition in found.values() for row in partition]
    original = [row for partition in records(log, source.name).values() for row in partition]
    assert sorted(rows, key=lambda row: row[3]) == sorted(original, key=lambda row: row[3])
    for key in {row[0] for row in rows} - {None}:
        assert (
            len({at for at, partition in found.items() if key in [row[0] for row in partition]})
            == 1
        )


def test_a_copy_that_fails_says_where_to_go_on(
    broker: EmbeddedCluster,
    log: Log,
    source: Topic[bytes, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The target takes no batch above a size: the first large record fails the copy."""
    copy = f"{source.name}-small"
    log.topics.create(copy, partitions=3, configs={"max.message.bytes": "20000"})
    with log.producer() as producer:
        for partition in range(3):
            producer.send(source, b"large" * 8000, partition=partition).result()
            producer.send(source, b"last", partition=partition).result()
    monkeypatch.setattr(to_topic, "CHUNK_RECORDS", 1)
    replay = bucketlog.replay(broker.bucket_url, source.name)
    attempt = Copy(replay, copy, by_key=False)
    with pytest.raises(LogError) as failed:
        attempt.run(log)
    assert failed.value.code == "MESSAGE_TOO_LARGE"
    there = records(log, copy)
    assert attempt.copied == sum(map(len, there.values())) > 0
    for partition, first in re.findall(r"(\d+):(\d+)-", attempt.resume):
        assert len(there.get(int(partition), [])) == int(first)
    log.topics.create(f"{copy}-rest", partitions=3)
    rest = bucketlog.replay(broker.bucket_url, source.name, offsets=parse_offsets(attempt.resume))
    Copy(rest, f"{copy}-rest", by_key=False).run(log)
    after = records(log, f"{copy}-rest")
    original = records(log, source.name)
    for partition, rows in original.items():
        assert there.get(partition, []) + after.get(partition, []) == rows


def test_a_broker_that_is_not_there(
    broker: EmbeddedCluster, shell: Shell, source: Topic[bytes, bytes], tmp_path: Path
) -> None:
    said = shell.failing(
        1, "replay", broker.bucket_url, source.name, "--to-topic", "x", "-b", "127.0.0.1:1"
    )
    assert "127.0.0.1:1" in said
