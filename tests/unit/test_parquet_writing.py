"""The files of a replay task: split, bounded, repeatable; and their target, which is verified."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketlog.errors import ConfigurationError, CorruptObjectError, InvalidDataError
from spark_jobs.parquet_target import SUCCESS, Target, is_target, parse_target, replacing
from spark_jobs.parquet_writing import (
    ParquetSettings,
    TaskName,
    Written,
    chosen_columns,
    write_task,
)
from spark_jobs.replay_plan import ReplayPlan, plan_replay, replay_options, smaller_tasks
from tests.written_log import START_MS, WrittenLog, some_records
from tiered_storage.backends.file import FileBucket
from tiered_storage.backends.memory import MemoryBucket
from tiered_storage.bucket import SyncBucket

HOUR_MS = 3_600_000
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
) -> list[Written]:
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


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return parse_target(str(tmp_path / "lake"), source=str(tmp_path / "bucket"))


@pytest.fixture
def opened(target: Target) -> Iterator[FileBucket]:
    bucket = FileBucket(Path(target.location.path))
    yield bucket
    bucket.close()


def keys_of(bucket: SyncBucket) -> list[str]:
    return sorted(info.key for info in bucket.list(""))


def replayed(
    target: Target, plan: ReplayPlan, *, overwrite: bool = False, spoil: Any = None
) -> Sequence[Any]:
    with replacing(target, overwrite=overwrite) as replacement:
        written = write(plan, replacement.bucket)
        if spoil is not None:
            written = spoil(replacement.bucket, written) or written
        return replacement.verify(written, plan.partitions, plan.records)


def test_success_stands_beside_verified_files(
    folder: Path, target: Target, opened: FileBucket
) -> None:
    partitions = replayed(target, plan_of(folder))
    assert [part.records for part in partitions] == [60] * 4
    assert SUCCESS in keys_of(opened)
    assert len(keys_of(opened)) == 5


def lose_one(bucket: SyncBucket, written: list[Written]) -> None:
    bucket.delete([written[0].file])


def add_one(bucket: SyncBucket, written: list[Written]) -> None:
    assert bucket.create("topic=orders/partition=0/part-stray.parquet", [b"stray"])


def truncate(bucket: SyncBucket, written: list[Written]) -> None:
    data = bytes(bucket.get(written[0].file).data)
    bucket.delete([written[0].file])
    assert bucket.create(written[0].file, [data[:-1] + b"x"])


def tell_too_few(bucket: SyncBucket, written: list[Written]) -> list[Written]:
    return [written[0]._replace(records=written[0].records - 1), *written[1:]]


def forget_a_task(bucket: SyncBucket, written: list[Written]) -> list[Written]:
    bucket.delete([written[0].file])
    return written[1:]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lose_one, "it is missing"),
        (add_one, "no task wrote it"),
        (truncate, "it is no Parquet"),
        (tell_too_few, "it has 60 records"),
        (forget_a_task, "180 records are there, 240 were to be replayed"),
    ],
)
def test_what_does_not_come_to_what_was_promised_is_no_success(
    folder: Path, target: Target, opened: FileBucket, spoil: Any, message: str
) -> None:
    with pytest.raises(CorruptObjectError, match=message):
        replayed(target, plan_of(folder), spoil=spoil)
    assert keys_of(opened) == []


def test_old_files_go_once_the_new_ones_are_complete(
    folder: Path, target: Target, opened: FileBucket
) -> None:
    replayed(target, plan_of(folder, "orders"))
    before = keys_of(opened)
    with pytest.raises(ConfigurationError, match="holds files already"):
        replayed(target, plan_of(folder, "refunds"))
    assert keys_of(opened) == before

    def rename(written: Written) -> Written:
        return written._replace(file=written.file.replace("-job.", "-new."))

    def move(bucket: SyncBucket, written: list[Written]) -> list[Written]:
        assert set(before) - {SUCCESS} <= set(keys_of(bucket))  # nothing old has gone yet
        for row in written:
            assert bucket.create(rename(row).file, [bucket.get(row.file).data])
            bucket.delete([row.file])
        return [rename(row) for row in written]

    replayed(target, plan_of(folder, "refunds"), overwrite=True, spoil=move)
    assert keys_of(opened) == [SUCCESS, "topic=refunds/partition=0/part-00000-00000-new.parquet"]


def test_a_replay_that_fails_leaves_the_old_files(
    folder: Path, target: Target, opened: FileBucket
) -> None:
    replayed(target, plan_of(folder, "refunds"))
    before = keys_of(opened)
    with pytest.raises(CorruptObjectError):
        replayed(target, plan_of(folder, "orders"), overwrite=True, spoil=lose_one)
    assert keys_of(opened) == [key for key in before if key != SUCCESS]


def test_what_is_no_parquet_is_never_overwritten(
    folder: Path, target: Target, opened: FileBucket
) -> None:
    assert opened.create("letters/to-keep.txt", [b"dear"])
    with pytest.raises(ConfigurationError, match=r"to-keep\.txt', which is no Parquet"):
        replayed(target, plan_of(folder), overwrite=True)
    assert keys_of(opened) == ["letters/to-keep.txt"]


def test_smaller_tasks_hold_the_same_pieces_in_the_same_order(folder: Path) -> None:
    plan = plan_of(folder)
    small = smaller_tasks(plan, 1)
    assert len(small) == 6 > len(plan.tasks)
    assert [piece for task in small for piece in task] == [
        piece for task in plan.tasks for piece in task
    ]


def test_as_many_tasks_as_the_cores_can_share_evenly(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replay_options({"path": str(folder), "subscribe": "orders,refunds"})
    options = replace(options, max_partition_bytes=2_000)
    count = len(plan_replay(options).tasks)
    assert count % 4
    assert len(plan_replay(options, cores=lambda: 4).tasks) == count
    monkeypatch.setattr("spark_jobs.replay_plan.EVEN_BYTES_MIN", 1)
    assert len(plan_replay(options, cores=lambda: 4).tasks) % 4 == 0


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
