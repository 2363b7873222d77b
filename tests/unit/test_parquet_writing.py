"""The files of a replay task: split, bounded, repeatable; and where they may be written."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from bucketlog.log_format.records import DecodedRecord
from bucketlog.log_reader.options import open_log
from bucketlog.log_reader.parquet_target import is_target, parse_target
from bucketlog.log_reader.parquet_writing import (
    FileRecords,
    ParquetSettings,
    TaskName,
    chosen_columns,
    unpinned,
    write_task,
)
from bucketlog.log_reader.replay_plan import (
    ReplayPlan,
    plan_batch,
    plan_replay,
    replay_options,
)
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import SyncBucket
from tests.rigs.written_log import START_MS, WrittenLog, some_records

HOUR_MS = 3_600_000
MIB = 1024 * 1024
SETTINGS = ParquetSettings()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`orders` (three partitions) and `refunds`, in six segments, an hour apart, mixed up."""
    folder = tmp_path / "bucket"
    log = WrittenLog(FileBucket(folder / "0"))
    log.create_topic("orders", 3)
    log.create_topic("refunds", 1)
    for number in range(6):
        for topic, partition in (("orders", 0), ("orders", 1), ("orders", 2), ("refunds", 0)):
            records = [
                record._replace(timestamp=START_MS + (number + at % 2) * HOUR_MS)
                for at, record in enumerate(some_records(10, tag=f"{topic}{partition}"))
            ]
            log.append(topic, partition, records)
        log.flush()
    log.bucket.close()
    return folder


def plan_of(folder: Path, topics: str = "orders,refunds", **options: str) -> ReplayPlan:
    return plan_replay(replay_options({"path": str(folder), "subscribe": topics, **options}))


def write(
    plan: ReplayPlan, target: SyncBucket, settings: ParquetSettings = SETTINGS
) -> list[FileRecords]:
    columns = chosen_columns(None, settings, include_headers=False)
    with_source = plan.open_source()
    try:
        return [
            row
            for number, pieces in enumerate(plan.tasks)
            for row in write_task(
                with_source,
                pieces,
                target,
                TaskName("job", number),
                columns,
                settings,
                plan.options,
            )
        ]
    finally:
        with_source.close()


def tables(target: SyncBucket) -> dict[str, pa.Table]:
    keys = sorted(info.key for info in target.list("") if info.key.endswith(".parquet"))
    return {key: pq.ParquetFile(pa.BufferReader(target.get(key).data)).read() for key in keys}


@pytest.mark.parametrize("min_partitions", ["1", "5"])
def test_a_folder_for_each_partition_and_hour(folder: Path, min_partitions: str) -> None:
    target = MemoryBucket()
    settings = replace(SETTINGS, partition_by=("topic", "partition", "day", "hour"))
    written = write(plan_of(folder, minPartitions=min_partitions), target, settings)
    assert sum(row.records for row in written) == 240
    found: dict[str, list[int]] = {}
    for key, table in tables(target).items():
        assert table.column_names == ["key", "value", "offset", "timestamp", "timestampType"]
        place = key.rpartition("/")[0]
        hours = table.column("timestamp").to_pandas().dt.strftime("day=%Y-%m-%d/hour=%-H").unique()
        assert list(hours) == [place.partition("/partition=")[2].partition("/")[2]]
        found.setdefault(place, []).extend(table.column("offset").to_pylist())
    assert len(found) == 4 * 7  # six hours, and one into which every second of the last reach
    assert all(offsets == sorted(offsets) for offsets in found.values())
    assert sorted(found["topic=refunds/partition=0/day=2023-11-14/hour=22"]) == [0, 2, 4, 6, 8]


def test_several_partitions_share_a_file_and_are_counted_apart(folder: Path) -> None:
    target = MemoryBucket()
    written = write(plan_of(folder), target, replace(SETTINGS, partition_by=()))
    assert {row.file for row in written} == {"part-00000-00000-job.parquet"}
    assert {(row.topic, row.partition): row[4:] for row in written} == dict.fromkeys(
        [*(("orders", at) for at in range(3)), ("refunds", 0)], (60, 0, 59)
    )
    table = tables(target)[written[0].file]
    rows = zip(table["topic"].to_pylist(), table["partition"].to_pylist(), strict=True)
    assert set(rows) == {(row.topic, row.partition) for row in written}


def test_columns_are_those_that_are_asked_for_and_values_are_as_written(folder: Path) -> None:
    target = MemoryBucket()
    plan = plan_of(folder, "refunds")
    source = plan.open_source()
    name = TaskName("job", 0)
    write_task(source, plan.tasks[0], target, name, ("value", "offset"), SETTINGS, plan.options)
    source.close()
    (table,) = tables(target).values()
    assert table.column_names == ["value", "offset"]
    expected = [record.value for record in some_records(10, tag="refunds0")] * 6
    assert table.column("value").to_pylist() == expected


@pytest.mark.parametrize(
    ("limits", "files", "groups"),
    [
        ({}, 1, [60]),
        ({"row_group_rows": 25}, 1, [25, 25, 10]),
        ({"row_group_rows": 20, "file_bytes_max": 1}, 3, [20]),
        ({"buffer_bytes_max": 1}, 6, [10]),
    ],
)
def test_limits_cut_row_groups_and_files(
    folder: Path, limits: dict[str, Any], files: int, groups: list[int]
) -> None:
    target = MemoryBucket()
    plan = plan_of(folder, "refunds", maxPartitionBytes=str(2**30))
    written = write(plan, target, replace(SETTINGS, **limits))
    assert len(written) == files
    first = pq.ParquetFile(pa.BufferReader(target.get(written[0].file).data)).metadata
    assert [first.row_group(at).num_rows for at in range(first.num_row_groups)] == groups
    assert [row.first_offset for row in written] == [
        sum(before.records for before in written[:at]) for at in range(files)
    ]


def test_rows_that_wait_do_not_keep_what_they_were_cut_from() -> None:
    whole = pa.record_batch({"value": [bytes(1000)] * 1000, "headers": [[{"key": "at"}]] * 1000})
    few = unpinned(whole.slice(500, 5))
    assert few.equals(whole.slice(500, 5))
    assert few.get_total_buffer_size() < 6_000
    most = whole.slice(0, 600)
    assert unpinned(most) is most


def test_the_buffer_bounds_what_is_held_of_batches_cut_by_partition(tmp_path: Path) -> None:
    """Each decoded batch is 1 MB of partition 0, which is written, and a row of 1, which waits."""
    log = WrittenLog(FileBucket(tmp_path / "0"))
    log.create_topic("orders", 2)
    for at in range(40):
        log.append("orders", 0, [DecodedRecord(0, START_MS, None, bytes(1000)) for _ in range(900)])
        log.append("orders", 1, [DecodedRecord(0, START_MS, None, b"%d" % at)])
        log.flush()
    log.bucket.close()
    settings = replace(SETTINGS, buffer_bytes_max=4 * MIB, compression="none", row_group_rows=900)
    plan = plan_of(tmp_path, "orders", maxPartitionBytes=str(2**30))
    source = plan.open_source()
    target = MemoryBucket()
    name = TaskName("job", 0)
    held: list[int] = []
    before = pa.total_allocated_bytes()

    def watch(_rows: int, _size_bytes: int) -> None:
        held.append(pa.total_allocated_bytes() - before)

    (pieces,) = plan.tasks
    write_task(source, pieces, target, name, ("value",), settings, plan.options, on_rows=watch)
    source.close()
    assert len(held) == 40
    assert max(held) < 24 * MIB  # of the 36 that were decoded
    (key,) = (info.key for info in target.list("") if "partition=1" in info.key)
    waited = pq.ParquetFile(pa.BufferReader(target.get(key).data))
    assert waited.num_row_groups == 1  # nor were they written early for what they keep
    assert waited.read().column("value").to_pylist() == [b"%d" % at for at in range(40)]


def test_a_task_that_runs_again_finds_its_own_files(folder: Path) -> None:
    target = MemoryBucket()
    plan = plan_of(folder, minPartitions="3")
    once = write(plan, target)
    keys = sorted(info.key for info in target.list(""))
    assert write(plan, target) == once
    assert sorted(info.key for info in target.list("")) == keys


def test_another_file_of_a_tasks_name_is_an_error(folder: Path) -> None:
    target = MemoryBucket()
    plan = plan_of(folder, "refunds")
    assert target.create("topic=refunds/partition=0/part-00000-00000-job.parquet", [b"other"])
    with pytest.raises(InvalidDataError, match="of another attempt has 5 bytes"):
        write(plan, target)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"partition_by": ("value",)}, "cannot partition by 'value'"),
        ({"partition_by": ("day", "day")}, "names a column twice"),
        ({"compression": "rar"}, "compression 'rar'"),
        ({"row_group_rows": 0}, "row_group_rows 0"),
        ({"file_bytes_max": -1}, "file_bytes_max -1"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        replace(SETTINGS, **settings)


@pytest.mark.parametrize("columns", [["price"], ["topic"], ["headers"], []])
def test_bad_columns(columns: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="column"):
        chosen_columns(columns, SETTINGS, include_headers=False)


@pytest.mark.parametrize(
    ("url", "scheme", "path"),
    [
        ("s3a://lake/orders/", "s3", "orders"),
        ("S3://lake/orders", "s3", "orders"),
        ("file:///lake/orders", "file", "/lake/orders"),
        ("file:/lake/orders", "file", "/lake/orders"),
        ("/lake/orders", "file", "/lake/orders"),
    ],
)
def test_targets(url: str, scheme: str, path: str) -> None:
    assert is_target(url)
    found = parse_target(url, source="s3://logs/prod").location
    assert (found.scheme, found.path) == (scheme, path)


def test_what_only_spark_can_write_to_is_no_target() -> None:
    assert not is_target("hdfs://cluster/lake")
    with pytest.raises(ConfigurationError, match="hdfs"):
        parse_target("hdfs://cluster/lake", source="s3://logs/prod")


@pytest.mark.parametrize("url", ["s3://logs/prod", "s3a://logs/prod/lake", "s3://logs/prod/0/x"])
def test_a_target_within_the_log_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="lies within the log"):
        parse_target(url, source="s3://logs/prod/")
    beside = parse_target("s3://logs/production", source="s3://logs/prod")
    assert beside.location.path == "production"


def test_as_many_tasks_as_the_cores_can_share_evenly(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replay_options({"path": str(folder), "subscribe": "orders,refunds"})
    options = replace(options, max_partition_bytes=2_000)
    count = len(plan_replay(options).tasks)
    assert count % 4
    assert len(plan_replay(options, cores=lambda: 4).tasks) == count
    bucket = open_log(options)
    assert len(plan_batch(bucket, options, cores=lambda: 4)) == count
    monkeypatch.setattr("bucketlog.log_reader.replay_plan.EVEN_BYTES_MIN", 1)
    assert len(plan_replay(options, cores=lambda: 4).tasks) % 4 == 0
    assert len(plan_batch(bucket, options, cores=lambda: 4)) % 4 == 0


def test_a_plan_pins_what_the_log_was(folder: Path) -> None:
    plan = plan_of(folder, "refunds")
    assert plan.pinned == {
        "startingOffsets": '{"refunds": {"0": 0}}',
        "endingOffsets": '{"refunds": {"0": 60}}',
    }
    assert plan.records == 60


def test_the_size_of_tasks_is_a_replays_own_unless_it_is_given() -> None:
    given = {"path": "x", "subscribe": "t"}
    assert replay_options(given).max_partition_bytes == 128 * 1024 * 1024
    assert replay_options({**given, "MaxPartitionBytes": "5"}).max_partition_bytes == 5
