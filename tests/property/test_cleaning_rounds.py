"""Key compaction against a dictionary: random histories, several rounds, judged by other readers.

Histories have committed transactions, emptied batches, tombstones and records without key, maps
hold from one key to all, batches have every codec, pieces are cut anywhere, and time is a number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketlog.log_format.batch import LOG_APPEND_TIME, Codec, crc_holds
from bucketlog.log_format.batch_stream import BatchStream
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.records import DecodedRecord, Header, decode_records
from bucketlog.log_format.rewriting import delete_horizon
from bucketlog.tiered_storage.key_compaction import GROUP_BYTES, Cleaner, CleaningRound, DirtyPart
from bucketlog.tiered_storage.offset_map import ENTRY_BYTES, offset_map
from tests.models.compaction import Batch, Log

RETENTION_MS = 100
SECRET = bytes(range(16))
KEYS = [b"", b"a", b"b", b"c", b"a-longer-key", b"x" * 70]

keys = st.sampled_from([*KEYS, None])
values = st.none() | st.binary(max_size=12)
headers = st.lists(
    st.builds(Header, st.text(max_size=4), st.none() | st.binary(max_size=4)), max_size=2
).map(tuple)


def pieces(data: bytes, cut: int) -> Iterator[bytes]:
    return (data[at : at + cut] for at in range(0, len(data), cut))


@dataclass
class Partition:
    """The model and the bytes, side by side."""

    log: Log = field(default_factory=Log)
    data: bytes = b""
    now_ms: int = 1_000_000

    def append(self, batch: Batch) -> None:
        self.log.append(batch)
        self.data += batch.encoded()

    def append_records(self, data: st.DataObject) -> None:
        draw = data.draw
        producer = draw(st.sampled_from([-1, -1, 5, 6]))
        transactional = producer >= 0 and draw(st.booleans())
        offset = base = self.log.end + draw(st.sampled_from([0, 0, 0, 3]))
        records = []
        for _ in range(draw(st.integers(1, 5))):
            stamp = self.now_ms + draw(st.integers(-300, 300))
            records.append(DecodedRecord(offset, stamp, draw(keys), draw(values), draw(headers)))
            offset += 1
        self.append(
            Batch(
                base,
                offset - 1,
                tuple(records),
                codec=draw(st.sampled_from(list(Codec))),
                producer_id=producer,
                append_time_ms=draw(st.sampled_from([None, None, self.now_ms])),
                transactional=transactional,
            )
        )

    def append_emptied(self, producer: int) -> None:
        """The last batch of a split: of an aborted transaction, or in the place of a marker."""
        self.append(Batch(self.log.end, self.log.end, (), producer_id=producer))

    def clean(
        self, limit: int, map_bytes: int, cut: int, group_bytes: int, *, compiled: bool
    ) -> bytes:
        """What a round makes of the bytes; the model is not touched."""
        offsets = offset_map(map_bytes, SECRET, compiled=compiled)
        capacity = offsets.capacity
        dirty = DirtyPart(offsets, self.log.cleaned_to, limit, group_bytes=group_bytes)
        for piece in pieces(self.data, cut):
            if not dirty.feed(piece):
                break
        end = dirty.finish()
        assert end == self.log.round_end(limit, capacity)
        cleaning = CleaningRound(self.log.cleaned_to, end, self.now_ms, RETENTION_MS)
        cleaner = Cleaner(offsets, cleaning, group_bytes=group_bytes)
        cleaned: list[Buffer] = list(cleaner.run(pieces(self.data, cut)))
        stats = cleaner.stats
        assert stats.bytes_read == len(self.data)
        assert stats.records_read == sum(len(batch.records) for batch in self.log.batches)
        assert (stats.batches_kept, stats.bytes_kept) == (len(cleaned), sum(map(len, cleaned)))
        return b"".join(cleaned)


def as_model(data: bytes, known: dict[int, Batch]) -> list[Batch]:
    """What the bytes say; `known`, by base offset, only adds what bytes cannot say."""
    stream = BatchStream()
    batches = []
    for batch, header in stream.feed(data):
        assert crc_holds(batch, header)
        source = known[header.base_offset]
        append_time = source.append_time_ms
        assert bool(header.attributes & LOG_APPEND_TIME) == (append_time is not None)
        assert header.is_transactional == source.transactional
        assert not header.is_control
        assert header.producer_epoch == (0 if header.producer_id >= 0 else -1)
        assert header.base_sequence in (-1, 7)
        found = decode_records(batch, header)
        assert header.record_count == len(found)
        if append_time is not None:
            assert {record.timestamp for record in found} <= {append_time}
            stamps = {record.offset: record.timestamp for record in source.records}
            found = [record._replace(timestamp=stamps[record.offset]) for record in found]
        batches.append(
            Batch(
                header.base_offset,
                header.next_offset - 1,
                tuple(found),
                codec=Codec(header.codec),
                producer_id=header.producer_id,
                append_time_ms=append_time,
                transactional=header.is_transactional,
                horizon_ms=delete_horizon(header),
                max_timestamp=header.max_timestamp,
            )
        )
    stream.finish()
    return batches


def state(records: list[tuple[int, bytes | None, bytes | None]]) -> dict[bytes, bytes]:
    """What a table that is kept from the records holds in the end."""
    table: dict[bytes, bytes] = {}
    for _, key, value in records:
        if key is not None and value is not None:
            table[key] = value
        elif key is not None:
            table.pop(key, None)
    return table


@dataclass
class Reader:
    """A consumer that began at `began_ms` and has read `seen`, before `position`."""

    began_ms: int
    position: int
    seen: list[tuple[int, bytes | None, bytes | None]]

    def rest(self, log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
        return [record for record in log.records() if record[0] >= self.position]


def read_by_aiokafka(data: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    reader = MemoryRecords(data)
    found = []
    while reader.has_next():
        batch = reader.next_batch()
        assert batch is not None
        assert batch.validate_crc()
        if not batch.is_control_batch:
            found += [(record.offset, record.key, record.value) for record in batch]
    return found


@settings(max_examples=150)
@given(st.data())
def test_rounds_of_cleaning_leave_what_the_model_leaves(data: st.DataObject) -> None:
    partition = Partition()
    log = partition.log
    history = Log()  # the same, never cleaned
    readers: list[Reader] = []
    for _ in range(data.draw(st.integers(2, 14))):
        match data.draw(st.sampled_from(["records", "records", "records", "emptied", "clean"])):
            case "records":
                partition.append_records(data)
                history.append(log.batches[-1])
            case "emptied":
                producer = data.draw(st.sampled_from([5, 6]))
                partition.append_emptied(producer)
                history.append(log.batches[-1])
            case _:
                position = data.draw(st.integers(0, log.end))
                seen = [record for record in log.records() if record[0] < position]
                readers.append(Reader(partition.now_ms, position, seen))
                round_of(partition, data)
        partition.now_ms += data.draw(st.sampled_from([0, 10, 60, 150]))
        assert state(log.records()) == state(history.records())
        for reader in readers:
            if partition.now_ms < reader.began_ms + RETENTION_MS:
                assert state(reader.seen + reader.rest(log)) == state(history.records())


def round_of(partition: Partition, data: st.DataObject) -> None:
    log = partition.log
    limit = max(log.cleaned_to, data.draw(st.sampled_from([log.end, log.end, log.end - 2])))
    map_bytes = data.draw(st.sampled_from([2, 3, 4, 6, 9, 100])) * ENTRY_BYTES
    cut = data.draw(st.sampled_from([1 << 20, 97, 13]))
    group_bytes = data.draw(st.sampled_from([GROUP_BYTES, 1, 100]))
    plain = partition.clean(limit, map_bytes, cut, group_bytes, compiled=False)
    assert partition.clean(limit, map_bytes, cut, group_bytes, compiled=True) == plain
    known = {batch.base: batch for batch in log.batches}
    capacity = offset_map(map_bytes, SECRET).capacity
    log.clean(limit, capacity, partition.now_ms, RETENTION_MS)
    assert as_model(plain, known) == log.batches
    stood, stands = by_offset(partition.data), by_offset(plain)
    for batch in log.batches:
        if batch is known[batch.base]:
            assert stands[batch.base] == stood[batch.base]
    partition.data = plain
    assert read_by_aiokafka(plain) == [
        (record.offset, record.key, record.value)
        for batch in log.batches
        for record in batch.records
    ]


def by_offset(data: bytes) -> dict[int, bytes]:
    return {header.base_offset: bytes(batch) for batch, header in BatchStream().feed(data)}


def test_the_model_cleans() -> None:
    """A history by hand: the model drops, keeps and expires what a reader of KIP-534 expects."""
    partition = Partition(now_ms=1_000)
    for offset, (key, value) in enumerate([(b"a", b"1"), (b"a", b"2"), (b"b", b"1"), (b"b", None)]):
        partition.append(Batch(offset, offset, (DecodedRecord(offset, 1_000, key, value),)))
    partition.log.clean(4, 100, 1_000, RETENTION_MS)
    assert partition.log.records() == [(1, b"a", b"2"), (3, b"b", None)]
    assert [batch.horizon_ms for batch in partition.log.batches] == [None, 1_100]
    partition.append(Batch(4, 4, (DecodedRecord(4, 1_100, b"c", b"1"),)))
    partition.log.clean(5, 100, 1_099, RETENTION_MS)
    assert partition.log.records()[1] == (3, b"b", None)
    partition.append(Batch(5, 5, (DecodedRecord(5, 1_100, b"c", b"2"),)))
    partition.log.clean(6, 100, 1_100, RETENTION_MS)
    assert partition.log.records() == [(1, b"a", b"2"), (5, b"c", b"2")]
