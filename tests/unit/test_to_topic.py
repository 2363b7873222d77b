"""A replay into a topic, of the cluster that librdkafka plays for tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

import bucketlog
from bucketlog import Topic
from bucketlog.log_format.records import DecodedRecord
from bucketlog.replaying.to_topic import Copy
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.patience import PATIENCE_S
from tests.rigs.written_log import START_MS, WrittenLog


@pytest.fixture
def bootstrap() -> Iterator[str]:
    """One broker with the topic `copy`; it goes with its producer."""
    owner = Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1})
    (broker,) = owner.list_topics("copy", timeout=PATIENCE_S).brokers.values()
    yield f"{broker.host}:{broker.port}"
    owner.flush(0)


def test_timestamps_stay_as_they_are_without_a_date_too(tmp_path: Path, bootstrap: str) -> None:
    """But for 0, which librdkafka takes for now: it becomes 1."""
    log = WrittenLog(FileBucket(tmp_path / "0"))
    log.create_topic("orders", 1)
    for timestamp_ms in (0, -1, -2_000, 5, START_MS):
        log.append("orders", 0, [DecodedRecord(0, timestamp_ms, None, b"%d" % timestamp_ms)])
    log.flush()
    log.bucket.close()
    with bucketlog.connect(bootstrap) as target:
        copy = Copy(bucketlog.replay(str(tmp_path), "orders"), "copy", by_key=False)
        assert copy.run(target) == 5
        with target.consumer(Topic("copy"), start="earliest", until="end") as consumer:
            found = {record.value: record.timestamp_ms for record in consumer}
    assert found == {b"0": 1, b"-1": -1, b"-2000": -2_000, b"5": 5, b"%d" % START_MS: START_MS}
