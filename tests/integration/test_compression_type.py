"""`compression.type`: which codec stored batches have, and what of them is too large."""

from itertools import product

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import LOG_APPEND_TIME, Codec, crc_holds, read_header
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.handlers.recompression import AS_SENT, CODECS
from tests.integration.conftest import MakeTopic
from tests.rigs.wire_client import WireClient, build_batch, fetch_values

RECORDS = [(b"key %d" % number, b"value " * 100) for number in range(50)]
LEVELS = {"gzip": ("1", "9"), "lz4": ("1", "17"), "zstd": ("-5", "22")}


def produce(client: WireClient, topic: str, batch: bytes) -> tuple[ErrorCode, str | None]:
    rows = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    answer = client.call(ApiKey.PRODUCE, 8, acks=-1, timeout=20_000, topic_data=rows)
    (row,) = answer.responses[0].partition_responses
    return ErrorCode(row.error_code), row.error_message


def stored(client: WireClient, topic: str) -> bytes:
    """The partition's batches."""
    answer = client.call(ApiKey.FETCH, 11, **fetch_values(topic, {0: 0}))
    return bytes(answer.responses[0].partitions[0].records)


@pytest.mark.parametrize(("name", "sent"), list(product(CODECS, Codec)))
def test_batches_get_the_codec_of_their_topic(
    client: WireClient, make_topic: MakeTopic, name: str, sent: Codec
) -> None:
    topic = make_topic(compression_type=name)
    batch = build_batch(RECORDS, codec=sent)
    for _ in range(2):
        assert produce(client, topic, batch)[0] is ErrorCode.none
    data = stored(client, topic)
    first, second = read_header(data), read_header(data, read_header(data).size_bytes)
    assert (first.codec, second.codec) == (CODECS[name], CODECS[name])
    assert (first.base_offset, second.base_offset) == (0, len(RECORDS))
    assert crc_holds(data[: first.size_bytes], first)
    found = decode_records(data[: first.size_bytes], first)
    assert [(row.key, row.value) for row in found] == RECORDS
    assert [row.timestamp for row in found] == [
        row.timestamp for row in decode_records(batch, read_header(batch))
    ]
    if sent == CODECS[name]:
        assert data[61 : first.size_bytes] == batch[61:], "as it was sent"


@pytest.mark.parametrize("sent", Codec)
def test_batches_stay_as_they_were_sent(
    client: WireClient, make_topic: MakeTopic, sent: Codec
) -> None:
    topic = make_topic(compression_type=AS_SENT)
    batch = build_batch(RECORDS, codec=sent)
    assert produce(client, topic, batch)[0] is ErrorCode.none
    assert stored(client, topic)[16:] == batch[16:]


@pytest.mark.parametrize("name", LEVELS)
def test_levels_matter(client: WireClient, make_topic: MakeTopic, name: str) -> None:
    records = [(None, bytes(range(number % 200, number % 200 + 50))) for number in range(2_000)]
    batch, sizes = build_batch(records), []
    for level in LEVELS[name]:
        configs = {"compression_type": name, f"compression_{name}_level": level}
        topic = make_topic(**configs)
        assert produce(client, topic, batch)[0] is ErrorCode.none
        sizes.append(len(stored(client, topic)))
    assert sizes[0] >= sizes[1]


def test_a_batch_that_grows_beyond_the_limit_is_refused(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(compression_type="uncompressed", max_message_bytes="5000")
    small = build_batch(RECORDS, codec=Codec.GZIP)
    assert len(small) < 5000
    code, message = produce(client, topic, small)
    assert code is ErrorCode.message_too_large
    assert "recompressed" in (message or "")
    assert produce(client, topic, build_batch(RECORDS[:5], codec=Codec.GZIP))[0] is ErrorCode.none


def test_a_batch_above_the_limit_is_refused_although_it_would_shrink(
    client: WireClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(compression_type="gzip", max_message_bytes="5000")
    assert produce(client, topic, build_batch(RECORDS))[0] is ErrorCode.message_too_large


def test_the_brokers_time_stays(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic(compression_type="zstd", message_timestamp_type="LogAppendTime")
    assert produce(client, topic, build_batch(RECORDS, timestamps=[1] * 50))[0] is ErrorCode.none
    header = read_header(stored(client, topic))
    assert header.attributes & LOG_APPEND_TIME
    assert header.max_timestamp > 1
    assert header.codec == Codec.ZSTD


def test_a_changed_codec_takes_effect_at_once(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert produce(client, topic, build_batch(RECORDS))[0] is ErrorCode.none
    configs = [{"name": "compression.type", "config_operation": 0, "value": "lz4"}]
    resource = {"resource_type": 2, "resource_name": topic, "configs": configs}
    client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource], validate_only=False)
    assert produce(client, topic, build_batch(RECORDS))[0] is ErrorCode.none
    data = stored(client, topic)
    first = read_header(data)
    assert (first.codec, read_header(data, first.size_bytes).codec) == (Codec.NONE, Codec.LZ4)
