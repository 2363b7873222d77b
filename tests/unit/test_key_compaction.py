"""Key compaction's corners: transactions, horizons, damage, full maps, and batches that no encoder
writes."""

import struct

import pytest
from crc32c import crc32c

from bucketlog.log_format.batch import (
    CRC_START,
    DELETE_HORIZON,
    HEADER_LENGTH,
    Codec,
    CorruptBatchError,
    crc_holds,
    read_header,
)
from bucketlog.log_format.batch_stream import BatchStream
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_format.model import Buffer, Ticket, TopicId, TopicIdPartition
from bucketlog.log_format.records import DecodedRecord, Header, decode_records, encode_batch
from bucketlog.log_format.rewriting import delete_horizon, left_out_batch
from bucketlog.tiered_storage.key_compaction import Cleaner, CleaningRound, CleaningStats, DirtyPart
from bucketlog.tiered_storage.keys import tier_name
from bucketlog.tiered_storage.offset_map import ENTRY_BYTES, OffsetMap, offset_map
from bucketlog.tiered_storage.partition_segment import (
    PartitionSegmentWriter,
    check_partition_segment,
)

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
SECRET = bytes(16)


class Cleaned:
    """One round over `data`, all of it cleanable."""

    def __init__(
        self,
        data: bytes,
        *,
        start: int = 0,
        compiled: bool = True,
        map_bytes: int = 10_000,
        now_ms: int = NOW_MS,
        retention_ms: int = DAY_MS,
        log_start: int = 0,
    ) -> None:
        limit = max(header.next_offset for _, header in BatchStream().feed(data))
        self.offsets: OffsetMap = offset_map(map_bytes, SECRET, compiled=compiled)
        dirty = DirtyPart(self.offsets, start, limit)
        dirty.feed(data)
        self.end = dirty.finish()
        cleaning = CleaningRound(start, self.end, now_ms, retention_ms, log_start)
        cleaner = Cleaner(self.offsets, cleaning)
        self.data = b"".join(cleaner.run([data]))
        self.stats: CleaningStats = cleaner.stats
        self.batches = [bytes(batch) for batch, _ in BatchStream().feed(self.data)]
        self.headers = [read_header(batch) for batch in self.batches]

    @property
    def records(self) -> list[DecodedRecord]:
        return [
            record
            for batch, header in zip(self.batches, self.headers, strict=True)
            for record in decode_records(batch, header)
        ]


both = pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])


def with_header(batch: Buffer, fmt: str, position: int, value: int) -> bytes:
    """`batch` with another field, its CRC right."""
    changed = bytearray(batch)
    struct.pack_into(fmt, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[CRC_START:]))
    return bytes(changed)


def of(offset: int, key: bytes | None, value: bytes | None, stamp: int = NOW_MS) -> DecodedRecord:
    return DecodedRecord(offset, stamp, key, value)


def transactional(records: list[DecodedRecord], producer_id: int = 9) -> bytes:
    return encode_batch(
        records, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )


@both
@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_in_which_all_stay_is_copied_byte_for_byte(codec: Codec, compiled: bool) -> None:
    data = encode_batch([of(3, b"a", b"1"), of(5, b"b", b"1")], base_offset=2, codec=codec)
    cleaned = Cleaned(data, compiled=compiled)
    assert cleaned.data == data
    assert cleaned.stats == CleaningStats(1, len(data), 2, 1, len(data), 2)


@both
@pytest.mark.parametrize("codec", list(Codec))
def test_a_rewritten_batch_spans_what_it_did(codec: Codec, compiled: bool) -> None:
    headers = (Header("h", b"1"), Header("i", None))
    records = [
        of(10, b"a", b"old", NOW_MS + 50),
        DecodedRecord(12, NOW_MS + 9, b"b", b"v" * 300, headers),
        of(14, b"a", b"new", NOW_MS - 7),
        of(15, None, b"keyless"),
        of(17, b"c", b"old"),
    ]
    first = encode_batch(
        records, base_offset=9, codec=codec, producer_id=4, producer_epoch=2, base_sequence=70
    )
    cleaned = Cleaned(first + encode_batch([of(20, b"c", b"new")]), compiled=compiled)
    assert cleaned.records == [records[1], records[2], of(20, b"c", b"new")]
    before, after = read_header(first), cleaned.headers[0]
    assert after == before._replace(
        batch_length=after.batch_length, crc=after.crc, record_count=2, max_timestamp=NOW_MS + 9
    )
    assert crc_holds(cleaned.batches[0], after)
    assert cleaned.stats.keyless_records == 1


@both
def test_log_append_time_stays_the_batchs(compiled: bool) -> None:
    data = encode_batch([of(0, b"a", b"1"), of(1, b"a", None)], append_time_ms=NOW_MS + 77)
    cleaned = Cleaned(data, compiled=compiled)
    assert cleaned.records == [of(1, b"a", None, NOW_MS + 77)]
    assert cleaned.headers[0].max_timestamp == NOW_MS + 77
    assert delete_horizon(cleaned.headers[0]) == NOW_MS + DAY_MS


@both
def test_a_tombstone_goes_when_its_horizon_is_past(compiled: bool) -> None:
    data = encode_batch([of(0, b"a", b"1"), of(1, b"b", b"1"), of(2, b"a", None)])
    first = Cleaned(data, compiled=compiled)
    assert first.records == [of(1, b"b", b"1"), of(2, b"a", None)]
    assert delete_horizon(first.headers[0]) == NOW_MS + DAY_MS
    more = first.data + encode_batch([of(3, b"c", b"1")])
    just_before = Cleaned(more, start=3, now_ms=NOW_MS + DAY_MS - 1, compiled=compiled)
    assert just_before.data == more
    past = Cleaned(more, start=3, now_ms=NOW_MS + DAY_MS, compiled=compiled)
    assert past.records == [of(1, b"b", b"1"), of(3, b"c", b"1")]


@both
def test_a_producers_horizon_does_not_count(compiled: bool) -> None:
    """Attribute bit 6 is nobody's to set but the cleaner's; what a producer sets is replaced."""
    batch = encode_batch([of(0, b"a", None, 5), of(1, b"b", b"1", 9)])
    batch = with_header(batch, ">h", 21, DELETE_HORIZON)
    cleaned = Cleaned(batch, compiled=compiled)
    assert cleaned.records == [of(0, b"a", None, 5), of(1, b"b", b"1", 9)]
    assert delete_horizon(cleaned.headers[0]) == NOW_MS + DAY_MS


@both
def test_a_horizon_that_no_delta_can_reach_is_not_set(compiled: bool) -> None:
    records = [of(0, b"a", b"1"), of(1, b"b", None, -(2**63) + 3), of(2, b"a", b"2")]
    data = encode_batch([of(0, b"a", b"1", 0), *(r._replace(timestamp=0) for r in records[1:])])
    data = with_header(data, ">q", 27, -(2**63) + 3)
    cleaned = Cleaned(data, compiled=compiled)
    assert [record.offset for record in cleaned.records] == [1, 2]
    assert delete_horizon(cleaned.headers[0]) is None


@both
def test_retention_for_ever_is_a_horizon_at_the_end_of_time(compiled: bool) -> None:
    data = encode_batch([of(0, b"a", None, 0)])
    cleaned = Cleaned(data, compiled=compiled, retention_ms=2**63 - 1)
    assert delete_horizon(cleaned.headers[0]) == 2**63 - 1
    assert cleaned.records == [of(0, b"a", None, 0)]


@both
def test_bytes_that_no_decoder_shows_stay(compiled: bool) -> None:
    """A record's own attributes, a header key that is not UTF-8, a length in more bytes than it
    needs: rewriting copies what it does not have to change."""
    odd = bytes((0x9C, 0x00, 7, 2, 2, 2, 0x62, 0x80, 0x00, 2, 4, 0x41, 0xFF, 1)) + b""
    odd = bytes((2 * (len(odd) - 2) | 0x80, 0x00)) + odd[2:]
    plain = bytes((16, 0, 0, 0, 2, 0x61, 2, 0x31, 0))
    newer = bytes((16, 0, 4, 4, 2, 0x61, 2, 0x32, 0))
    batch = bytearray(encode_batch([of(0, b"", b"")])[:HEADER_LENGTH]) + plain + odd + newer
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 23, 2)
    data = with_header(batch, ">i", 57, 3)
    assert len(decode_records(data, read_header(data))) == 3
    cleaned = Cleaned(data, compiled=compiled)
    assert cleaned.data[HEADER_LENGTH:] == odd + newer


@both
def test_batches_of_transactions_are_committed_ones(compiled: bool) -> None:
    """Tiers hold no others. The last batch of a split may be one that was emptied."""
    first = transactional([of(0, b"a", b"1"), of(1, b"b", b"1")])
    emptied = left_out_batch(read_header(transactional([of(2, b"c", b"1")])))
    cleaned = Cleaned(first + emptied + encode_batch([of(3, b"a", b"2")]), compiled=compiled)
    assert cleaned.end == 4
    assert cleaned.records == [of(1, b"b", b"1"), of(3, b"a", b"2")]
    assert [header.is_transactional for header in cleaned.headers] == [True, False]
    last = Cleaned(first + emptied, compiled=compiled)
    assert last.data == first + emptied, "a consumer's position must get there"


@both
def test_the_last_batch_of_a_round_stays_without_records(compiled: bool) -> None:
    """A consumer's position moves by batches: at the log's end it must get there."""
    records = [of(1, None, b"keyless", NOW_MS + 4)]
    last = encode_batch(records, codec=Codec.ZSTD, producer_id=3, producer_epoch=1, base_sequence=8)
    cleaned = Cleaned(encode_batch([of(0, None, b"")]) + last, compiled=compiled)
    (header,) = cleaned.headers
    assert len(cleaned.data) == HEADER_LENGTH
    assert crc_holds(cleaned.data, header)
    assert (header.base_offset, header.next_offset, header.record_count) == (1, 2, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 1, 8)
    assert (header.attributes, header.max_timestamp) == (0, NOW_MS + 4)
    later = Cleaned(cleaned.data + encode_batch([of(2, b"a", b"1")]), start=2, compiled=compiled)
    assert [header.base_offset for header in later.headers] == [2]


@both
def test_batches_below_the_logs_start_go(compiled: bool) -> None:
    data = encode_batch([of(0, b"a", b"1")]) + encode_batch([of(1, b"b", b"1"), of(2, b"c", b"1")])
    assert Cleaned(data, log_start=2, compiled=compiled).records == [
        of(1, b"b", b"1"),
        of(2, b"c", b"1"),
    ]


@both
def test_a_full_map_ends_the_round_between_batches(compiled: bool) -> None:
    data = b"".join(
        encode_batch([of(3 * n + i, b"%d" % (3 * n + i), b"v") for i in range(3)]) for n in range(4)
    )
    offsets = offset_map(9 * ENTRY_BYTES, SECRET, compiled=compiled)
    assert offsets.capacity == 7
    cleaned = Cleaned(data, map_bytes=9 * ENTRY_BYTES, compiled=compiled)
    assert cleaned.end == 6
    assert cleaned.offsets.entries == 6  # the batch that did not fit left no trace
    assert cleaned.data == data


@both
def test_a_map_smaller_than_a_batch_ends_the_round_inside(compiled: bool) -> None:
    first = encode_batch(
        [of(0, b"a", b"old"), of(1, b"a", b"1"), of(2, b"b", None), of(3, b"c", b"1")]
    )
    data = first + encode_batch([of(4, b"b", b"2")])
    start, ends = 0, []
    while start < 5:
        cleaned = Cleaned(data, start=start, map_bytes=2 * ENTRY_BYTES, compiled=compiled)
        assert cleaned.offsets.entries == cleaned.offsets.capacity == 1
        if cleaned.end < 4:  # of a batch that is not cleaned whole, no tombstone gets a horizon
            assert delete_horizon(cleaned.headers[0]) is None
        data, start = cleaned.data, cleaned.end
        ends.append(start)
    assert ends == [2, 3, 4, 5]
    assert [record.offset for record in cleaned.records] == [1, 3, 4]


def test_a_map_for_no_key_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="48"):
        offset_map(47, SECRET)


@both
def test_a_map_need_not_be_larger_than_its_keys(compiled: bool) -> None:
    for keys_max in (0, 1, 2, 9, 1000):
        offsets = offset_map(1 << 20, SECRET, keys_max=keys_max, compiled=compiled)
        assert keys_max <= offsets.capacity < offsets.slots <= 1.25 * keys_max + 2


@both
@pytest.mark.parametrize("at", [30, 62, 70])
def test_a_damaged_batch_is_named_and_nothing_comes_after_it(at: int, compiled: bool) -> None:
    good = encode_batch([of(0, b"a", b"1")])
    bad = bytearray(encode_batch([of(1234, b"a", b"2")], codec=Codec.GZIP))
    bad[at] ^= 1
    data = good + bytes(bad) + encode_batch([of(2000, b"a", b"3")])
    with pytest.raises(CorruptBatchError, match="1234"):
        Cleaned(data, compiled=compiled)
    cleaner = Cleaner(
        offset_map(1000, SECRET, compiled=compiled),
        CleaningRound(0, 3000, NOW_MS, DAY_MS),
    )
    with pytest.raises(CorruptBatchError, match="1234"):
        list(cleaner.run([data]))


@both
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.NONE])
def test_records_that_do_not_hold_are_named(codec: Codec, compiled: bool) -> None:
    batch = encode_batch([of(55, b"a", b"1"), of(56, b"b", b"1")], codec=codec)
    with pytest.raises(InvalidDataError, match="55"):
        Cleaned(with_header(batch, ">i", 57, 1), compiled=compiled)
    with pytest.raises(InvalidDataError, match="55"):
        Cleaned(with_header(batch, ">h", 21, 6), compiled=compiled)


@both
def test_what_comes_out_makes_a_partition_segment(compiled: bool) -> None:
    """Gaps, at the edges, too, and a last batch without records."""
    data = (
        encode_batch([of(5, b"a", b"1")])
        + encode_batch([of(6, b"a", b"2"), of(7, b"b", b"1")], codec=Codec.LZ4)
        + encode_batch([of(8, None, b"keyless")])
    )
    cleaned = Cleaned(data, compiled=compiled)
    writer = PartitionSegmentWriter(TopicIdPartition(TopicId(bytes(16)), 0), 0)
    for batch, header in zip(cleaned.batches, cleaned.headers, strict=True):
        writer.describe(
            header.base_offset,
            header.next_offset,
            len(batch),
            header.record_count,
            header.max_timestamp,
        )
        writer.append(batch)
    name = tier_name(Ticket(1, 0), "0" * 16)
    finished = writer.finish(cleaned.end, name, NOW_MS)
    index = check_partition_segment(finished.there, b"".join(finished.parts))
    assert (index.start, index.end, index.batches, index.records) == (0, 9, 2, 2)
