"""The folder that a replay to Parquet writes: a file system's or S3's. Spark-free.

Invariants: nothing is written over data that is there, unless that is asked for; then the old
files, which are those listed before the job wrote, go once the new ones are verified: at any moment
all of the old or all of the new are there. A job that fails before that removes its own files,
known by their names, and nothing else. `_SUCCESS` is where every file that the tasks told of is
there, with the records they told of, which are those that the plan promised. One job at a time
writes: it holds the target by `_REPLAYING`, which is created once.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    CorruptObjectError,
    ObjectNotFoundError,
)
from bucketlog.log_reader.parquet_writing import FileRecords, is_of_job
from bucketlog.tiered_storage.backends.file import TEMPORARY, FileBucket
from bucketlog.tiered_storage.backends.location import PATIENCE_MS, Location, parse_location
from bucketlog.tiered_storage.backends.s3_options import S3Options
from bucketlog.tiered_storage.bucket import Suffix, SyncBucket
from bucketlog.tiered_storage.retry_steps import bucket_backoff
from bucketlog.tiered_storage.retry_sync import RetrySyncBucket

SUCCESS = "_SUCCESS"
CLAIM = "_REPLAYING"
"""Holds the id of the job that writes; Spark reads no file whose name begins with "_"."""
REQUESTS_IN_FLIGHT = 16
FOOTER_BYTES = 64 * 1024
_FOOTER_END_BYTES = 8
_SCHEMES = ("file", "s3")


@dataclass(frozen=True, slots=True)
class ReplayedPartition:
    """`first_offset` and `last_offset` are None where there was no record."""

    topic: str
    partition: int
    records: int
    first_offset: int | None
    last_offset: int | None


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """`file_bytes` is None if Spark wrote the files. `withheld_records` counts committed records
    that were not replayed, because a broker might still have been writing offsets below them."""

    target: str
    records: int
    files: int
    file_bytes: int | None
    seconds: float
    partitions: tuple[ReplayedPartition, ...]
    withheld_records: int


def report_of(
    target: str,
    written: Sequence[FileRecords],
    partitions: tuple[ReplayedPartition, ...],
    seconds: float,
    *,
    withheld_records: int,
) -> ReplayReport:
    sizes = {row.file: row.file_bytes for row in written}
    return ReplayReport(
        target=target,
        records=sum(partition.records for partition in partitions),
        files=len(sizes),
        file_bytes=sum(sizes.values()),
        seconds=round(seconds, 3),
        partitions=partitions,
        withheld_records=withheld_records,
    )


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """Travels to tasks; each opens it for itself."""

    url: str
    location: Location
    s3: S3Options | None

    def open(self) -> SyncBucket:
        """Without a request; what may pass is tried again. The caller closes it."""
        if self.location.scheme == "file":
            return FileBucket(Path(self.location.path), is_output=True)
        from bucketlog.tiered_storage.backends.s3_sync import SyncS3Bucket

        prefix = f"{self.location.path}/" if self.location.path else ""
        inner = SyncS3Bucket(self.location.bucket, prefix, self.s3 or S3Options())
        return RetrySyncBucket(inner, bucket_backoff(PATIENCE_MS), random=Random())

    def tidy(self) -> None:
        """Remove the folder in which files were made, once nobody makes one."""
        if self.location.scheme == "file":
            with suppress(OSError):
                (Path(self.location.path) / TEMPORARY).rmdir()


def is_target(url: str) -> bool:
    """Whether `parse_target` takes it: a path, file:, s3:// or s3a://; Spark knows more."""
    scheme, separator, _ = url.partition(":/")
    return not separator or scheme.lower() in ("file", "s3", "s3a")


def parse_target(url: str, *, source: str, s3: S3Options | None = None) -> ReplayTarget:
    """A path, file:///folder, s3://bucket/prefix or s3a://…; not within the log `source`.

    Raises `ConfigurationError`.
    """
    scheme, _, rest = url.partition(":")
    plain = url
    if scheme.lower() == "s3a":
        plain = f"s3:{rest}"
    elif scheme.lower() == "file" and not rest.startswith("//"):
        plain = f"file://{rest}"  # as Hadoop writes it: file:/folder
    location = parse_location(plain)
    if location.scheme not in _SCHEMES:
        raise ConfigurationError(
            f"cannot write Parquet to {url!r}", remedy="give a folder, file:///…, s3://… or s3a://…"
        )
    log = parse_location(source)
    if _within(location, log):
        raise ConfigurationError(
            f"{url!r} lies within the log {source!r}", remedy="give a folder beside it"
        )
    return ReplayTarget(url, location, s3)


def _within(inner: Location, outer: Location) -> bool:
    if (inner.scheme, inner.bucket) != (outer.scheme, outer.bucket):
        return False
    return f"{inner.path}/".startswith(f"{outer.path}/" if outer.path else "")


class Replacement:
    """A target that is being written: what was there, and what becomes of it."""

    def __init__(
        self, bucket: SyncBucket, target: ReplayTarget, job: str, old: frozenset[str]
    ) -> None:
        self.bucket = bucket
        self.target = target
        self._job = job
        self._old = old
        self._verified = False

    def verify(
        self,
        written: Sequence[FileRecords],
        partitions: Iterable[tuple[str, int]],
        expected: int | None,
    ) -> tuple[ReplayedPartition, ...]:
        """Compare what is in the target with what tasks reported and the plan promised.

        The target is listed, and every new file's footer read. Raises `CorruptObjectError`.
        """
        told: dict[str, list[FileRecords]] = {}
        for row in written:
            told.setdefault(row.file, []).append(row)
        there = {
            info.key: info.size_bytes
            for info in self.bucket.list("")
            if info.key != CLAIM and info.key not in self._old
        }
        for key in sorted(there.keys() ^ told.keys()):
            raise _wrong(self.target, key, "it is missing" if key in told else "no task wrote it")
        with ThreadPoolExecutor(REQUESTS_IN_FLIGHT, thread_name_prefix="bucketlog-footer") as pool:
            found = pool.map(self._records_in, told)
            for (key, rows), records in zip(told.items(), found, strict=True):
                wanted = sum(row.records for row in rows)
                if there[key] != rows[0].file_bytes or records != wanted:
                    raise _wrong(
                        self.target,
                        key,
                        f"it has {records} records in {there[key]} bytes, "
                        f"{wanted} in {rows[0].file_bytes} were written",
                    )
        total = sum(row.records for row in written)
        if expected is not None and total != expected:
            raise CorruptObjectError(
                self.target.url, 0, f"{total} records are there, {expected} were to be replayed"
            )
        found_partitions = self._by_partition(written, partitions)
        self._verified = True
        return found_partitions

    def complete(self) -> None:
        """The new files are all there is, and `_SUCCESS` says so. They are verified before."""
        assert self._verified
        self.bucket.delete(sorted(self._old))
        self.bucket.create(SUCCESS, [])

    def give_up(self) -> str:
        """Remove what this job wrote, as half a replay is worse than none; what is verified stays.

        Returns what is left to do, if anything is.
        """
        try:
            there = {info.key for info in self.bucket.list("")}
            if not self._verified:
                self.bucket.delete(sorted(key for key in there if is_of_job(key, self._job)))
                return ""
        except BucketlogError as failure:
            if not self._verified:
                return f"what was written to {self.target.url} is still there: {failure}"
            there = set(self._old)
        return self._left_to_do(there)

    def _left_to_do(self, there: set[str]) -> str:
        steps = []
        if old := sorted(self._old & there):
            steps.append(f"remove the {len(old)} old files, from {old[0]} to {old[-1]}")
        if SUCCESS not in there:
            steps.append(f"put an empty {SUCCESS} there")
        if not steps:
            return ""
        return (
            f"the new files in {self.target.url} are complete and verified, their names end in "
            f"-{self._job}.parquet; what is left to do: {', then '.join(steps)}"
        )

    def _records_in(self, key: str) -> int:
        body = self.bucket.get(key, Suffix(FOOTER_BYTES))
        tail = bytes(body.data)
        length = int.from_bytes(tail[-_FOOTER_END_BYTES:-4], "little") + _FOOTER_END_BYTES
        if len(tail) < length <= body.object_size_bytes:
            tail = bytes(self.bucket.get(key, Suffix(length)).data)
        try:
            return int(pq.read_metadata(io.BytesIO(tail)).num_rows)
        except pa.ArrowInvalid as error:
            raise _wrong(self.target, key, f"it is not Parquet: {error}") from error

    def _by_partition(
        self, written: Sequence[FileRecords], partitions: Iterable[tuple[str, int]]
    ) -> tuple[ReplayedPartition, ...]:
        rows: dict[tuple[str, int], list[FileRecords]] = {place: [] for place in partitions}
        for row in written:
            if (row.topic, row.partition) not in rows:
                what = f"it has records of {row.topic}-{row.partition}, which was not to be read"
                raise _wrong(self.target, row.file, what)
            rows[row.topic, row.partition].append(row)
        return tuple(
            ReplayedPartition(
                topic,
                partition,
                sum(row.records for row in found),
                min((row.first_offset for row in found), default=None),
                max((row.last_offset for row in found), default=None),
            )
            for (topic, partition), found in rows.items()
        )


@contextmanager
def replacing(target: ReplayTarget, job: str, *, overwrite: bool) -> Iterator[Replacement]:
    """Refuse a target that holds anything (with `overwrite`: anything but Parquet) or that another
    job writes, and let the block write, under names of `job`, and verify. Where it ends well the
    old files go; where it fails before it has verified, what the job wrote."""
    with closing(target.open()) as bucket:
        _check_old(bucket, target, overwrite=overwrite)
        with _claimed(bucket, target, job):
            old = _check_old(bucket, target, overwrite=overwrite, job=job)
            if SUCCESS in old:
                bucket.delete([SUCCESS])
            replacement = Replacement(bucket, target, job, old - {SUCCESS})
            try:
                yield replacement
                replacement.complete()
            except BaseException as error:
                if left := replacement.give_up():
                    error.add_note(left)
                raise
    target.tidy()


def _check_old(
    bucket: SyncBucket, target: ReplayTarget, *, overwrite: bool, job: str | None = None
) -> frozenset[str]:
    """What is there and may go; `job` has its claim there already. Raises `ConfigurationError`."""
    old = frozenset(info.key for info in bucket.list(""))
    if job is not None:
        old -= {CLAIM}
    elif CLAIM in old:
        raise _held(target)
    if old and not overwrite:
        raise ConfigurationError(
            f"{target.url} holds files already, such as {min(old)}",
            remedy="give another folder, or overwrite it (--overwrite, overwrite=True)",
        )
    for key in sorted(old):
        if not _is_replaceable(key.rpartition("/")[2]):
            raise ConfigurationError(
                f"{target.url} holds {key!r}, which is not Parquet: it is not overwritten",
                remedy="give a folder that holds Parquet alone",
            )
    return old


@contextmanager
def _claimed(bucket: SyncBucket, target: ReplayTarget, job: str) -> Iterator[None]:
    """Raises `ConfigurationError` where another job holds the target."""
    try:
        if not bucket.create(CLAIM, [job.encode()]) and not _is_held_by(bucket, job):
            raise _held(target)
        yield
    except BaseException as error:
        try:
            _release(bucket, job)
        except BucketlogError as failure:
            error.add_note(f"{CLAIM} is still in {target.url}, remove it: {failure}")
        raise
    _release(bucket, job)


def _release(bucket: SyncBucket, job: str) -> None:
    if _is_held_by(bucket, job):
        bucket.delete([CLAIM])


def _is_held_by(bucket: SyncBucket, job: str) -> bool:
    try:
        return bytes(bucket.get(CLAIM).data) == job.encode()
    except ObjectNotFoundError:
        return False


def _held(target: ReplayTarget) -> ConfigurationError:
    return ConfigurationError(
        f"another replay writes to {target.url}, or was killed there: it holds {CLAIM}",
        remedy=f"let it end; where none runs any more, remove {CLAIM}",
    )


def _is_replaceable(name: str) -> bool:
    """Parquet and Spark's marker, and the checksums that Hadoop puts beside both."""
    if name.startswith(".") and name.endswith(".crc"):
        name = name[1:].removesuffix(".crc")
    return name.endswith(".parquet") or name == SUCCESS


def _wrong(target: ReplayTarget, key: str, what: str) -> CorruptObjectError:
    return CorruptObjectError(
        f"{target.url.rstrip('/')}/{key}",
        0,
        what,
        remedy="let nobody else write there, and replay again",
    )
