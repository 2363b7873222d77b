"""Points in time and limits on offsets, without a Spark."""

import random

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.records import DecodedRecord
from bucketlog.log_reader.fetch import read_pieces
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.written_log import START_MS, WrittenLog
from tests.rigs.written_tier import Batch, WrittenTier, batches_in

BASE = {"path": "file:///logs", "subscribe": "a"}


class Timed:
    """Partition 0 of `a`: 60 batches of up to four records whose times go up and down; two objects
    of its tier, one behind a manifest, and log segments."""

    def __init__(self) -> None:
        chance = random.Random(5)
        self.log = WrittenLog(MemoryBucket())
        self.log.create_topic("a")
        part = self.log.partition("a", 0)
        self.records: list[DecodedRecord] = []
        batches: list[Batch] = []
        for number in range(60):
            made = [
                DecodedRecord(
                    0, START_MS + number * 100 + chance.randrange(-500, 500), None, bytes(20_000)
                )
                for _ in range(chance.randrange(1, 5))
            ]
            self.records += self.log.append("a", 0, made)
            batches += [batch for _, batch in batches_in(self.log.flush())]
        tier = WrittenTier(self.log)
        first = tier.split(part, batches[:20], 0)
        tier.split(part, batches[20:45], batches[20].base_offset)
        self.log.flush()
        tier.list_in_manifest(part, [first])
        self.log.flush()

    def read(self, **options: str) -> list[list[int]]:
        """Offsets, task by task."""
        parsed = parse_options({**BASE, **options})
        return [
            [
                offset
                for batch in read_pieces(
                    self.log.bucket, task, ["offset"], max_decompressed_bytes=1 << 20
                )
                for offset in batch.column(0).to_pylist()
            ]
            for task in planned_tasks(self.log.bucket, parsed)
        ]

    def offsets(self, **options: str) -> list[int]:
        return [offset for task in self.read(**options) for offset in task]

    def first_since(self, at_ms: int) -> int:
        return next(record.offset for record in self.records if record.timestamp >= at_ms)


@pytest.fixture(scope="module")
def timed() -> Timed:
    return Timed()


@pytest.mark.parametrize("step", range(0, 5900, 97))
def test_the_first_record_at_or_after_a_time_begins(timed: Timed, step: int) -> None:
    at_ms = START_MS + step
    first = timed.first_since(at_ms)
    found = timed.offsets(startingTimestamp=str(at_ms))
    assert found == list(range(first, len(timed.records)))
    assert timed.offsets(endingTimestamp=str(at_ms)) == list(range(first))


def test_times_by_partition_and_precedence(timed: Timed) -> None:
    at_ms = START_MS + 3000
    by_partition = f'{{"a":{{"0":{at_ms}}}}}'
    first = timed.first_since(at_ms)
    assert timed.offsets(startingOffsetsByTimestamp=by_partition)[0] == first
    assert timed.offsets(startingOffsetsByTimestamp=by_partition, startingOffsets="earliest")[
        0
    ] == (first)
    assert timed.offsets(startingTimestamp="0", startingOffsetsByTimestamp=by_partition)[0] == 0
    with pytest.raises(ConfigurationError, match="lack a-0"):
        timed.offsets(startingOffsetsByTimestamp="{}")


def test_a_time_after_the_last_record(timed: Timed) -> None:
    late = str(START_MS + 10_000_000)
    with pytest.raises(ConfigurationError, match="no record at or after"):
        timed.offsets(startingTimestamp=late)
    assert not timed.offsets(startingTimestamp=late, startingOffsetsByTimestampStrategy="latest")
    assert len(timed.offsets(endingTimestamp=late)) == len(timed.records)


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_no_task_has_more_offsets_than_allowed(timed: Timed, most: int) -> None:
    tasks = timed.read(maxRecordsPerPartition=str(most))
    assert [offset for task in tasks for offset in task] == list(range(len(timed.records)))
    assert max(map(len, tasks)) == min(most, len(timed.records))


def test_offsets_that_are_gone_are_clamped_where_that_is_allowed(timed: Timed) -> None:
    past = '{"a":{"0":100000}}'
    with pytest.raises(ConfigurationError, match="failOnDataLoss=false"):
        timed.offsets(endingOffsets=past)
    assert timed.offsets(endingOffsets=past, failOnDataLoss="false") == list(
        range(len(timed.records))
    )
