"""The folder that a replay to Parquet writes: a file system's or S3's. Spark-free.

Invariants: nothing is written over data that is there, unless that is asked for; then the old files
go once the new ones are complete. `_SUCCESS` stands where every file that the tasks told of is
there, with the records they told of, which are those that the plan promised.
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

from bucketlog.errors import BucketlogError, ConfigurationError, CorruptObjectError
from spark_jobs.parquet_writing import Written
from tiered_storage.backends.file import TEMPORARY, FileBucket
from tiered_storage.backends.s3_options import S3Options
from tiered_storage.bucket import Suffix, SyncBucket
from tiered_storage.location import PATIENCE_MS, Location, parse_location
from tiered_storage.retry import RetryPolicy
from tiered_storage.retry_sync import RetrySyncBucket

SUCCESS = "_SUCCESS"
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
    """`file_bytes` is None where Spark wrote the files."""

    target: str
    records: int
    files: int
    file_bytes: int | None
    seconds: float
    partitions: tuple[ReplayedPartition, ...]


def report_of(
    target: str,
    written: Sequence[Written],
    partitions: tuple[ReplayedPartition, ...],
    seconds: float,
) -> ReplayReport:
    sizes = {row.file: row.file_bytes for row in written}
    return ReplayReport(
        target=target,
        records=sum(partition.records for partition in partitions),
        files=len(sizes),
        file_bytes=sum(sizes.values()),
        seconds=round(seconds, 3),
        partitions=partitions,
    )


@dataclass(frozen=True, slots=True)
class Target:
    """Travels to tasks; each opens it for itself."""

    url: str
    location: Location
    s3: S3Options | None

    def open(self) -> SyncBucket:
        """Without a request; what may pass is tried again. The caller closes it."""
        if self.location.scheme == "file":
            return FileBucket(Path(self.location.path))
        from tiered_storage.backends.s3_sync import SyncS3Bucket

        prefix = f"{self.location.path}/" if self.location.path else ""
        inner = SyncS3Bucket(self.location.bucket, prefix, self.s3 or S3Options())
        return RetrySyncBucket(inner, RetryPolicy(give_up_after_ms=PATIENCE_MS), random=Random())

    def tidy(self) -> None:
        """Remove the folder in which files were made, once nobody makes one."""
        if self.location.scheme == "file":
            with suppress(OSError):
                (Path(self.location.path) / TEMPORARY).rmdir()


def is_target(url: str) -> bool:
    """Whether `parse_target` takes it: a path, file:, s3:// or s3a://; Spark knows more."""
    scheme, separator, _ = url.partition(":/")
    return not separator or scheme.lower() in ("file", "s3", "s3a")


def parse_target(url: str, *, source: str, s3: S3Options | None = None) -> Target:
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
    return Target(url, location, s3)


def _within(inner: Location, outer: Location) -> bool:
    if (inner.scheme, inner.bucket) != (outer.scheme, outer.bucket):
        return False
    return f"{inner.path}/".startswith(f"{outer.path}/" if outer.path else "")


class Replacement:
    """A target that is being written: what was there, and what becomes of it."""

    def __init__(self, bucket: SyncBucket, target: Target, old: frozenset[str]) -> None:
        self.bucket = bucket
        self.target = target
        self._old = old

    def verify(
        self,
        written: Sequence[Written],
        partitions: Iterable[tuple[str, int]],
        expected: int | None,
    ) -> tuple[ReplayedPartition, ...]:
        """Hold what is in the target against what tasks told and the plan promised.

        The target is listed, and every new file's footer read. Raises `CorruptObjectError`.
        """
        told: dict[str, list[Written]] = {}
        for row in written:
            told.setdefault(row.file, []).append(row)
        there = self._new_files()
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
        return self._by_partition(written, partitions)

    def complete(self) -> None:
        """The new files are all there is, and `_SUCCESS` says so."""
        self.bucket.delete(sorted(self._old))
        self.bucket.create(SUCCESS, [])

    def give_up(self) -> None:
        """Remove what was written: half a replay is worse than none."""
        self.bucket.delete(sorted(self._new_files()))

    def _new_files(self) -> dict[str, int]:
        return {
            info.key: info.size_bytes for info in self.bucket.list("") if info.key not in self._old
        }

    def _records_in(self, key: str) -> int:
        body = self.bucket.get(key, Suffix(FOOTER_BYTES))
        tail = bytes(body.data)
        length = int.from_bytes(tail[-_FOOTER_END_BYTES:-4], "little") + _FOOTER_END_BYTES
        if len(tail) < length <= body.object_size_bytes:
            tail = bytes(self.bucket.get(key, Suffix(length)).data)
        try:
            return int(pq.read_metadata(io.BytesIO(tail)).num_rows)
        except pa.ArrowInvalid as error:
            raise _wrong(self.target, key, f"it is no Parquet: {error}") from error

    def _by_partition(
        self, written: Sequence[Written], partitions: Iterable[tuple[str, int]]
    ) -> tuple[ReplayedPartition, ...]:
        rows: dict[tuple[str, int], list[Written]] = {place: [] for place in partitions}
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
def replacing(target: Target, *, overwrite: bool) -> Iterator[Replacement]:
    """Refuse a target that holds anything (with `overwrite`: anything but Parquet), and let the
    block write and verify. Where it ends well the old files go; where it fails the new ones."""
    with closing(target.open()) as bucket:
        old = frozenset(info.key for info in bucket.list(""))
        if old and not overwrite:
            raise ConfigurationError(
                f"{target.url} holds files already, such as {min(old)}",
                remedy="give another folder, or say overwrite",
            )
        for key in sorted(old):
            if not _is_replaceable(key.rpartition("/")[2]):
                raise ConfigurationError(
                    f"{target.url} holds {key!r}, which is no Parquet: it is not overwritten",
                    remedy="give a folder that holds Parquet alone",
                )
        if SUCCESS in old:
            bucket.delete([SUCCESS])
        replacement = Replacement(bucket, target, old - {SUCCESS})
        try:
            yield replacement
            replacement.complete()
        except BaseException as error:
            try:
                replacement.give_up()
            except BucketlogError as failure:
                error.add_note(f"what was written to {target.url} is still there: {failure}")
            raise
    target.tidy()


def _is_replaceable(name: str) -> bool:
    """Parquet and Spark's marker, and the checksums that Hadoop puts beside both."""
    if name.startswith(".") and name.endswith(".crc"):
        name = name[1:].removesuffix(".crc")
    return name.endswith(".parquet") or name == SUCCESS


def _wrong(target: Target, key: str, what: str) -> CorruptObjectError:
    return CorruptObjectError(
        f"{target.url.rstrip('/')}/{key}",
        0,
        what,
        remedy="let nobody else write there, and replay again",
    )
