"""Produce: what is accepted, and what is refused with Kafka's own codes.

Sources: Kafka's ProduceRequest.validateRecords, LogValidator and UnifiedLog.analyzeAndValidate
Records; the error codes of the protocol guide.
"""

import struct
import uuid

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.conftest import MakeTopic
from tests.integration.kafka_requests import (
    LATEST,
    fetch,
    list_offset,
    produce,
    produce_values,
    produced,
)
from tests.rigs.wire_client import WireClient, build_batch, patch_batch

BATCH = build_batch([(b"key", b"value"), (None, b"second")])
COUNT_AT = 57
LAST_DELTA_AT = 23
ATTRIBUTES_AT = 21


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_appends(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic()
    assert produce(client, topic, BATCH, version=version)[:2] == (ErrorCode.none, 0)
    assert produce(client, topic, BATCH, version=version)[:2] == (ErrorCode.none, 2)


class TestTopicIds:
    """Version 13 names topics by their ids (KIP-516)."""

    @staticmethod
    def id_of(client: WireClient, name: str) -> uuid.UUID:
        values = {"topics": [{"name": name, "topic_id": None}], "allow_auto_topic_creation": False}
        rights = {"include_topic_authorized_operations": False}
        topic_id = client.call(ApiKey.METADATA, 12, **values, **rights).topics[0].topic_id
        assert isinstance(topic_id, uuid.UUID)
        return topic_id

    @staticmethod
    def send(
        client: WireClient, *ids: uuid.UUID | None, partition: int = 0
    ) -> list[tuple[uuid.UUID | None, int, int]]:
        """Topic id, error and base offset of each partition."""
        rows = [{"index": partition, "records": BATCH}]
        topics = [{"topic_id": each, "partition_data": rows} for each in ids]
        values = {"acks": -1, "timeout": 20_000, "topic_data": topics}
        answer = client.call(ApiKey.PRODUCE, 13, **values)
        return [
            (topic.topic_id, int(row.error_code), row.base_offset)
            for topic in answer.responses
            for row in topic.partition_responses
        ]

    def test_records_are_appended(self, client: WireClient, make_topic: MakeTopic) -> None:
        topic = make_topic()
        topic_id = self.id_of(client, topic)
        assert self.send(client, topic_id) == [(topic_id, ErrorCode.none, 0)]
        assert self.send(client, topic_id) == [(topic_id, ErrorCode.none, 2)]
        assert fetch(client, topic, 0).high_watermark == 4

    def test_unknown_ids(self, client: WireClient, make_topic: MakeTopic) -> None:
        """They do not harm the other topics of the request."""
        known, unknown = self.id_of(client, make_topic()), uuid.uuid4()
        answer = self.send(client, unknown, known, None)
        assert sorted(answer, key=str) == sorted(
            [
                (unknown, ErrorCode.unknown_topic_id, -1),
                (known, ErrorCode.none, 0),
                (None, ErrorCode.unknown_topic_id, -1),
            ],
            key=str,
        )

    def test_an_unknown_partition(self, client: WireClient, make_topic: MakeTopic) -> None:
        topic_id = self.id_of(client, make_topic())
        answer = self.send(client, topic_id, partition=7)
        assert answer == [(topic_id, ErrorCode.unknown_topic_or_partition, -1)]

    def test_a_topic_that_is_created_again(self, client: WireClient, make_topic: MakeTopic) -> None:
        topic = make_topic()
        old = self.id_of(client, topic)
        values = {"topics": [{"name": topic, "topic_id": None}], "timeout": 20_000}
        deleted = client.call(ApiKey.DELETE_TOPICS, 6, **values)
        assert deleted.responses[0].error_code == ErrorCode.none
        assert self.send(client, old) == [(old, ErrorCode.unknown_topic_id, -1)]
        row = {"name": topic, "num_partitions": 1, "replication_factor": 1}
        client.call(ApiKey.CREATE_TOPICS, 5, topics=[row], timeout=20_000)
        assert self.send(client, old) == [(old, ErrorCode.unknown_topic_id, -1)]
        new = self.id_of(client, topic)
        assert self.send(client, new) == [(new, ErrorCode.none, 0)]
        assert fetch(client, topic, 0).high_watermark == 2


@pytest.mark.parametrize("version", range(3))
def test_old_versions_close_the_connection(client: WireClient, version: int) -> None:
    client.send_frame(struct.pack(">hhih", ApiKey.PRODUCE, version, 7, -1) + bytes(10))
    assert client.read_frame() is None


@pytest.mark.parametrize("acks", [1, -1])
def test_acknowledged(client: WireClient, make_topic: MakeTopic, acks: int) -> None:
    topic = make_topic()
    assert produce(client, topic, BATCH, acks=acks).error == ErrorCode.none
    assert list_offset(client, topic, LATEST)[:2] == (ErrorCode.none, 2)


def test_acks_0_is_not_answered_and_keeps_its_place(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    client.send_unanswered(ApiKey.PRODUCE, 9, **produce_values(topic, BATCH, acks=0))
    assert produce(client, topic, BATCH)[:2] == (ErrorCode.none, 2)


def test_a_topic_of_32767_bytes_beside_one_that_exists(
    client: WireClient, make_topic: MakeTopic
) -> None:
    """The error for the long name does not stop the broker from writing."""
    topic, unknown = make_topic(), "a" * 32_767
    values = produce_values(topic, BATCH)
    data = [{"index": 0, "records": BATCH}]
    values["topic_data"] = [{"name": unknown, "partition_data": data}, *values["topic_data"]]
    refused, accepted = client.call(ApiKey.PRODUCE, 8, **values).responses
    (row,) = refused.partition_responses
    assert row.error_code == ErrorCode.unknown_topic_or_partition
    assert accepted.partition_responses[0].error_code == ErrorCode.none
    assert produce(client, topic, BATCH)[:2] == (ErrorCode.none, 2)


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_invalid_acks(client: WireClient, make_topic: MakeTopic, acks: int) -> None:
    topic = make_topic()
    assert produce(client, topic, BATCH, acks=acks).error == ErrorCode.invalid_required_acks
    assert list_offset(client, topic, LATEST)[1] == 0


REFUSED = {
    "crc": (ErrorCode.corrupt_message, patch_batch(BATCH, 17, ">I", 1, crc=False)),
    "flipped byte": (
        ErrorCode.corrupt_message,
        patch_batch(BATCH, len(BATCH) - 1, ">B", BATCH[-1] ^ 1, crc=False),
    ),
    "unknown magic": (ErrorCode.corrupt_message, patch_batch(BATCH, 16, ">b", 9)),
    "magic 1": (ErrorCode.invalid_record, patch_batch(BATCH, 16, ">b", 1)),
    "nothing": (ErrorCode.invalid_record, b""),
    "two batches": (ErrorCode.invalid_record, BATCH + BATCH),
    "no records": (ErrorCode.invalid_record, patch_batch(BATCH, COUNT_AT, ">i", 0)),
    "negative count": (ErrorCode.invalid_record, patch_batch(BATCH, COUNT_AT, ">i", -5)),
    "absurd count": (ErrorCode.invalid_record, patch_batch(BATCH, COUNT_AT, ">i", 2**31 - 1)),
    "absurd count and delta": (
        ErrorCode.invalid_record,
        patch_batch(patch_batch(BATCH, COUNT_AT, ">i", 2**30), LAST_DELTA_AT, ">i", 2**30 - 1),
    ),
    "delta": (ErrorCode.invalid_record, patch_batch(BATCH, LAST_DELTA_AT, ">i", 5)),
    "negative delta": (ErrorCode.invalid_record, patch_batch(BATCH, LAST_DELTA_AT, ">i", -1)),
    "control batch": (ErrorCode.invalid_record, patch_batch(BATCH, ATTRIBUTES_AT, ">h", 0x20)),
    "base offset": (ErrorCode.invalid_record, patch_batch(BATCH, 0, ">q", 5, crc=False)),
    "producer id without sequence": (
        ErrorCode.invalid_record,
        patch_batch(BATCH, 43, ">q", 17),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(client: WireClient, make_topic: MakeTopic, case: str) -> None:
    topic = make_topic()
    code, batch = REFUSED[case]
    answer = produce(client, topic, batch)
    assert ErrorCode(answer.error) is code, answer
    assert answer.base_offset == -1
    assert list_offset(client, topic, LATEST)[1] == 0
    assert produce(client, topic, BATCH)[:2] == (ErrorCode.none, 0)


@pytest.mark.parametrize("length", [0, 10, 48, len(BATCH), 2**31 - 1, -1])
def test_a_length_that_does_not_fit(client: WireClient, make_topic: MakeTopic, length: int) -> None:
    """Kafka answers one code or the other, by how far off the length is."""
    topic = make_topic()
    answer = produce(client, topic, patch_batch(BATCH, 8, ">i", length, crc=False))
    assert answer.error in {ErrorCode.corrupt_message, ErrorCode.invalid_record}
    assert list_offset(client, topic, LATEST)[1] == 0


def test_an_unknown_codec_is_refused(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    batch = patch_batch(BATCH, ATTRIBUTES_AT, ">h", 6)
    assert produce(client, topic, batch).error in {
        ErrorCode.invalid_record,
        ErrorCode.corrupt_message,
        ErrorCode.unsupported_compression_type,
    }
    assert list_offset(client, topic, LATEST)[1] == 0


def test_zstd_needs_version_7(client: WireClient, make_topic: MakeTopic) -> None:
    """KIP-110."""
    topic = make_topic()
    batch = build_batch([(None, b"x" * 100)], codec=4)
    refused = produce(client, topic, batch, version=6)
    assert refused.error == ErrorCode.unsupported_compression_type
    assert produce(client, topic, batch, version=7).error == ErrorCode.none


def test_a_bad_batch_spoils_only_its_own_partition(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    bad = patch_batch(BATCH, 17, ">I", 1, crc=False)
    rows = [{"index": 0, "records": BATCH}, {"index": 1, "records": bad}]
    rows += [{"index": 2, "records": BATCH}]
    answer = client.call(
        ApiKey.PRODUCE,
        9,
        acks=-1,
        timeout=20_000,
        topic_data=[{"name": topic, "partition_data": rows}],
    )
    codes = {row.index: row.error_code for row in answer.responses[0].partition_responses}
    assert codes == {0: ErrorCode.none, 1: ErrorCode.corrupt_message, 2: ErrorCode.none}


def test_larger_than_the_topic_allows(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="2000")
    large = build_batch([(None, bytes(3000))])
    assert produce(client, topic, large).error == ErrorCode.message_too_large
    assert produce(client, topic, build_batch([(None, bytes(1000))])).error == ErrorCode.none


def test_unknown_topic_and_partition(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    unknown = ErrorCode.unknown_topic_or_partition
    assert produce(client, "no-such-topic", BATCH).error == unknown
    assert produce(client, topic, BATCH, partition=1).error == unknown
    assert produce(client, topic, BATCH, partition=-1).error == unknown


def test_bytes_come_back_as_they_were(client: WireClient, make_topic: MakeTopic) -> None:
    """All but base offset and leader epoch, which the CRC does not cover."""
    topic = make_topic()
    for number, codec in enumerate([0, 1, 2, 3, 4]):
        batch = build_batch([(b"k", b"v" * 500), (b"k2", None)], codec=codec)
        assert produce(client, topic, batch)[:2] == (ErrorCode.none, 2 * number)
        data = fetch(client, topic, 2 * number).data
        assert read_header(data).base_offset == 2 * number
        assert data[16:] == batch[16:]


def test_log_append_time(client: WireClient, make_topic: MakeTopic) -> None:
    """KIP-32: the broker's time in the answer and in the batch, whose CRC holds again."""
    topic = make_topic(message_timestamp_type="LogAppendTime")
    answer = produce(client, topic, BATCH)
    assert answer.error == ErrorCode.none
    data = fetch(client, topic, 0).data
    header = read_header(data)
    assert header.attributes & 0x08
    assert answer.log_append_time is not None
    assert header.max_timestamp == round(answer.log_append_time.timestamp() * 1000)
    assert patch_batch(data, 0, ">q", 0)[17:21] == data[17:21]
    assert data[header.size_bytes - 20 :] == BATCH[header.size_bytes - 20 :]


def test_create_time_is_not_told(client: WireClient, make_topic: MakeTopic) -> None:
    assert produce(client, make_topic(), BATCH).log_append_time is None


def test_requests_on_one_connection_are_answered_in_order(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    for _ in range(20):
        client.send(ApiKey.PRODUCE, 9, **produce_values(topic, BATCH))
    assert [produced(client)[:2] for _ in range(20)] == [(0, 2 * n) for n in range(20)]
    assert list_offset(client, topic, LATEST)[1] == 40


def test_a_slow_request_does_not_let_a_fast_one_pass(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    client.send(ApiKey.PRODUCE, 9, **produce_values(topic, BATCH))
    client.send(ApiKey.PRODUCE, 9, **produce_values("no-such-topic", BATCH))
    assert produced(client).error == ErrorCode.none
    assert produced(client).error == ErrorCode.unknown_topic_or_partition


def test_an_empty_request_is_answered(client: WireClient) -> None:
    assert client.call(ApiKey.PRODUCE, 9, acks=-1, timeout=1000, topic_data=[]).responses == ()


def test_a_timeout_of_0_is_no_error_of_the_connection(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    values = produce_values(topic, BATCH) | {"timeout": 0}
    client.send(ApiKey.PRODUCE, 9, **values)
    assert produced(client).error in {ErrorCode.none, ErrorCode.request_timed_out}


@pytest.mark.parametrize("policy", ["compact", "delete, compact"])
def test_a_compacted_topic_takes_records_with_keys_alone(
    client: WireClient, make_topic: MakeTopic, policy: str
) -> None:
    topic = make_topic(cleanup_policy=policy)
    keyed = build_batch([(b"a", b"1"), (b"", None)])
    assert produce(client, topic, keyed)[:2] == (ErrorCode.none, 0)
    refused = produce(client, topic, BATCH)
    assert refused.error == ErrorCode.invalid_record
    assert f"without key in topic partition {topic}-0" in (refused.message or "")
    garbled = patch_batch(keyed, len(keyed) - 1, ">B", 0x7F)
    assert produce(client, topic, garbled).error == ErrorCode.invalid_record
    assert produce(client, topic, keyed)[:2] == (ErrorCode.none, 2)
