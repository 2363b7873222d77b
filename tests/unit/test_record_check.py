"""A broker's checks of produced records, by table, with Kafka's names of the errors."""

from random import Random

import pytest

from bucketlog.log_format import record_check, record_kernel
from bucketlog.log_format.batch import (
    Codec,
    InvalidBatchError,
    InvalidTimestampError,
    KeylessRecordsError,
    read_header,
)
from bucketlog.log_format.compression import compress, decompressed_bytes_at_most
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.record_check import RecordRules, check_records, first_since
from bucketlog.log_format.records import decode_records
from tests.models.produced_batches import NOW_MS, batch, record, sound, varint

MAX, MIN = 2**63 - 1, -(2**63)


def check(data: bytes, rules: RecordRules | None = None) -> int:
    return check_records(bytearray(data), read_header(data), rules or RecordRules(), "t-0")


@pytest.fixture(params=["compiled", "plain"])
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled kernel and the Python kernel."""
    if request.param == "plain":
        monkeypatch.setattr(record_check, "_compiled", lambda: None)
    else:
        assert record_check.warm_up()


pytestmark = pytest.mark.usefixtures("_kernel")


@pytest.mark.parametrize("codec", list(Codec))
def test_sound_batches_are_accepted(codec: Codec) -> None:
    body, _ = sound(Random(1), codec, 50)
    data = batch(compress(codec, body), 50, attributes=codec)
    records = decode_records(data, read_header(data))
    assert check(data) == max(record.timestamp for record in records)


BAD = {
    "nothing": (b"", 1),
    "garbage": (b"\xff" * 30, 1),
    "one record less": (record(0), 2),
    "one record more": (record(0) + record(1), 1),
    "bytes behind the last": (record(0) + b"\0", 1),
    "a length beyond the batch": (varint(1000) + record(0)[1:], 1),
    "a negative length": (varint(-2) + record(0)[1:], 1),
    "no length": (varint(0) + record(0), 1),
    "a varint of six bytes": (b"\x80\x80\x80\x80\x80\x01" + record(0), 1),
    "a varint of 35 bits": (b"\xff\xff\xff\xff\x7f" + record(0), 1),
    "an offset delta of another record": (record(0) + record(0), 2),
    "offset deltas with a gap": (record(0) + record(2), 2),
    "offset deltas from 1 on": (record(1), 1),
    "bytes behind its headers": (record(0, tail=b"x"), 1),
    "a key beyond the record": (varint(9) + b"\0\0\0" + varint(50) + b"abcde", 1),
    "a key of length -2": (varint(8) + b"\0\0\0" + varint(-2) + b"\x01\0ab", 1),
    "a value beyond the record": (varint(7) + b"\0\0\0\x01" + varint(50) + b"ab", 1),
    "headers beyond the record": (varint(8) + b"\0\0\0\x01\x01" + varint(50) + b"ab", 1),
    "a negative number of headers": (varint(7) + b"\0\0\0\x01\x01" + varint(-1) + b"a", 1),
    "attributes that kafka-python misreads": (record(0, attributes=0x80), 1),
    "a header without a key": (record(0, headers=[(None, b"x")]), 1),
    "a header's value beyond the record": (
        varint(10) + b"\0\0\0\x01\x01" + varint(1) + varint(1) + b"k" + varint(60) + b"a",
        1,
    ),
    "a header's key that is not UTF-8": (record(0, headers=[(b"\xff", b"x")]), 1),
    "a header's key of a surrogate": (record(0, headers=[(b"\xed\xa0\x80", b"x")]), 1),
    "a header's key cut short": (record(0, headers=[("€".encode()[:2], b"x")]), 1),
    "an overlong header's key": (record(0, headers=[(b"\xc0\x80", b"x")]), 1),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_records_that_do_not_hold_are_invalid(name: str, codec: Codec) -> None:
    body, count = BAD[name]
    with pytest.raises(InvalidBatchError) as caught:
        check(batch(compress(codec, body) if body else b"", count, attributes=codec))
    assert caught.value.code == "INVALID_RECORD"


@pytest.mark.parametrize("name", ["é", "€", "😀", "\U0010ffff", "\ud7ff", "\ue000", "", "k" * 300])
def test_header_keys_of_any_text_are_accepted(name: str) -> None:
    check(batch(record(0, headers=[(name.encode(), None)] * 3), 1))


def test_what_kafka_accepts_of_records() -> None:
    check(batch(record(0, None, None, attributes=0x7F), 1))
    check(batch(record(0, b"", b"", headers=[(b"", b"")]), 1))
    assert check(batch(record(0, timestamp_delta=-5) + record(1), 2)) == NOW_MS
    assert check(batch(record(0), 1, base_timestamp=-2, max_timestamp=-2)) == -1


def test_a_timestamp_that_overflows_is_invalid() -> None:
    for base, delta in ((MAX, 1), (MIN, -1), (1, MAX), (-2, MIN)):
        with pytest.raises(InvalidBatchError, match="overflows"):
            check(batch(record(0, timestamp_delta=delta), 1, base_timestamp=base))
    assert check(batch(record(0, timestamp_delta=MAX), 1, base_timestamp=0)) == MAX


def test_timestamps_out_of_range_are_named() -> None:
    rules = RecordRules.of(
        keys_required=False, now_ms=NOW_MS, before_max_ms=1000, after_max_ms=10, max_bytes=10**6
    )
    deltas = (-1000, -1001, 10, 11, 0)
    body = b"".join(record(at, timestamp_delta=delta) for at, delta in enumerate(deltas))
    with pytest.raises(InvalidTimestampError) as caught:
        check(batch(body, len(deltas)), rules)
    assert [each.at for each in caught.value.refused] == [1, 3]
    assert caught.value.refused[0].reason == (
        f"Timestamp {NOW_MS - 1001} of message with offset 1 is out of range. The timestamp should "
        f"be within [{NOW_MS - 1000}, {NOW_MS + 10}]"
    )
    without = batch(record(0), 1, base_timestamp=-1, max_timestamp=-1)
    assert check(without, rules) == -1


def test_rules_do_not_overflow() -> None:
    rules = RecordRules.of(
        keys_required=False, now_ms=NOW_MS, before_max_ms=MAX, after_max_ms=MAX, max_bytes=1
    )
    assert (rules.earliest_ms, rules.latest_ms) == (NOW_MS - MAX, MAX)


def test_keys_are_required_where_the_topic_is_compacted() -> None:
    body = record(0) + record(1, None) + record(2, b"") + record(3, None)
    with pytest.raises(KeylessRecordsError) as caught:
        check(batch(body, 4), RecordRules(keys_required=True))
    assert [each.at for each in caught.value.refused] == [1, 3]
    assert "without key in topic partition t-0" in caught.value.refused[0].reason
    assert check(batch(body, 4)) == NOW_MS
    late = record(0, None) + record(1, timestamp_delta=5)
    with pytest.raises(InvalidTimestampError) as both:
        check(batch(late, 2), RecordRules(keys_required=True, latest_ms=NOW_MS))
    assert [each.at for each in both.value.refused] == [0, 1]


def test_no_more_records_are_named_than_an_answer_holds() -> None:
    body = b"".join(record(at, None) for at in range(500))
    with pytest.raises(KeylessRecordsError) as caught:
        check(batch(body, 500), RecordRules(keys_required=True))
    assert [each.at for each in caught.value.refused] == [*range(record_kernel.REFUSED_RECORDS_MAX)]


@pytest.mark.parametrize("codec", [*Codec][1:])
def test_decompressed_bytes_are_bounded(codec: Codec) -> None:
    body = record(0, value=bytes(10**6))
    data = batch(compress(codec, body), 1, attributes=codec)
    payload = data[61:]
    assert check(data, RecordRules(max_bytes=len(body))) == NOW_MS
    with pytest.raises(InvalidBatchError, match="more than 999999 bytes"):
        check(data, RecordRules(max_bytes=999_999))
    bound = decompressed_bytes_at_most(codec, payload)
    assert bound >= len(body)
    assert decompressed_bytes_at_most(codec, payload, max_bytes=1000) == 1000


@pytest.mark.parametrize("seed", range(20))
def test_the_first_record_since_a_time_is_the_one_that_decoding_finds(seed: int) -> None:
    random = Random(seed)
    codec = random.choice(list(Codec))
    body, _ = sound(random, codec, 40)
    data = batch(compress(codec, body), 40, attributes=codec)
    header = read_header(data)
    records = decode_records(data, header)
    times = sorted({record.timestamp for record in records if record.timestamp >= 0})
    for since in (0, *times, times[-1] + 1):
        wanted = [(one.timestamp, one.offset) for one in records if one.timestamp >= since]
        found = first_since(data, header, since, max_bytes=1 << 20)
        assert found == (wanted[0] if wanted else None)


def test_a_batch_that_is_searched_must_be_sound_and_small_enough() -> None:
    gap = batch(record(0) + record(2), 2)
    with pytest.raises(InvalidBatchError, match="offset delta"):
        first_since(gap, read_header(gap), 0, max_bytes=1 << 20)
    large = batch(compress(Codec.GZIP, record(0, value=bytes(1000))), 1, attributes=Codec.GZIP)
    with pytest.raises(InvalidDataError):
        first_since(large, read_header(large), 0, max_bytes=500)
