"""Every shape of a replay without Spark, held against what consumers of the same log get."""

import hashlib
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

import bucketlog
from bucketlog import Log, Topic
from bucketlog.client.lines import json_line
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.replaying.to_topic import Copy

PARTITIONS = 3
START_MS = 1_700_000_000_000
Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
"""Offset, timestamp, key, value, headers."""


class Digest(NamedTuple):
    records: int
    digest: str


Shape = dict[int, Digest]
"""By partition."""


def replayed(folder: Path, records: int, *, seed: int) -> dict[str, Shape]:
    """Produce, consume, replay; what each way of reading gave. `consumed` is the measure."""
    with (
        EmbeddedCluster(folder / "cluster") as cluster,
        bucketlog.connect(cluster.bootstrap) as log,
    ):
        topic = Topic("orders")
        log.topics.create(topic, partitions=PARTITIONS)
        log.topics.create("copy", partitions=PARTITIONS)
        _produce(log, topic, records, random.Random(seed))
        found = {"consumed": _consumed(log, topic.name)}
        replay = bucketlog.replay(cluster.bucket_url, topic)
        found["records"] = _digest((one.partition, _row(one)) for one in replay)
        lines, lake = folder / "orders.jsonl", folder / "lake"
        replay.to_jsonl(lines)
        found["lines"] = _digest(_of_lines(lines))
        replay.to_parquet(lake)
        found["parquet"] = _digest(_of_parquet(lake))
        Copy(replay, "copy", by_key=False).run(log)
        found["copied"] = _consumed(log, "copy")
    return found


def _produce(log: Log, topic: Topic[bytes, bytes], records: int, source: random.Random) -> None:
    with log.producer(compression="zstd") as producer:
        for at in range(records):
            producer.send(
                topic,
                None if source.random() < 0.01 else source.randbytes(source.randrange(200)),
                key=None if source.random() < 0.1 else b"key-%d" % source.randrange(1000),
                headers=[("n", b"%d" % at), ("none", None)] if at % 5 == 0 else [],
                partition=source.randrange(PARTITIONS),
                timestamp_ms=START_MS + at,
            )


def _consumed(log: Log, topic: str) -> Shape:
    with log.consumer(Topic(topic), start="earliest", until="end") as consumer:
        return _digest((record.partition, _row(record)) for record in consumer)


def _row(record: bucketlog.Record[bytes, bytes]) -> Row:
    value = None if record.is_tombstone else record.value
    return record.offset, record.timestamp_ms, record.key, value, record.headers


def _of_lines(path: Path) -> Iterator[tuple[int, Row]]:
    with path.open("rb") as file:
        for text in file:
            place, line = json.loads(text), json_line(text)
            headers = tuple(
                (name, value.encode() if isinstance(value, str) else value)
                for name, value in line.headers
            )
            row = (place["offset"], place["timestamp"], line.key, line.value, headers)
            yield place["partition"], row


def _of_parquet(lake: Path) -> Iterator[tuple[int, Row]]:
    """Files of a partition in the order of their tasks, as their names have it."""
    for path in sorted(lake.rglob("*.parquet")):
        partition = int(path.parent.name.removeprefix("partition="))
        for row in pq.ParquetFile(path).read().to_pylist():
            headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
            at_ms = round(row["timestamp"].timestamp() * 1000)
            yield partition, (row["offset"], at_ms, row["key"], row["value"], headers)


def _digest(rows: Iterable[tuple[int, Row]]) -> Shape:
    """Over the rows of each partition in the order in which they come."""
    digests: dict[int, hashlib._Hash] = {}
    counts: dict[int, int] = {}
    for partition, row in rows:
        digests.setdefault(partition, hashlib.sha256()).update(repr(row).encode())
        counts[partition] = counts.get(partition, 0) + 1
    return {at: Digest(counts[at], digests[at].hexdigest()[:16]) for at in sorted(digests)}
