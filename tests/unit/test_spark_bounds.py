"""What a task holds in memory and how far a plan goes, whatever stands in the log."""

import pytest

from bucketlog.log_format.batch import Codec, stamp_base_offset
from bucketlog.log_format.records import DecodedRecord
from bucketlog.log_reader import fetch
from bucketlog.log_reader.damage import UnreadableBatchError
from bucketlog.log_reader.fetch import read_pieces
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.models.produced_batches import batch as produced
from tests.models.produced_batches import record
from tests.rigs.written_log import START_MS, WrittenLog, some_records
from tests.rigs.written_tier import WrittenTier, batches_in

BASE = {"path": "file:///logs", "subscribe": "a"}
MIB = 1 << 20


@pytest.fixture
def log() -> WrittenLog:
    log = WrittenLog(MemoryBucket())
    log.create_topic("a")
    return log


def offsets(log: WrittenLog, **options: str) -> list[int]:
    found: list[int] = []
    given = parse_options({**BASE, **options})
    for task in planned_tasks(log.bucket, given):
        for batch in read_pieces(
            log.bucket,
            task,
            ["offset"],
            max_decompressed_bytes=64 * MIB,
            fail_on_unreadable=given.fail_on_unreadable,
        ):
            found += batch.column(0).to_pylist()
    return found


@pytest.mark.parametrize("codec", [Codec.ZSTD, Codec.NONE])
@pytest.mark.parametrize("compiled", [True, False])
def test_an_arrow_batch_ends_where_enough_is_decompressed(
    log: WrittenLog, monkeypatch: pytest.MonkeyPatch, codec: Codec, compiled: bool
) -> None:
    if not compiled:
        monkeypatch.setattr("bucketlog.log_format.scan.COMPILED", False)
    monkeypatch.setattr(fetch, "DECODED_BYTES", 3 * MIB)
    monkeypatch.setattr(fetch, "DECODE_BYTES", 64 * MIB)
    for number in range(10):
        log.append("a", 0, [DecodedRecord(0, START_MS, b"k", bytes(MIB))] * 2, codec=codec)
        if number == 4:
            log.marker("a", 0)
    log.flush()
    (task,) = planned_tasks(log.bucket, parse_options(BASE))
    batches = list(
        read_pieces(log.bucket, task, ["offset", "value"], max_decompressed_bytes=8 * MIB)
    )
    assert max(batch.num_rows for batch in batches) == 4, "the batch that goes past 3 MiB is whole"
    assert [offset for batch in batches for offset in batch.column(0).to_pylist()] == [
        offset for offset in range(21) if offset != 10
    ]


@pytest.mark.parametrize("tasks", [1, 2, 7, 40, 64, 500])
def test_blocks_that_are_larger_than_a_share(log: WrittenLog, tasks: int) -> None:
    batches = []
    for _ in range(20):
        log.append("a", 0, [DecodedRecord(0, START_MS, None, bytes(200_000))])
        batches += [batch for _, batch in batches_in(log.flush())]
    WrittenTier(log).split(log.partition("a", 0), batches, 0)
    log.flush()
    assert offsets(log, minPartitions=str(tasks)) == list(range(20))
    assert offsets(log, maxPartitionBytes="100000") == list(range(20))


def test_a_gap_makes_no_tasks(log: WrittenLog) -> None:
    log.append("a", 0, some_records(5))
    log.flush()
    log.next_offset[log.partition("a", 0)] = 10**12
    log.append("a", 0, some_records(5))
    log.flush()
    log.stamp("a", 0)
    log.flush()
    found = offsets(log, maxRecordsPerPartition="3")
    assert found == [*range(5), *range(10**12, 10**12 + 5)]
    assert (
        len(planned_tasks(log.bucket, parse_options({**BASE, "maxRecordsPerPartition": "3"}))) == 4
    )


def test_a_timestamp_that_spark_cannot_hold_is_cut_and_counted(
    log: WrittenLog, caplog: pytest.LogCaptureFixture
) -> None:
    last = (2**63 - 1) // 1000
    times = [0, 2**63 - 1, last + 1, last, -1, -last, -last - 1, -(2**63)]
    log.append("a", 0, [DecodedRecord(at, time, None, b"") for at, time in enumerate(times)])
    log.flush()
    (task,) = planned_tasks(log.bucket, parse_options(BASE))
    (batch,) = read_pieces(log.bucket, task, ["timestamp"], max_decompressed_bytes=MIB)
    found = batch.column("timestamp").cast("int64").to_pylist()
    assert found == [min(max(time, -last), last) * 1000 for time in times]
    assert "4 timestamps of a-0" in caplog.text
    assert offsets(log) == [*range(8)]


def log_with_garbage(log: WrittenLog) -> WrittenLog:
    """Two good batches, one of garbage between them, and one in a segment of its own."""
    partition = log.partition("a", 0)
    garbage = b"\xff" * 40
    for base, count, body in (
        (0, 1, record(0)),
        (1, 2, garbage),
        (3, 2, record(0) + record(1)),
        (5, 2, garbage),
    ):
        data = bytearray(produced(body, count))
        stamp_base_offset(memoryview(data), base)
        log.append_batch(partition, bytes(data))
        log.next_offset[partition] = base + count
        if base > 1:
            log.flush()
    return log


def test_a_batch_that_does_not_decode_is_named(log: WrittenLog) -> None:
    with pytest.raises(UnreadableBatchError, match="partition 0 offsets 1 to 2") as raised:
        offsets(log_with_garbage(log))
    assert "log/" in raised.value.message
    assert "damaged" not in str(raised.value)
    assert "failOnUnreadable" in raised.value.remedy


def test_a_batch_that_does_not_decode_is_left_out(
    log: WrittenLog, caplog: pytest.LogCaptureFixture
) -> None:
    assert offsets(log_with_garbage(log), failOnUnreadable="false") == [0, 3, 4]
    assert "offsets 1 to 2" in caplog.text
    assert "offsets 5 to 6" in caplog.text
