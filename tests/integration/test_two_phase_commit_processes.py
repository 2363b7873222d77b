"""A prepared transaction outlives `kill -9` of its broker and a FLUSHALL; a librdkafka consumer
reads all of its records or none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.test_broker_restart import create_topic
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.rigs.wire_client import WireClient, transactional_values
from tests.servers.own_cluster import OwnCluster

PARTITIONS = 3
ON = {"transaction_two_phase_commit": "true"}
AGAIN = (
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.concurrent_transactions,
    ErrorCode.not_coordinator,
    ErrorCode.not_enough_replicas,
    ErrorCode.not_leader_or_follower,
)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnCluster]:
    cluster = OwnCluster(tmp_path)
    yield cluster
    cluster.stop()


def asked(bootstrap: str, key: ApiKey, version: int, /, **values: Any) -> Any:
    """The first response without a retriable error."""
    deadline = Deadline(f"{key.message_name} is not answered")
    while True:
        deadline.check()
        with WireClient(bootstrap) as client:
            answer = client.call(key, version, **values)
        if answer.error_code not in AGAIN:
            return answer


def initialise(bootstrap: str, *, keeps: bool) -> Any:
    answer = asked(
        bootstrap,
        ApiKey.INIT_PRODUCER_ID,
        6,
        transactional_id="sink",
        transaction_timeout=1_000,
        producer_id=-1,
        producer_epoch=-1,
        enable2_pc=True,
        keep_prepared_txn=keeps,
    )
    assert answer.error_code is ErrorCode.none
    return answer


def produce(bootstrap: str, pair: tuple[int, int]) -> None:
    """Produce one record to each partition."""
    with WireClient(bootstrap) as client:
        for number in range(PARTITIONS):
            values = transactional_values("sink", pair, "t", number, b"prepared")
            answer = client.call(ApiKey.PRODUCE, 12, **values)
            assert answer.responses[0].partition_responses[0].error_code is ErrorCode.none


def end(bootstrap: str, pair: tuple[int, int], *, commit: bool) -> ErrorCode:
    answer = asked(
        bootstrap,
        ApiKey.END_TXN,
        5,
        transactional_id="sink",
        producer_id=pair[0],
        producer_epoch=pair[1],
        committed=commit,
    )
    return ErrorCode(answer.error_code)


def read_committed(bootstrap: str) -> list[bytes | None]:
    """All values up to the last stable offset of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition("t", number, 0) for number in range(PARTITIONS)])
        found: list[bytes | None] = []
        ends = 0
        while ends < PARTITIONS:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            if message.error() is not None:
                ends += 1
            else:
                found.append(message.value())
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("commit", [True, False])
def test_a_prepared_transaction_outlives_a_kill_and_a_wipe(own: OwnCluster, commit: bool) -> None:
    broker = own.start(**ON)
    create_topic(broker.bootstrap, "t", PARTITIONS)
    first = initialise(broker.bootstrap, keeps=False)
    former = first.producer_id, first.producer_epoch
    produce(broker.bootstrap, former)
    own.valkey.wipe()
    broker.kill()
    broker = own.start(port=str(broker.ready["port"]), **ON)
    assert read_committed(broker.bootstrap) == []
    second = initialise(broker.bootstrap, keeps=True)
    assert (second.ongoing_txn_producer_id, second.ongoing_txn_producer_epoch) == former
    broker.kill()
    own.valkey.wipe()
    broker = own.start(port=str(broker.ready["port"]), **ON)
    assert end(broker.bootstrap, former, commit=commit) is ErrorCode.producer_fenced
    assert read_committed(broker.bootstrap) == []
    owner = second.producer_id, second.producer_epoch
    assert end(broker.bootstrap, owner, commit=commit) is ErrorCode.none
    assert end(broker.bootstrap, owner, commit=commit) is ErrorCode.none, "a repeat"
    assert read_committed(broker.bootstrap) == [b"prepared"] * (PARTITIONS if commit else 0)
