"""What a task holds in memory and how far a plan goes, whatever stands in the log."""

import pytest

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.records import DecodedRecord
from bucketlog.log_reader import fetch
from bucketlog.log_reader.fetch import read_pieces
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.tiered_storage.backends.memory import MemoryBucket
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
    for task in planned_tasks(log.bucket, parse_options({**BASE, **options})):
        for batch in read_pieces(log.bucket, task, ["offset"], max_decompressed_bytes=64 * MIB):
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
            log.append("a", 0, some_records(1), control=True)
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
