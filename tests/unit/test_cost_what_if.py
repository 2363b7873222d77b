"""Another flush interval and retention, against values computed by hand."""

import json
from pathlib import Path

import pytest

from bucketlog.cli.main import main
from bucketlog.cost.load import LogSegment, MergedFlush, merged_flushes
from bucketlog.cost.of_bucket import WriteReason, usage_of
from bucketlog.cost.pricing import Rates, System, price
from bucketlog.cost.what_if import WhatIf, estimated
from bucketlog.log_format.model import WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.written_log import WrittenLog, some_records
from tests.unit.test_cost import EASY
from tests.unit.test_verify import IDENTITY

ONE, OTHER = WriterId("1"), WriterId("2")
LARGE = 1_000_000


def merged(
    written: list[tuple[WriterId, LogSegment]], interval_ms: int, bytes_max: int = LARGE
) -> list[MergedFlush]:
    return list(merged_flushes(written, interval_ms=interval_ms, bytes_max=bytes_max))


def at(*times_ms: int, writer: WriterId = ONE) -> list[tuple[WriterId, LogSegment]]:
    """Segments of 10 bytes, of which 8 are of topic a."""
    return [(writer, LogSegment(time_ms, 10, {"a": 8})) for time_ms in times_ms]


def test_segments_within_the_interval_are_one_flush() -> None:
    first, second = merged(at(1_000, 1_100, 1_250, 1_400), 500)
    assert first == MergedFlush(LogSegment(1_000, 10, {"a": 8}), 0)
    waited_ms = 8 * (400 + 250 + 100)
    assert second == MergedFlush(LogSegment(1_500, 30, {"a": 24}), waited_ms)


def test_a_quiet_writer_flushes_at_once() -> None:
    flushes = merged(at(1_000, 2_000, 3_000), 500)
    assert [flush.segment.created_ms for flush in flushes] == [1_000, 2_000, 3_000]
    assert sum(flush.waited_ms for flush in flushes) == 0


def test_a_pending_flush_ends_before_the_next_segment() -> None:
    flushes = merged(at(1_000, 1_100, 5_000), 500)
    assert [flush.segment.created_ms for flush in flushes] == [1_000, 1_500, 5_000]


def test_an_interval_below_that_of_brokers_changes_nothing() -> None:
    written = at(1_000, 1_100, 1_200)
    assert [flush.segment for flush in merged(written, 100)] == [one for _, one in written]
    assert [flush.segment for flush in merged(written, 0)] == [one for _, one in written]


def test_many_bytes_are_flushed_early() -> None:
    flushes = merged(at(1_000, 1_100, 1_200, 1_300), 500, bytes_max=20)
    assert [flush.segment.size_bytes for flush in flushes] == [10, 20, 10]
    assert [flush.segment.created_ms for flush in flushes] == [1_000, 1_200, 1_700]


def test_each_writer_has_its_own_flushes() -> None:
    written = [*at(1_000), *at(1_000, writer=OTHER), *at(1_100), *at(1_100, writer=OTHER)]
    flushes = merged(written, 500)
    assert [flush.segment.created_ms for flush in flushes] == [1_000, 1_000, 1_500, 1_500]


def written_log(bucket: MemoryBucket | FileBucket) -> None:
    assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(bucket)
    log.create_topic("a")
    log.flush()
    for _ in range(4):
        log.append("a", 0, some_records(2))
        log.flush()


def test_a_longer_interval_costs_fewer_puts_and_as_much_storage() -> None:
    bucket = MemoryBucket()
    written_log(bucket)
    usage = usage_of(bucket, EASY)
    rates = Rates.assumed(EASY)
    before = price(usage.load, usage.retention_days, rates, EASY)
    assert estimated(usage, WhatIf(), rates, EASY).rows == before
    found = estimated(usage, WhatIf(flush_interval_ms=60_000), rates, EASY)
    assert found.puts < sum(row.puts for row in before)
    (was,) = (row for row in before if row.topic == "a")
    (now,) = (row for row in found.rows if row.topic == "a")
    assert now.produced_bytes == was.produced_bytes
    assert now.written_bytes == pytest.approx(was.written_bytes, rel=0.5)
    s3 = System.S3_STANDARD
    assert now.usd[s3]["PUT"] < was.usd[s3]["PUT"]
    assert now.usd[s3]["storage"] == pytest.approx(was.usd[s3]["storage"])
    assert now.usd[System.KAFKA] == pytest.approx(was.usd[System.KAFKA])


def test_storage_follows_the_retention() -> None:
    bucket = MemoryBucket()
    written_log(bucket)
    usage = usage_of(bucket, EASY)
    rates = Rates.assumed(EASY)

    def disks(days: float) -> float:
        found = estimated(usage, WhatIf(retention_days=days), rates, EASY)
        return sum(row.usd[System.KAFKA]["storage"] for row in found.rows)

    assert disks(14) == pytest.approx(2 * disks(7))
    assert disks(7) > 0


def test_objects_are_counted_by_the_reason_for_writing() -> None:
    bucket = MemoryBucket()
    written_log(bucket)
    found = usage_of(bucket, EASY).activities()
    puts = {reason: count for reason, (count, _) in found.items()}
    assert puts[WriteReason.RECORDS] == 4
    assert puts[WriteReason.FACTS] == 1
    assert puts[WriteReason.COMPACTION] == 0
    sizes = [info.size_bytes for info in bucket.list(keys.LOG)]
    log_bytes = found[WriteReason.RECORDS][1] + found[WriteReason.FACTS][1]
    assert log_bytes == sum(sizes)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written_log(FileBucket(tmp_path / "0"))
    command = ["cost", f"file://{tmp_path}", "--what-if-interval-ms", "60000"]
    assert main([*command, "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["written_for"]["records"]["puts"] == 4, "as it was"
    assert sum(row["puts"] for row in shown["rows"] if row["topic"] == "a") < 4
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "with a flush interval of 60000 ms: a record would have waited" in text
    assert main([*command, "--tenants", str(tmp_path / "t.toml")]) == 2
    assert "--tenants" in capsys.readouterr().err
    assert main(["cost", f"file://{tmp_path}", "--what-if-retention-days", "-1"]) == 2
