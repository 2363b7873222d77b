"""Chunks of stored batches: small reads together, large ones in parts, nothing lost."""

from collections.abc import Generator, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.records import DecodedRecord
from bucketlog.log_reader.chunks import chunks, decoded_chunk
from bucketlog.log_reader.columns import CheckedBatches
from bucketlog.log_reader.damage import UnreadableBatchError
from bucketlog.log_reader.fetch import checked_batches
from bucketlog.log_reader.options import ReadOptions, parse_options
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.replay_plan import plan_replay, replay_options
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.written_log import START_MS, WrittenLog

NAMES = ("partition", "offset", "value")
SEGMENTS, BATCHES, RECORDS = 6, 5, 7
Folder = pytest.TempPathFactory


@pytest.fixture(scope="module")
def url(tmp_path_factory: Folder) -> str:
    """Six segments, each with five batches of seven records in each of two partitions."""
    folder = tmp_path_factory.mktemp("bucket")
    bucket = FileBucket(folder / "0")
    log = WrittenLog(bucket)
    log.create_topic("orders", 2)
    for segment in range(SEGMENTS):
        for batch in range(BATCHES):
            for partition in range(2):
                first = (segment * BATCHES + batch) * RECORDS
                log.append(
                    "orders",
                    partition,
                    [
                        DecodedRecord(at, START_MS, None, b"%d" % (first + at))
                        for at in range(RECORDS)
                    ],
                )
        log.flush()
    bucket.close()
    return f"file://{folder}"


def rows(batches: Iterator[pa.RecordBatch]) -> list[tuple[int, int, bytes]]:
    found = [batch.to_pylist() for batch in batches]
    return [(row["partition"], row["offset"], row["value"]) for each in found for row in each]


@pytest.mark.parametrize("most_records", [1, RECORDS, 20, 10_000])
@pytest.mark.parametrize("most_bytes", [1, 500, 1 << 20])
def test_the_chunks_have_each_record_once_and_in_order(
    url: str, most_bytes: int, most_records: int
) -> None:
    plan = plan_replay(replay_options({"path": url, "subscribe": "orders"}))
    pieces: list[TaskPiece] = [piece for task in plan.tasks for piece in task]
    with_bucket = plan.open_source()
    reads = checked_batches(with_bucket, pieces)
    made = list(chunks(reads, most_bytes=most_bytes, most_records=most_records))
    for chunk in made:
        batches = [row for part in chunk for run in part.runs for row in run.rows]
        assert len(batches) == 1 or (
            sum(row.length for row in batches) <= most_bytes
            and sum(row.record_count for row in batches) <= most_records
        )
    if most_bytes == 1 or most_records <= RECORDS:
        assert len(made) == SEGMENTS * BATCHES * 2
    if most_bytes == 1 << 20 and most_records == 10_000:
        assert len(made) == 1
        assert len(list(decoded_chunk(made[0], NAMES, plan.options))) == 1
    found = rows(batch for each in made for batch in decoded_chunk(each, NAMES, plan.options))
    with_bucket.close()
    for partition in range(2):
        mine = [row for row in found if row[0] == partition]
        assert mine == [
            (partition, offset, b"%d" % offset) for offset in range(SEGMENTS * BATCHES * RECORDS)
        ]


def test_the_batches_before_damage_come_first(url: str) -> None:
    plan = plan_replay(replay_options({"path": url, "subscribe": "orders"}))
    ended = []

    def reads() -> Generator[CheckedBatches, None, None]:
        with_bucket = plan.open_source()
        try:
            yield from checked_batches(with_bucket, plan.tasks[0][:2])
            raise CorruptObjectError("key", 0, "damaged")
        finally:
            with_bucket.close()
            ended.append(True)

    made = chunks(reads())
    first = next(made)
    assert len(rows(decoded_chunk(first, NAMES, plan.options))) == 2 * BATCHES * 2 * RECORDS
    with pytest.raises(CorruptObjectError, match="damaged"):
        next(made)
    assert ended


def test_the_rows_before_a_batch_that_does_not_decode_come_first(url: str) -> None:
    options: ReadOptions = parse_options({"path": url, "subscribe": "orders"})
    plan = plan_replay(options)
    with_bucket = plan.open_source()
    (chunk,) = chunks(checked_batches(with_bucket, plan.tasks[0]))
    with_bucket.close()
    last = chunk[-1]
    damaged = bytearray(last.data)
    row = last.runs[-1].rows[-1]
    damaged[row.position - last.position + 61] ^= 0xFF  # the length of the batch's first record
    broken = (*chunk[:-1], last._replace(data=damaged))
    found: list[pa.RecordBatch] = []
    with pytest.raises(UnreadableBatchError, match="does not decode"):
        found.extend(decoded_chunk(broken, NAMES, options))
    assert len(rows(iter(found))) == (SEGMENTS * BATCHES * 2 - 1) * RECORDS
    skipping = replace(options, fail_on_unreadable=False)
    assert len(rows(decoded_chunk(broken, NAMES, skipping))) == (
        SEGMENTS * BATCHES * 2 * RECORDS - RECORDS
    )
