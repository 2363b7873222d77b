"""Idempotent producers (KIP-98): duplicates, gaps, fencing, unknown producers."""

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import (
    LATEST,
    list_offset,
    produce,
    produce_values,
    produced,
)
from tests.rigs.wire_client import WireClient, build_batch


def new_producer(client: WireClient) -> int:
    answer = client.call(
        ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout=60_000
    )
    assert answer.error_code == ErrorCode.none
    assert answer.producer_epoch == 0
    return int(answer.producer_id)


def batch(producer_id: int, sequence: int, *, epoch: int = 0, count: int = 2) -> bytes:
    rows = [(b"k", b"%d" % number) for number in range(sequence, sequence + count)]
    return build_batch(rows, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


@pytest.mark.parametrize("version", range(5))
def test_producer_ids_are_unique(client: WireClient, version: int) -> None:
    ids = {
        client.call(
            ApiKey.INIT_PRODUCER_ID, version, transactional_id=None, transaction_timeout=60_000
        ).producer_id
        for _ in range(50)
    }
    assert len(ids) == 50
    assert min(ids) >= 0


def test_a_duplicate_gets_the_old_offset(client: WireClient, make_topic: MakeTopic) -> None:
    topic, producer = make_topic(), new_producer(client)
    for number in range(5):
        assert produce(client, topic, batch(producer, 2 * number))[:2] == (0, 2 * number)
    for number in (4, 0, 2):
        again = produce(client, topic, batch(producer, 2 * number))
        assert again[:2] == (ErrorCode.none, 2 * number), again
    assert list_offset(client, topic, LATEST)[1] == 10


def test_a_duplicate_on_another_connection(
    client: WireClient, make_topic: MakeTopic, broker: EmbeddedCluster
) -> None:
    topic, producer = make_topic(), new_producer(client)
    assert produce(client, topic, batch(producer, 0))[:2] == (ErrorCode.none, 0)
    with WireClient(broker.bootstrap) as other:
        assert produce(other, topic, batch(producer, 0))[:2] == (ErrorCode.none, 0)
        assert produce(other, topic, batch(producer, 2))[:2] == (ErrorCode.none, 2)


def test_duplicates_in_flight_together(client: WireClient, make_topic: MakeTopic) -> None:
    """The later ones wait for the outcome of the first."""
    topic, producer = make_topic(), new_producer(client)
    for _ in range(10):
        client.send(ApiKey.PRODUCE, 9, **produce_values(topic, batch(producer, 0)))
    assert [produced(client)[:2] for _ in range(10)] == [(ErrorCode.none, 0)] * 10
    assert list_offset(client, topic, LATEST)[1] == 2


def test_five_in_flight_keep_their_order(client: WireClient, make_topic: MakeTopic) -> None:
    topic, producer = make_topic(), new_producer(client)
    for number in range(5):
        client.send(ApiKey.PRODUCE, 9, **produce_values(topic, batch(producer, 2 * number)))
    assert [produced(client)[:2] for _ in range(5)] == [(0, 2 * n) for n in range(5)]


def test_a_gap_is_out_of_order(client: WireClient, make_topic: MakeTopic) -> None:
    topic, producer = make_topic(), new_producer(client)
    assert produce(client, topic, batch(producer, 0)).error == ErrorCode.none
    refused = produce(client, topic, batch(producer, 4))
    assert refused.error == ErrorCode.out_of_order_sequence_number
    assert produce(client, topic, batch(producer, 2))[:2] == (ErrorCode.none, 2)


def test_an_overlap_is_out_of_order(client: WireClient, make_topic: MakeTopic) -> None:
    topic, producer = make_topic(), new_producer(client)
    assert produce(client, topic, batch(producer, 0)).error == ErrorCode.none
    refused = produce(client, topic, batch(producer, 1))
    assert refused.error == ErrorCode.out_of_order_sequence_number


def test_without_state_only_sequence_0_is_accepted(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic, producer = make_topic(), new_producer(client)
    refused = produce(client, topic, batch(producer, 6))
    assert refused.error == ErrorCode.unknown_producer_id
    assert produce(client, topic, batch(producer, 0))[:2] == (ErrorCode.none, 0)


def test_a_duplicate_whose_offset_is_forgotten(client: WireClient, make_topic: MakeTopic) -> None:
    """Java's producer would repeat the batch after OUT_OF_ORDER_SEQUENCE_NUMBER."""
    topic, producer = make_topic(), new_producer(client)
    for number in range(7):
        assert produce(client, topic, batch(producer, 2 * number)).error == ErrorCode.none
    again = produce(client, topic, batch(producer, 2))
    assert (again.error, again.base_offset) == (ErrorCode.duplicate_sequence_number, -1)
    assert list_offset(client, topic, LATEST)[1] == 14
    assert produce(client, topic, batch(producer, 14)).error == ErrorCode.none


def test_a_producer_that_is_refused_learns_the_log_start(
    client: WireClient, make_topic: MakeTopic
) -> None:
    """Without the log start, Java's producer repeats the batch until its delivery timeout."""
    topic, producer = make_topic(), new_producer(client)
    starts = []
    for first in (6, 0, 5):
        client.send(ApiKey.PRODUCE, 9, **produce_values(topic, batch(producer, first)))
        answer = client.receive(ApiKey.PRODUCE, 9).responses[0].partition_responses[0]
        starts.append((ErrorCode(answer.error_code), answer.log_start_offset))
    assert starts == [
        (ErrorCode.unknown_producer_id, 0),
        (ErrorCode.none, 0),
        (ErrorCode.out_of_order_sequence_number, 0),
    ]


def test_an_older_epoch_is_fenced(client: WireClient, make_topic: MakeTopic) -> None:
    topic, producer = make_topic(), new_producer(client)
    assert produce(client, topic, batch(producer, 0, epoch=1)).error == ErrorCode.none
    refused = produce(client, topic, batch(producer, 2, epoch=0))
    assert refused.error == ErrorCode.invalid_producer_epoch
    assert list_offset(client, topic, LATEST)[1] == 2


def test_a_newer_epoch_begins_at_sequence_0(client: WireClient, make_topic: MakeTopic) -> None:
    topic, producer = make_topic(), new_producer(client)
    assert produce(client, topic, batch(producer, 0)).error == ErrorCode.none
    refused = produce(client, topic, batch(producer, 2, epoch=1))
    assert refused.error == ErrorCode.out_of_order_sequence_number
    assert produce(client, topic, batch(producer, 0, epoch=1))[:2] == (ErrorCode.none, 2)


def test_partitions_count_for_themselves(client: WireClient, make_topic: MakeTopic) -> None:
    topic, producer = make_topic(partitions=2), new_producer(client)
    for partition in (0, 1):
        answer = produce(client, topic, batch(producer, 0), partition=partition)
        assert answer[:2] == (ErrorCode.none, 0)
