"""`verify_log` on written logs: sound ones pass, every kind of damage is found and named."""

import dataclasses
from collections.abc import Iterator
from uuid import UUID

import pytest

from bucketlog.inspect.verify import verify_log
from bucketlog.inspect.verify_report import VerifyReport
from bucketlog.log_format.batch import Codec
from bucketlog.log_format.checkpoint import BatchColumns, CoveredPartition
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import SegmentId, Ticket, WriterId
from bucketlog.log_format.records import DecodedRecord
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, encode_checkpoint
from bucketlog.tiered_storage.floors import Floor, encode_floor
from bucketlog.tiered_storage.identity import FORMAT_VERSION, ClusterIdentity
from bucketlog.tiered_storage.segment import Seal, encode_seal
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import WrittenLog

IDENTITY = ClusterIdentity(cluster_id=UUID(int=1), format_version=FORMAT_VERSION, created_ms=1)


def record(text: str) -> DecodedRecord:
    return DecodedRecord(0, 1_700_000_000_000, None, text.encode(), ())


@pytest.fixture
def bucket() -> MemoryBucket:
    memory = MemoryBucket()
    assert memory.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    return memory


@pytest.fixture
def log(bucket: MemoryBucket) -> WrittenLog:
    """Two partitions, three segments by one writer."""
    written = WrittenLog(bucket)
    written.create_topic("t", 2)
    written.append("t", 0, [record("a"), record("b")])
    written.flush()
    written.append("t", 0, [record("c")], codec=Codec.ZSTD)
    written.append("t", 1, [record("d")])
    written.flush()
    written.append("t", 1, [record("e")])
    written.flush()
    return written


def key_of(log: WrittenLog, seq: int) -> str:
    return keys.segment(SegmentId(log.first_writer, seq))


def replace(bucket: MemoryBucket, key: str, data: bytes) -> None:
    bucket.delete([key])
    assert bucket.create(key, [data])


def found(report: VerifyReport) -> list[tuple[str, str]]:
    return [(damage.key, damage.reason) for damage in report.damage]


def test_a_sound_log(bucket: MemoryBucket, log: WrittenLog) -> None:
    report = verify_log(bucket)
    assert not report.damage
    assert (report.segments, report.seals, report.batches, report.records) == (3, 0, 4, 5)
    assert (report.topics, report.partitions) == (1, 2)
    assert report.size_bytes == sum(info.size_bytes for info in bucket.list(keys.LOG))


@pytest.mark.parametrize("seq", [0, 1])
def test_a_flipped_byte_anywhere_is_named(bucket: MemoryBucket, log: WrittenLog, seq: int) -> None:
    """Every position of the object, two ways each."""
    key = key_of(log, seq)
    sound = bytes(bucket.get(key).data)
    for position in range(len(sound)):
        for mask in (0x01, 0xFF):
            damaged = bytearray(sound)
            damaged[position] ^= mask
            replace(bucket, key, bytes(damaged))
            report = verify_log(bucket, requests_in_flight=1)
            assert [damage.key for damage in report.damage] == [key], position
            assert 0 <= report.damage[0].position < len(sound)
    replace(bucket, key, sound)
    assert not verify_log(bucket).damage


def test_a_flipped_byte_in_a_seal(bucket: MemoryBucket, log: WrittenLog) -> None:
    segment = SegmentId(log.first_writer, 3)
    sound = encode_seal(Seal(segment, 2, 5))
    assert bucket.create(keys.segment(segment), [sound])
    assert verify_log(bucket).seals == 1
    for position in range(len(sound)):
        damaged = bytearray(sound)
        damaged[position] ^= 0x10
        replace(bucket, keys.segment(segment), bytes(damaged))
        assert [damage.key for damage in verify_log(bucket).damage] == [keys.segment(segment)]


def test_the_position_is_the_batchs(bucket: MemoryBucket, log: WrittenLog) -> None:
    key = key_of(log, 1)
    data = bytearray(bucket.get(key).data)
    data[-300] ^= 1
    replace(bucket, key, bytes(data))
    (damage,) = verify_log(bucket).damage
    assert 16 <= damage.position <= len(data) - 300


def test_every_damaged_object_is_listed(bucket: MemoryBucket, log: WrittenLog) -> None:
    for seq in (0, 1, 2):
        data = bytearray(bucket.get(key_of(log, seq)).data)
        data[3] ^= 1
        replace(bucket, key_of(log, seq), bytes(data))
    assert [damage.key for damage in verify_log(bucket).damage] == [
        key_of(log, seq) for seq in (0, 1, 2)
    ]


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 100])
def test_a_truncated_object(bucket: MemoryBucket, log: WrittenLog, length: int) -> None:
    key = key_of(log, 2)
    replace(bucket, key, bytes(bucket.get(key).data[:length]))
    assert [damage.key for damage in verify_log(bucket).damage] == [key]


def test_an_object_under_anothers_key(bucket: MemoryBucket, log: WrittenLog) -> None:
    replace(bucket, key_of(log, 2), bytes(bucket.get(key_of(log, 1)).data))
    ((key, reason),) = found(verify_log(bucket))
    assert key == key_of(log, 2)
    assert key_of(log, 1) in reason


def test_a_lost_segment_before_visible_ones(bucket: MemoryBucket, log: WrittenLog) -> None:
    """Another writer's low ticket says that all three were visible."""
    other = log.register()
    log.append("t", 0, [record("f")])
    log.land(log.reserve(other))
    bucket.delete([key_of(log, 0)])
    assert (key_of(log, 0), "a segment is missing here") in found(verify_log(bucket))


def test_a_lost_segment_before_a_seal(bucket: MemoryBucket, log: WrittenLog) -> None:
    segment = SegmentId(log.first_writer, 3)
    assert bucket.create(keys.segment(segment), [encode_seal(Seal(segment, 2, 5))])
    bucket.delete([key_of(log, 1)])
    assert found(verify_log(bucket)) == [(key_of(log, 1), "a segment is missing here")]


@pytest.mark.parametrize("seq", [2**40, 10**20 - 1])
def test_a_seal_far_beyond_the_chain_is_one_line(
    bucket: MemoryBucket, log: WrittenLog, seq: int
) -> None:
    """A name may have any number, so a range of missing segments is one line."""
    key = keys.segment(SegmentId(log.first_writer, seq))
    assert bucket.create(key, [encode_seal(Seal(SegmentId(log.first_writer, 4), 2, 5))])
    bucket.delete([key_of(log, 1)])
    lost = [damage for damage in found(verify_log(bucket)) if "missing" in damage[1]]
    assert lost == [
        (key_of(log, 1), "a segment is missing here"),
        (key_of(log, 3), f"{seq - 3} segments are missing from here"),
    ]


def test_a_put_in_flight_is_no_damage(bucket: MemoryBucket, log: WrittenLog) -> None:
    log.append("t", 0, [record("slow")])
    log.reserve()
    log.append("t", 0, [record("fast")])
    log.land(log.reserve())
    report = verify_log(bucket)
    assert not report.damage
    assert report.unfinished == 1


def test_offsets_given_twice(bucket: MemoryBucket, log: WrittenLog) -> None:
    log.next_offset[log.partition("t", 0)] = 2
    log.append("t", 0, [record("again")])
    log.flush()
    report = verify_log(bucket)
    assert len(report.damage) == 1
    assert report.damage[0].key == key_of(log, 3)
    assert report.damage[0].position == 16
    assert "offset 2" in report.damage[0].reason
    assert key_of(log, 1) in report.damage[0].reason


def test_a_ticket_given_twice(bucket: MemoryBucket, log: WrittenLog) -> None:
    log.ticket -= 1
    log.append("t", 0, [record("x")])
    log.flush()
    assert any("same ticket" in reason for _, reason in found(verify_log(bucket)))


def test_facts_that_do_not_fold(bucket: MemoryBucket, log: WrittenLog) -> None:
    log.create_topic("t", 1)
    log.flush()
    ((key, reason),) = found(verify_log(bucket))
    assert key == key_of(log, 3)
    assert "exists" in reason


def test_a_writer_that_never_registered(bucket: MemoryBucket, log: WrittenLog) -> None:
    bucket.delete([info.key for info in bucket.list(keys.WRITERS)])
    assert found(verify_log(bucket)) == [
        (keys.chain(log.first_writer), "the chain of a writer that never registered")
    ]


@pytest.mark.parametrize("key", ["log/x", "log/a/b", "log/a/b/c", "writers/1/a"])
def test_a_strange_object(bucket: MemoryBucket, log: WrittenLog, key: str) -> None:
    assert bucket.create(key, [b"x"])
    assert [damage.key for damage in verify_log(bucket).damage] == [key]


def test_a_place_without_a_log_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="no log"):
        verify_log(MemoryBucket())


def test_a_damaged_or_missing_identity(bucket: MemoryBucket, log: WrittenLog) -> None:
    replace(bucket, keys.CLUSTER, b"{")
    assert [damage.key for damage in verify_log(bucket).damage] == [keys.CLUSTER]
    bucket.delete([keys.CLUSTER])
    assert found(verify_log(bucket)) == [(keys.CLUSTER, "it is missing")]


def test_progress_counts_every_object(bucket: MemoryBucket, log: WrittenLog) -> None:
    seen: list[int] = []

    def listed(count: int) -> "Advance":
        seen.append(count)
        return Advance(seen)

    verify_log(bucket, on_listed=listed)
    assert seen == [3, 1, 1, 1]


class Advance:
    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    def __call__(self) -> None:
        self.seen.append(1)


def with_checkpoints(log: WrittenLog) -> list[str]:
    """Two, the second made on the first, and a segment after them."""
    made = [write_checkpoint(log.bucket)]
    log.append("t", 0, [record("f")])
    log.flush()
    made.append(write_checkpoint(log.bucket))
    return [keys.checkpoint(each.ticket) for each in made]


def test_sound_checkpoints(bucket: MemoryBucket, log: WrittenLog) -> None:
    with_checkpoints(log)
    report = verify_log(bucket)
    assert not report.damage
    assert (report.segments, report.checkpoints) == (4, 2)


def test_a_flipped_byte_in_a_checkpoint(bucket: MemoryBucket, log: WrittenLog) -> None:
    for key in with_checkpoints(log):
        sound = bytes(bucket.get(key).data)
        for position in range(0, len(sound), 7):
            damaged = bytearray(sound)
            damaged[position] ^= 1
            replace(bucket, key, bytes(damaged))
            assert [damage.key for damage in verify_log(bucket).damage] == [key]
        replace(bucket, key, sound)


def test_checkpoints_that_the_log_contradicts(bucket: MemoryBucket, log: WrittenLog) -> None:
    _, key = with_checkpoints(log)
    sound = decode_checkpoint(key, bucket.get(key).data)
    other = WrittenLog(MemoryBucket())
    other.create_topic("t", 2)
    other.append("t", 0, [record("other")])
    other.flush()
    other.flush()
    foreign = write_checkpoint(other.bucket)
    (writer,) = sound.writers
    partition, part = next(iter(sound.partitions.items()))
    shorter = CoveredPartition(part.high_watermark, BatchColumns())
    higher = CoveredPartition(part.high_watermark + 1, part.batches)
    for wrong in (
        dataclasses.replace(sound, segments=sound.segments + 1),
        dataclasses.replace(sound, state=foreign.state),
        dataclasses.replace(sound, state=b""),
        dataclasses.replace(sound, writers=(writer._replace(end=writer.end + 1),)),
        dataclasses.replace(sound, writers=(writer._replace(closed=True),)),
        dataclasses.replace(sound, partitions={**sound.partitions, partition: shorter}),
        dataclasses.replace(sound, partitions={**sound.partitions, partition: higher}),
    ):
        replace(bucket, key, encode_checkpoint(wrong))
        assert [damage.key for damage in verify_log(bucket).damage] == [key], wrong


def test_one_that_is_replaced_meanwhile_is_left_out(log: WrittenLog) -> None:
    class Forgetful(MemoryBucket):
        def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
            yield from super().list(prefix, start_after=start_after)
            if prefix == keys.CHECKPOINTS:
                yield ObjectInfo(keys.checkpoint(Ticket(1, 99)), 100, 0)

    bucket = Forgetful()
    for info in [*log.bucket.list("")]:
        assert bucket.create(info.key, [bytes(log.bucket.get(info.key).data)])
    assert not verify_log(bucket).damage


def test_below_a_floor_what_is_readable_must_be_there(
    bucket: MemoryBucket, log: WrittenLog
) -> None:
    log.create_topic("u")
    log.flush()
    log.flush()
    older = write_checkpoint(bucket)
    log.append("t", 0, [record("f")])
    log.flush()
    log.flush()
    newer = write_checkpoint(bucket)
    floor = Floor.of(older, newer)
    assert bucket.create(keys.floor(floor.ticket), [encode_floor(floor)])
    bucket.delete([key_of(log, 3)])
    report = verify_log(bucket)
    assert report.damage == []
    assert (report.segments, report.batches, report.records, report.topics) == (6, 5, 6, 2)
    bucket.delete([key_of(log, 1)])
    assert found(verify_log(bucket)) == [(key_of(log, 1), "a segment is missing here")]


def test_a_checkpoint_is_held_against_the_one_before_it(
    bucket: MemoryBucket, log: WrittenLog
) -> None:
    log.flush()
    older = write_checkpoint(bucket)
    log.append("t", 0, [record("f")])
    log.flush()
    log.flush()
    newer = write_checkpoint(bucket)
    assert bucket.create(keys.floor(older.ticket), [b"{}"])
    wrong = dataclasses.replace(newer, segments=newer.segments + 1)
    replace(bucket, keys.checkpoint(newer.ticket), encode_checkpoint(wrong))
    ((key, reason),) = found(verify_log(bucket))
    assert key == keys.checkpoint(newer.ticket)
    assert "segments" in reason
    bucket.delete([keys.checkpoint(older.ticket), keys.checkpoint(newer.ticket)])
    assert (keys.floor(older.ticket), 0) in [(d.key, d.position) for d in verify_log(bucket).damage]


def test_below_a_floor_late_objects_of_deleted_chains_may_lie_about(
    bucket: MemoryBucket, log: WrittenLog
) -> None:
    log.void(log.reserve())
    older = write_checkpoint(bucket, active_epoch=2)
    assert bucket.create(keys.floor(older.ticket), [b"{}"])
    late = SegmentId(WriterId("f" * 32), 3)
    assert bucket.create(keys.segment(late), [encode_seal(Seal(late, 2, 1))])
    assert verify_log(bucket).damage == []
