"""A Parquet folder whose ingest dies at any step: readers see a batch once, or not yet."""

import json
import shutil
import subprocess
from pathlib import Path

import pyarrow.dataset
import pytest
from pyspark.sql import SparkSession

from bucketlog.log_format.errors import ConfigurationError, CorruptObjectError
from bucketlog.log_reader.tables.progress import IngestConflictError
from bucketlog.spark_jobs.ingest.hadoop_folder import FoundFile, HadoopFolder
from bucketlog.spark_jobs.ingest.parquet import FOLDER, STAGED, ParquetTarget
from bucketlog.tiered_storage.backends.location import S3Options
from localstack.servers import ACCESS_KEY, REGION, SECRET_KEY, RunningStore
from localstack.spark_jars import s3a_settings
from tests.rigs.shell import COMMAND
from tests.spark.conftest import Stored
from tests.spark.ingests import SCHEMA, Lake

pytestmark = pytest.mark.long


class DiedError(Exception):
    """In place of a kill."""


@pytest.fixture
def lake(spark: SparkSession, stored: Stored, tmp_path: Path) -> Lake:
    stored.log.create_topic("orders", 2)
    lake = Lake.of(spark, stored, "parquet", tmp_path)
    lake.produce("orders", 0, 10)
    lake.ingest()
    lake.produce("orders", 1, 10)
    return lake


def staged(lake: Lake) -> list[str]:
    return sorted(path.name for path in Path(lake.name, STAGED).glob("*"))


@pytest.mark.parametrize(
    ("step", "calls", "rows", "resumed"),
    [("_decide", 0, 10, 0), ("_publish", 0, 10, 3), ("rename", 1, 14, 2), ("delete", 0, 20, 0)],
)
def test_dying_at_a_step(
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    calls: int,
    rows: int,
    resumed: int,
) -> None:
    """After `calls` of the step were done, readers see `rows`; what the next run finishes."""
    owner = HadoopFolder if hasattr(HadoopFolder, step) else ParquetTarget
    whole = getattr(owner, step)
    left = [calls]

    def dying(*arguments: object) -> object:
        if not left[0]:
            raise DiedError
        left[0] -= 1
        return whole(*arguments)

    target = lake.target()
    with monkeypatch.context() as patch:
        patch.setattr("bucketlog.spark_jobs.ingest.parquet.RENAMES_IN_FLIGHT", 1)
        prepared = target.prepare

        def then_die(*arguments: object) -> object:
            found = prepared(*arguments)  # type: ignore[arg-type] # as it was called
            patch.setattr(owner, step, dying)
            return found

        target.prepare = then_die  # type: ignore[method-assign,assignment] # from here on
        with pytest.raises(DiedError):
            lake.ingest(target)
    seen = lake.rows()
    assert (seen.total(), set(seen.values())) == (rows, {1})
    assert pyarrow.dataset.dataset(lake.name, partitioning="hive").count_rows() == rows
    report = lake.ingest()
    assert report.resumed_files == resumed
    assert report.records == (10 if step == "_decide" else 0)
    assert lake.rows() == lake.produced
    lake.ingest()
    assert staged(lake) == []


def test_staging_of_a_batch_that_may_yet_be_committed_stays(lake: Lake) -> None:
    own = Path(lake.name, STAGED)
    for name in ("000000000001-late", "000000000002-alive", "000000000003-alive"):
        (own / name / "day=2023-11-14").mkdir(parents=True)
        (own / name / "day=2023-11-14" / "part-0.parquet").write_bytes(b"")
    target = lake.target()
    write = target.write

    def looking(*arguments: object) -> object:
        assert staged(lake) == ["000000000002-alive", "000000000003-alive"]
        return write(*arguments)  # type: ignore[arg-type] # as it was called

    target.write = looking  # type: ignore[method-assign,assignment] # at this moment
    assert lake.ingest(target).records == 10
    assert staged(lake) == ["000000000003-alive"]
    assert lake.rows() == lake.produced


def test_staging_that_was_removed_under_a_late_one_is_a_conflict(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = HadoopFolder.files

    def after_others(folder: HadoopFolder, name: str) -> list[FoundFile]:
        if name.startswith(STAGED):
            monkeypatch.undo()
            lake.ingest()
            lake.ingest()
            assert staged(lake) == []
        return files(folder, name)

    late = lake.target()
    prepared = late.prepare

    def and_then(*arguments: object) -> object:
        found = prepared(*arguments)  # type: ignore[arg-type] # as it was called
        monkeypatch.setattr(HadoopFolder, "files", after_others)
        return found

    late.prepare = and_then  # type: ignore[method-assign,assignment] # from here on
    with pytest.raises(IngestConflictError, match="batch 2"):
        lake.ingest(late)
    assert lake.rows() == lake.produced


def test_a_published_file_that_is_not_the_committed_one_is_told(lake: Lake) -> None:
    target = lake.target()
    assert isinstance(target, ParquetTarget)
    decide = target._decide

    def then_die(*arguments: object) -> None:
        decide(*arguments)  # type: ignore[arg-type] # as it was called
        raise DiedError

    target._decide = then_die  # type: ignore[method-assign,assignment] # committed, unpublished
    with pytest.raises(DiedError):
        lake.ingest(target)
    folder = Path(lake.name, "day=2023-11-14")
    (folder / "ingest-000000000002-00000.parquet").write_bytes(b"another")
    with pytest.raises(CorruptObjectError, match=r"batch 2 .* 1 of its 3 files .* and 7 are there"):
        lake.ingest()


def test_staging_that_is_lost_before_it_is_published_is_told(lake: Lake) -> None:
    target = lake.target()
    assert isinstance(target, ParquetTarget)

    def die(*arguments: object) -> int:
        raise DiedError

    target._publish = die  # type: ignore[method-assign,assignment] # committed, unpublished
    with pytest.raises(DiedError):
        lake.ingest(target)
    shutil.rmtree(Path(lake.name, STAGED))  # a lifecycle rule, a tidy-up
    lake.produce("orders", 0, 10)
    for _ in range(2):
        with pytest.raises(CorruptObjectError, match=r"batch 2 .* 3 of its 3 files .*none are"):
            lake.ingest()
    Path(lake.name, FOLDER, "published", "000000000002").touch()  # as the error advises
    assert lake.ingest().records == 10


def test_files_may_be_removed_once_they_were_published(lake: Lake) -> None:
    lake.ingest()
    for file in Path(lake.name).glob("day=*/*.parquet"):
        file.unlink()
    assert lake.ingest().batches == 0
    lake.produce("orders", 0, 5)
    assert lake.ingest().records == 5


def test_of_a_folder_without_marks_the_newest_batch_is_looked_for(lake: Lake) -> None:
    lake.ingest()
    marks = Path(lake.name, FOLDER, "published")
    shutil.rmtree(marks)
    for file in Path(lake.name).glob("day=*/ingest-000000000001-*"):
        file.unlink()
    assert lake.ingest().batches == 0
    assert [mark.name for mark in marks.iterdir()] == ["000000000002"]
    shutil.rmtree(marks)
    next(Path(lake.name).glob("day=*/ingest-000000000002-00001*")).unlink()
    with pytest.raises(CorruptObjectError, match=r"1 of its 3 files .*-00001\.parquet"):
        lake.ingest()


def test_a_folder_that_lost_its_commits_is_refused(lake: Lake) -> None:
    Path(lake.name, FOLDER).rename(Path(lake.name, "_lost"))
    with pytest.raises(ConfigurationError, match=r"no commit of an ingest.*_bucketlog back"):
        lake.ingest()


def test_the_command_line(lake: Lake) -> None:
    command = [*COMMAND, "spark", "ingest", "--bucket", lake.stored.url]
    command += ["--topics", "orders", "--schema", SCHEMA, "--cores", "1", "--parquet", lake.name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["records"], report["batches"], report["last_batch"]) == (10, 1, 2)
    assert report["partitions"][0] == {"topic": "orders", "partition": 0, "end": 10}
    assert lake.rows() == lake.produced


def test_of_two_on_s3_one_has_the_batch(
    spark: SparkSession,
    spark_jars: list[Path],
    minio: RunningStore,
    stored: Stored,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    minio.make_bucket("ingested")
    for name, value in s3a_settings(minio).items():
        spark.conf.set(name.removeprefix("spark.hadoop."), value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    s3 = S3Options(endpoint_url=minio.endpoint_url, region=REGION)
    lake = Lake(spark, stored, "parquet", "s3a://ingested/lake", s3=s3)
    stored.log.create_topic("orders", 2)
    for many in (10, 20):
        lake.produce("orders", 1, many)
        assert lake.race() == [str(many), "INGEST_CONFLICT"]
        assert lake.rows() == lake.produced
    with minio.client() as client:
        found = client.list_objects_v2(Bucket="ingested", Prefix=f"lake/{STAGED}/")
    assert not [item for item in found.get("Contents", []) if not item["Key"].endswith("/")]
