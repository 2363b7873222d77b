"""Third-party clients on a log with transactions: with `read_committed`, they show exactly the
committed records; with `read_uncommitted`, all records."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition
from kio.schema.errors import ErrorCode

import bucketlog
from bucketlog.embedded.cluster import ClusterStartError, EmbeddedCluster
from bucketlog.inspect.doctor.digest import differences
from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
from bucketlog.inspect.doctor.of_cluster import digest_of_cluster
from bucketlog.inspect.verify import verify_log
from bucketlog.log_format.model import FactEntry
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, newest_first
from tests.rigs.patience import eventually
from tests.rigs.transactional_log import COMMITTED_OFFSET, GROUP, TOPIC, TransactionalLog
from tests.rigs.wire_client import WireClient
from tests.servers.components import Components
from tests.servers.kafka_tools import participating_tools

pytestmark = pytest.mark.long

Rows = dict[int, list[tuple[int, bytes]]]
LEVELS = pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
WAIT_S = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def planted(folder: Path) -> TransactionalLog:
    (folder / "bucket").mkdir(mode=0o700)
    return TransactionalLog(FileBucket(folder / "bucket" / "0"), seed=11)


@pytest.fixture(scope="module")
def cluster(folder: Path, planted: TransactionalLog) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(folder, settings={"compaction_check_interval_ms": "0"}) as started:
        yield started


def expected(planted: TransactionalLog, level: str) -> Rows:
    return dict(planted.expected(committed_only=level == "read_committed"))


def ends(planted: TransactionalLog, level: str) -> dict[int, int]:
    return {
        number: part.stable_end if level == "read_committed" else part.end
        for number, part in planted.partitions.items()
    }


@LEVELS
def test_confluent_kafka(planted: TransactionalLog, cluster: EmbeddedCluster, level: str) -> None:
    config = {"bootstrap.servers": cluster.bootstrap, "group.id": "c", "isolation.level": level}
    consumer = Consumer({**config, "enable.auto.commit": False, "enable.partition.eof": True})
    found: Rows = {number: [] for number in planted.partitions}
    left = dict(ends(planted, level))
    try:
        consumer.assign([TopicPartition(TOPIC, number, 0) for number in found])
        while left:
            message = consumer.poll(WAIT_S)
            assert message is not None, "no record came"
            number = message.partition() or 0
            if message.error() is not None:
                assert message.offset() == left.pop(number)
            else:
                found[number].append((message.offset() or 0, message.value() or b""))
    finally:
        consumer.close()
    assert found == expected(planted, level)


@LEVELS
def test_kafka_python(planted: TransactionalLog, cluster: EmbeddedCluster, level: str) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=cluster.bootstrap, isolation_level=level, auto_offset_reset="earliest"
    )
    found: Rows = {number: [] for number in planted.partitions}
    parts = {number: PythonPartition(TOPIC, number) for number in found}
    try:
        consumer.assign(list(parts.values()))
        while any(consumer.position(parts[at]) < end for at, end in ends(planted, level).items()):
            for part, records in consumer.poll(1000).items():
                found[part.partition] += [(record.offset, record.value) for record in records]
    finally:
        consumer.close()
    assert found == expected(planted, level)


@LEVELS
async def test_aiokafka(planted: TransactionalLog, cluster: EmbeddedCluster, level: str) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=cluster.bootstrap, isolation_level=level, auto_offset_reset="earliest"
    )
    found: Rows = {number: [] for number in planted.partitions}
    await consumer.start()
    try:
        parts = {number: AioPartition(TOPIC, number) for number in found}
        consumer.assign(list(parts.values()))
        for number, end in ends(planted, level).items():
            while await consumer.position(parts[number]) < end:
                for part, records in (await consumer.getmany(timeout_ms=1000)).items():
                    found[part.partition] += [(record.offset, record.value) for record in records]
    finally:
        await consumer.stop()
    assert found == expected(planted, level)


@LEVELS
def test_kafkas_console_consumer(
    planted: TransactionalLog, cluster: EmbeddedCluster, components: Components, level: str
) -> None:
    tools = participating_tools(cluster.bootstrap, components)
    wanted = expected(planted, level)
    for number, rows in wanted.items():
        lines = tools.lines(
            *("kafka-console-consumer", "--topic", TOPIC, "--partition", str(number)),
            *("--from-beginning", "--max-messages", str(len(rows)), "--timeout-ms", "20000"),
            *("--isolation-level", level),
        )
        assert [line.encode() for line in lines] == [value for _, value in rows]


def test_the_sdk_stops_at_the_last_stable_offset(
    planted: TransactionalLog, cluster: EmbeddedCluster
) -> None:
    """`until="end"` does not wait for what an open transaction holds back."""
    found: Rows = {}
    with (
        bucketlog.connect(cluster.bootstrap) as log,
        log.consumer(bucketlog.Topic(TOPIC), until="end", start="earliest") as consumer,
    ):
        for record in consumer:
            found.setdefault(record.partition, []).append((record.offset, record.value))
    assert found == expected(planted, "read_committed")


@LEVELS
def test_latest_offsets(planted: TransactionalLog, cluster: EmbeddedCluster, level: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # not annotated
    asked = admin.list_offsets(
        {TopicPartition(TOPIC, number): latest for number in planted.partitions},
        isolation_level=IsolationLevel[level.upper()],
    )
    found = {key.partition: future.result().offset for key, future in asked.items()}
    assert found == ends(planted, level)


@pytest.mark.parametrize("stable", [True, False])
def test_pending_offsets(planted: TransactionalLog, cluster: EmbeddedCluster, stable: bool) -> None:
    """KIP-447: requests for stable offsets get a retriable error; others see committed offsets."""
    wanted = {"name": TOPIC, "partition_indexes": sorted(planted.partitions)}
    group = {"group_id": GROUP, "topics": [wanted]}
    with WireClient(cluster.bootstrap) as client:
        for version in (7, 8):
            if version < 8:
                answer = client.call(
                    ApiKey.OFFSET_FETCH,
                    version,
                    group_id=GROUP,
                    topics=[wanted],
                    require_stable=stable,
                )
            else:
                (answer,) = client.call(
                    ApiKey.OFFSET_FETCH, version, groups=[group], require_stable=stable
                ).groups
            rows = [(row.error_code, row.committed_offset) for row in answer.topics[0].partitions]
            unstable = (ErrorCode.unstable_offset_commit, -1)
            committed = [(ErrorCode.none, COMMITTED_OFFSET), (ErrorCode.none, -1)]
            assert rows == ([unstable, unstable] if stable else committed)


def test_after_splitting_and_from_a_checkpoint(
    planted: TransactionalLog, folder: Path, cluster: EmbeddedCluster
) -> None:
    """The last test: it ends the cluster of the others."""
    cluster.stop()
    quick = {"compaction_check_interval_ms": "50", "checkpoint_interval_ms": "200"}
    bucket = FileBucket(folder / "bucket" / "0")
    for _ in range(2):
        with EmbeddedCluster(folder, settings=quick) as again:
            eventually(lambda: len(list(bucket.list(keys.SEGMENTS))) >= len(planted.partitions))
            eventually(lambda: _newest_version(bucket) == 4)
            test_confluent_kafka(planted, again, "read_committed")
            test_kafka_python(planted, again, "read_committed")
            test_latest_offsets(planted, again, "read_committed")
            test_pending_offsets(planted, again, True)
            cluster_digest = digest_of_cluster(again.bootstrap)
    bucket_digest = digest_of_bucket(bucket)
    assert list(differences(bucket_digest, cluster_digest)) == []
    assert verify_log(bucket).damage == []


def _newest_version(bucket: FileBucket) -> int:
    found = newest_first(bucket.list(keys.CHECKPOINTS))
    if not found:
        return 0
    return decode_checkpoint(found[0].key, bucket.get(found[0].key).data).version


def test_a_broker_stops_at_a_fact_that_it_does_not_know(tmp_path: Path) -> None:
    """A broker of the previous release stops in the same way at the facts of transactions."""
    (tmp_path / "bucket").mkdir(mode=0o700)
    newer = TransactionalLog(FileBucket(tmp_path / "bucket" / "0"), seed=1, steps=3).log
    newer.entry(FactEntry(99, 1, b"{}"))
    newer.flush()
    with (
        pytest.raises(
            ClusterStartError, match=r"kind 99 version 1 \(a newer .* upgrade this one\)"
        ),
        EmbeddedCluster(tmp_path),
    ):
        pass
