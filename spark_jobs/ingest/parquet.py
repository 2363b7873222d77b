"""A folder of Parquet files as the target, by day; no table format.

    day=2024-05-01/ingest-000000000007-00000.parquet   what readers see
    _bucketlog/commits/000000000007.json               batch 7: its end offsets, its files
    _bucketlog/staged/000000000007-<attempt>/…         written, not decided
    _bucketlog/published/000000000007                  all files of batch 7 stood in their places

Spark stages a batch; the commit object, which is created only where there is none, decides whose
batch it is; then its files are renamed to the names that it says, which whoever comes next can
finish. Readers pass over `_bucketlog`.

Invariants: a file is under its published name only after the commit object that says so, and is
whole; a batch is marked published once each of its files was seen there with its size, and before
its staging is removed; no batch is written while the one before is not marked. So what a commit
names is staged or published, or the next run fails; what is removed after the mark was removed by
somebody on purpose. Commit objects are never removed: a number must stay taken.

A target of before there were marks: of its newest commit alone the files are looked for, once.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pydantic import BaseModel, ConfigDict

from bucketlog.log_format.errors import ConfigurationError, CorruptObjectError
from bucketlog.log_reader.parquet_target import parse_target
from bucketlog.log_reader.tables.ingest_loop import WrittenBatch
from bucketlog.log_reader.tables.progress import Commit, IngestConflictError, TargetState, TopicEnds
from bucketlog.log_reader.tables.rows import DAY
from bucketlog.spark_jobs.ingest.hadoop_folder import HadoopFolder
from bucketlog.spark_jobs.ingest.rows import BatchRecords, IngestShape
from bucketlog.tiered_storage.backends.location import Location, S3Options
from bucketlog.tiered_storage.bucket import SyncBucket

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOLDER = "_bucketlog"
STAGED = f"{FOLDER}/staged"
_COMMITS = "commits/"
_PUBLISHED = "published/"
_GLOB = frozenset("{}[]*?\\")
"""What makes a path a pattern to Spark, which then reads something else, or nothing."""
_LISTED_FILES = 5
RENAMES_IN_FLIGHT = 8


class PublishedFile(BaseModel):
    """`staged` within the attempt's folder, `name` within the target."""

    model_config = ConfigDict(frozen=True)

    staged: str
    name: str
    size_bytes: int


class ParquetCommit(Commit):
    """`columns` as DDL; `rows` is what the files hold."""

    columns: str
    rows: int
    files: tuple[PublishedFile, ...]

    @property
    def staged_in(self) -> str:
        return f"{STAGED}/{_number(self.batch)}-{self.attempt}"


class ParquetTarget:
    """`url` is a path, file:///…, s3://… or s3a://…; `s3` is how the driver itself reaches it (a
    commit object needs a PUT with If-None-Match), Spark's own settings are how Spark does."""

    def __init__(
        self,
        spark: "SparkSession",
        url: str,
        *,
        source: str,
        new_id: Callable[[], str],
        s3: S3Options | None = None,
    ) -> None:
        self._spark = spark
        self._new_id = new_id
        at = parse_folder(url, source=source)
        self._own = parse_target(f"{url.rstrip('/')}/{FOLDER}", source=source, s3=s3)
        self._folder = HadoopFolder(
            spark,
            f"file://{at.path}" if at.scheme == "file" else f"s3a://{at.bucket}/{at.path}",
        )
        self._columns = ""

    @property
    def name(self) -> str:
        return self._folder.url

    def prepare(self, shape: IngestShape) -> TargetState:
        if shape.rows.bad_records == "dead-letter":
            raise ConfigurationError(
                f"{self.name}: a Parquet folder has no table of dead letters",
                remedy="ingest into an Iceberg table, or give --bad-records fail or null",
            )
        self._columns = shape.columns.toDDL()
        with closing(self._own.open()) as bucket:
            return self._prepared(bucket)

    def _prepared(self, bucket: SyncBucket) -> TargetState:
        last = self._last(bucket)
        if last is None:
            strange = [name for name in self._folder.names() if name[0] not in "_."]
            if strange:
                raise ConfigurationError(
                    f"{self.name} holds {strange[0]!r} and no commit of an ingest",
                    remedy="give an empty folder; one that was ingested into needs its "
                    f"{FOLDER} back",
                )
            return TargetState(None)
        if last.columns != self._columns:
            raise ConfigurationError(
                f"{self.name} has the columns {last.columns}, not {self._columns}",
                remedy="give the schema that it was begun with, or another folder",
            )
        is_published = bucket.head(_marker(last.batch)) is not None
        resumed = 0 if is_published else self._publish(bucket, last)
        self._remove_staged(last.batch)
        return TargetState(last, resumed)

    def write(
        self, records: BatchRecords, standing: TargetState, topics: Mapping[str, TopicEnds]
    ) -> WrittenBatch:
        from pyspark.errors import PySparkException

        with closing(self._own.open()) as bucket:
            try:
                commit = self._staged(records.rows(), standing.next_batch, topics)
            except (Py4JJavaError, PySparkException) as error:
                if bucket.head(_key(standing.next_batch)) is None:
                    raise
                # whoever has the batch now may have removed what was staged
                raise IngestConflictError(self.name, standing.next_batch) from error
            self._decide(bucket, commit)
            self._publish(bucket, commit)
        self._remove_staged(commit.batch)
        return WrittenBatch(TargetState(commit), commit.rows, 0)

    def _staged(
        self, rows: "DataFrame", batch: int, topics: Mapping[str, TopicEnds]
    ) -> ParquetCommit:
        empty = ParquetCommit(
            batch=batch,
            attempt=self._new_id(),
            topics=dict(topics),
            columns=self._columns,
            rows=0,
            files=(),
        )
        folder = self._folder / empty.staged_in
        rows.write.partitionBy(DAY).parquet(folder)
        found = [
            file for file in self._folder.files(empty.staged_in) if file.name.endswith(".parquet")
        ]
        files = tuple(
            PublishedFile(
                staged=file.name,
                name=f"{file.name.rpartition('/')[0]}/ingest-{_number(batch)}-{at:05d}.parquet",
                size_bytes=file.size_bytes,
            )
            for at, file in enumerate(found)
        )
        count = self._spark.read.schema(rows.schema).parquet(folder).count()
        return empty.model_copy(update={"rows": count, "files": files})

    def _decide(self, bucket: SyncBucket, commit: ParquetCommit) -> None:
        key = _key(commit.batch)
        if bucket.create(key, [commit.model_dump_json().encode()]):
            return
        if _read(bucket, key).attempt == commit.attempt:
            return  # by an earlier try, whose answer was lost
        self._folder.delete(commit.staged_in)
        raise IngestConflictError(self.name, commit.batch)

    def _publish(self, bucket: SyncBucket, commit: ParquetCommit) -> int:
        """How many files were still staged. Another run may be doing the same. Raises
        `CorruptObjectError` where a file is neither staged nor published, or another one is."""
        left = {file.name for file in self._folder.files(commit.staged_in)}
        waiting = [file for file in commit.files if file.staged in left]
        for folder in {file.name.rpartition("/")[0] for file in waiting}:
            self._folder.make_folder(folder)
        with ThreadPoolExecutor(RENAMES_IN_FLIGHT, thread_name_prefix="publish") as pool:
            sizes = list(pool.map(lambda file: self._publish_file(commit, file), commit.files))
        wrong = [
            (file, size)
            for file, size in zip(commit.files, sizes, strict=True)
            if size != file.size_bytes
        ]
        if wrong:
            raise self._lost(commit, wrong)
        bucket.create(_marker(commit.batch), [])
        return len(waiting)

    def _publish_file(self, commit: ParquetCommit, file: PublishedFile) -> int | None:
        """The size of what is in its place then."""
        size = self._folder.size(file.name)
        if size is None:
            self._folder.rename(f"{commit.staged_in}/{file.staged}", file.name)
            size = self._folder.size(file.name)
        return size

    def _lost(
        self, commit: ParquetCommit, wrong: Sequence[tuple[PublishedFile, int | None]]
    ) -> CorruptObjectError:
        listed = "; ".join(
            f"{file.name} has {file.size_bytes} bytes, and {'none' if size is None else size} are "
            f"there"
            for file, size in wrong[:_LISTED_FILES]
        )
        more = f"; and {len(wrong) - _LISTED_FILES} more" if len(wrong) > _LISTED_FILES else ""
        return CorruptObjectError(
            self._folder / _own_key(_key(commit.batch)),
            0,
            f"batch {commit.batch} is committed, and {len(wrong)} of its {len(commit.files)} files "
            f"are not there: {listed}{more}",
            remedy=f"restore them, there or in {commit.staged_in}; if they were removed on "
            f"purpose, make an empty {_own_key(_marker(commit.batch))}",
        )

    def _remove_staged(self, batch: int) -> None:
        """Of batches up to this one, which are decided. A later one may yet be committed by a run
        that is alive."""
        for name in self._folder.names(STAGED):
            number = name.partition("-")[0]
            if number.isdecimal() and int(number) <= batch:
                self._folder.delete(f"{STAGED}/{name}")

    def _last(self, bucket: SyncBucket) -> ParquetCommit | None:
        keys = sorted(info.key for info in bucket.list(_COMMITS))
        return _read(bucket, keys[-1]) if keys else None


def parse_folder(url: str, *, source: str) -> Location:
    """Of a target; Spark-free. Raises `ConfigurationError`."""
    at = parse_target(url, source=source).location
    strange = sorted(_GLOB.intersection(at.path + at.bucket))
    if strange:
        raise ConfigurationError(
            f"the folder {url!r} has {' '.join(strange)} in its path, which Spark reads as a "
            "pattern",
            remedy="give a folder without { } [ ] * ? and backslashes",
        )
    return at


def _read(bucket: SyncBucket, key: str) -> ParquetCommit:
    try:
        return ParquetCommit.model_validate_json(bytes(bucket.get(key).data))
    except ValueError as error:
        raise CorruptObjectError(key, 0, f"it is not a commit of an ingest: {error}") from error


def _key(batch: int) -> str:
    return f"{_COMMITS}{_number(batch)}.json"


def _marker(batch: int) -> str:
    return f"{_PUBLISHED}{_number(batch)}"


def _own_key(key: str) -> str:
    return f"{FOLDER}/{key}"


def _number(batch: int) -> str:
    return f"{batch:012d}"
