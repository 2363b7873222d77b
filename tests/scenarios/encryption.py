"""An encrypted topic, read by replay, Spark and consumers: with its key, without it, and after the
key was deleted.

Two topics have the same records, one of them encrypted, so that each reader says the same of both.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import BucketlogError
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from tests.rigs.encryption import write_keys
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.scenarios.spark_plan import session

OPEN, CLOSED = "open", "closed"
KEY = "local:owner"
MARK = b"only-with-the-key"
PARTITIONS = 2
SETTINGS = {
    "encryption_data_key_kept_ms": "1000",
    "encryption_refused_ms": "100",
    "compaction_check_interval_ms": "500",
    "compaction_interval_ms": "1",
    "compaction_age_ms_min": "1",
}
"""Brokers forget data keys soon, and records move to tiers."""


@dataclass(slots=True)
class EncryptionFigures:
    records: int
    equal: dict[str, bool] = field(default_factory=dict)
    """By reader with the key: whether both topics say the same."""
    refusals: dict[str, str] = field(default_factory=dict)
    """By reader without the key: its error."""
    plain_objects: int = 0
    """Objects of the bucket in which a value of the encrypted topic stands in the clear."""
    seconds: float = 0.0

    @property
    def problems(self) -> list[str]:
        found = [f"{name} reads something else" for name, same in self.equal.items() if not same]
        found += [
            f"{name} says {text!r}, which does not name the key"
            for name, text in self.refusals.items()
            if "owner" not in text and "TOPIC_AUTHORIZATION_FAILED" not in text
        ]
        if self.plain_objects:
            found.append(f"{self.plain_objects} objects hold plain records")
        return found


def encryption(records: int, tell: Callable[[str, str], None], folder: Path) -> EncryptionFigures:
    """`tell` gets each reader and what it found."""
    started, figures = monotonic(), EncryptionFigures(records)
    key_file = write_keys(folder / "keys", "owner")
    settings = SETTINGS | {"encryption_key_file": str(key_file)}
    with EmbeddedCluster(folder / "data", settings=settings) as cluster, session() as spark:
        url = cluster.bucket_url
        _fill(cluster.bootstrap, records)
        figures.plain_objects = _plain_objects(url)
        tell("the bucket", f"{figures.plain_objects} objects with plain records")

        def compare(name: str, read: Callable[[str], object]) -> None:
            figures.equal[name] = read(OPEN) == read(CLOSED)
            tell(name, "as the open topic" if figures.equal[name] else "something else")

        def refuse(name: str, read: Callable[[], object]) -> None:
            figures.refusals[name] = _refusal(read)
            tell(name, figures.refusals[name])

        compare("replay", lambda topic: _replayed(url, topic, records, key_file))
        compare("spark", lambda topic: _by_spark(spark, url, topic, records, key_file))
        compare("consumer", lambda topic: _consumed(cluster.bootstrap, topic, records))
        refuse("replay without the key", lambda: _replayed(url, CLOSED, records, None))
        refuse("spark without the key", lambda: _by_spark(spark, url, CLOSED, records, None))
        write_keys(key_file)
        refuse("replay after the deletion", lambda: _by_command(url, key_file))
        refuse("spark after the deletion", lambda: _by_spark(spark, url, CLOSED, records, key_file))
        refuse("consumer after the deletion", lambda: _until_refused(cluster.bootstrap))
        compare("open topic afterwards", lambda _: _consumed(cluster.bootstrap, OPEN, records))
    figures.seconds = round(monotonic() - started, 1)
    return figures


def _fill(bootstrap: str, records: int) -> None:
    with bucketlog.connect(bootstrap) as log:
        log.topics.create(OPEN, partitions=PARTITIONS)
        log.topics.create(CLOSED, partitions=PARTITIONS, configs={"encryption.key.id": KEY})
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(records):
        for topic in (OPEN, CLOSED):
            mark = MARK if topic == CLOSED else b"for-everybody"
            value = b"%d " % number + (b"" if number % 100 else mark)
            producer.produce(topic, value, key=b"%d" % number, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.flush(PATIENCE_S)
    assert producer.flush(PATIENCE_S) == 0


def _plain_objects(url: str) -> int:
    bucket = open_sync_bucket(url)
    try:
        return sum(MARK in bytes(bucket.get(info.key).data) for info in bucket.list(""))
    finally:
        bucket.close()


def _numbers(values: pa.ChunkedArray | list[bytes]) -> int:
    """A sum that every record changes, and no order."""
    texts = values.to_pylist() if isinstance(values, pa.ChunkedArray) else values
    return sum(int(text.split()[0]) for text in texts)


def _replayed(url: str, topic: str, records: int, key_file: Path | None) -> tuple[int, int]:
    table = bucketlog.replay(url, topic, encryption_key_file=key_file).to_arrow()
    assert table.num_rows == records, f"{table.num_rows} records"
    return table.num_rows, _numbers(table.column("value"))


def _by_command(url: str, key_file: Path) -> None:
    """In a process that has no data key in memory."""
    program = Path(sys.executable).with_name("bucketlog")
    command = [str(program), "replay", url, CLOSED, "--encryption-key-file", str(key_file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BucketlogError(" ".join(done.stderr.split()))


def _by_spark(
    spark: SparkSession, url: str, topic: str, records: int, key_file: Path | None
) -> tuple[int, int]:
    options = {"subscribe": topic}
    if key_file is not None:
        options["encryption.keyFile"] = str(key_file)
    frame = spark.read.format("bucketlog").options(**options).load(url)
    number = "sum(cast(split(cast(value as string), ' ')[0] as bigint))"
    row = frame.selectExpr("count(*) as n", f"{number} as s").collect()[0]
    assert row["n"] == records, f"{row['n']} records"
    return row["n"], row["s"]


def _consumed(bootstrap: str, topic: str, records: int) -> tuple[int, int]:
    values: list[bytes] = []
    with _consumer(bootstrap, topic) as consumer:
        deadline = Deadline(f"{records} records of {topic}")
        while len(values) < records:
            for message in consumer.consume(10_000, timeout=1):
                assert message.error() is None, message.error()
                values.append(message.value() or b"")
            deadline.check()
    return len(values), _numbers(values)


def _until_refused(bootstrap: str) -> None:
    """Until the broker has forgotten the data keys."""
    deadline = Deadline("no refusal")
    while True:
        with _consumer(bootstrap, CLOSED) as consumer:
            for message in consumer.consume(1, timeout=2):
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, error
                    raise BucketlogError(f"TOPIC_AUTHORIZATION_FAILED: {error.str()}")
        deadline.pause()


@contextmanager
def _consumer(bootstrap: str, topic: str) -> Iterator[Consumer]:
    config: Mapping[str, str | int | bool] = {
        "bootstrap.servers": bootstrap,
        "group.id": "encryption",
        "enable.auto.commit": False,
    }
    consumer = Consumer(dict(config))
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        yield consumer
    finally:
        consumer.close()


def _refusal(read: Callable[[], object]) -> str:
    try:
        found = read()
    except (BucketlogError, PySparkException) as error:
        lines = [line for line in str(error).splitlines() if "key" in line or "TOPIC_" in line]
        return (lines or [str(error)])[-1].strip()[:300]
    return f"no error, but {found}"
