"""`bucketlog replay`: a topic straight from the bucket, as lines, as files, into a topic."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bucketlog.cli.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    BucketUrl,
    EncryptionKeyFile,
    Partitions,
)
from bucketlog.cli.security import connected, secured
from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.extras import check_installed
from bucketlog.terminal import counted, note, say_json

if TYPE_CHECKING:
    from bucketlog.log_reader.parquet_target import ReplayReport
    from bucketlog.log_reader.parquet_writing import ParquetSettings
    from bucketlog.replaying.record_bar import Rows
    from bucketlog.replaying.replay import Replay

LOCAL_BYTES_MAX = 8 * 1024 * 1024 * 1024
MIB = 1024 * 1024
PARTITION_BY = "topic,partition"


class Engine(StrEnum):
    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class ReplayFormat(StrEnum):
    PARQUET = "parquet"
    JSONL = "jsonl"


When = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN", help="Time, such as 2026-01-31T12:00Z, or how far back: 7d, 2h, 30m."
    ),
]
Offsets = Annotated[
    str | None,
    typer.Option(
        metavar="LIST", help="Offsets as PARTITION:FIRST-END, END excluded, such as 0:120,1:7-90."
    ),
]
Uncommitted = Annotated[
    bool, typer.Option("--uncommitted", help="Records of aborted transactions, too.")
]
To = Annotated[
    str | None, typer.Option(metavar="TARGET", help="A folder or s3://… (parquet), a file (jsonl).")
]
FileFormat = Annotated[
    ReplayFormat | None,
    typer.Option(help="Format of the output; default: parquet with --to, else jsonl on stdout."),
]
ToTopic = Annotated[
    str | None, typer.Option(metavar="TOPIC", help="Send the records to it, by a broker (-b).")
]
ByKey = Annotated[
    bool,
    typer.Option(
        "--by-key", help="Choose partitions of --to-topic by key; default: keep the numbers."
    ),
]
PartitionBy = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="Folders of Parquet files: some of topic, partition, day, hour. Default: topic, "
        "partition.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS", help="Columns of Parquet files, comma-separated; default: all."
    ),
]
Codec = Annotated[
    Literal["none", "snappy", "zstd", "lz4", "gzip"] | None,
    typer.Option(help="Codec; default: snappy for parquet, none for --to-topic."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
ByEngine = Annotated[
    Engine,
    typer.Option(help="Program that writes Parquet files: this process, or Spark on this machine."),
]
LocalBytesMax = Annotated[
    int, typer.Option(min=0, help="Number of stored bytes above which --engine auto uses Spark.")
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Number of threads; default: one per core.")
]


@secured
def replay(
    bucket: BucketUrl,
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    since: When = None,
    until: When = None,
    offsets: Offsets = None,
    partition: Partitions = None,
    uncommitted: Uncommitted = False,
    to: To = None,
    format: FileFormat = None,  # noqa: A002 - the option's name
    to_topic: ToTopic = None,
    by_key: ByKey = False,
    partition_by: PartitionBy = None,
    columns: Columns = None,
    compression: Codec = None,
    overwrite: Overwrite = False,
    engine: ByEngine = Engine.AUTO,
    local_bytes_max: LocalBytesMax = LOCAL_BYTES_MAX,
    threads: Threads = None,
    encryption_key_file: EncryptionKeyFile = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Read a topic from the bucket, without a broker, and print, write or send what it holds."""
    shape = format or (ReplayFormat.PARQUET if to is not None else ReplayFormat.JSONL)
    _check(to, to_topic, shape, engine, by_key=by_key, given=format)
    _check_reach(
        to,
        shape,
        {"--partition-by": partition_by, "--columns": columns},
        compression=None if to_topic is not None else compression,
        overwrite=overwrite,
    )
    from bucketlog.replaying.replay import replay as replay_of
    from bucketlog.replaying.selection import parse_offsets

    made = replay_of(
        bucket,
        topic,
        since=since,
        until=until,
        offsets=None if offsets is None else parse_offsets(offsets),
        partitions=partition or None,
        columns=None if columns is None else _names(columns),
        isolation="read_uncommitted" if uncommitted else "read_committed",
        encryption_key_file=encryption_key_file,
        threads=threads or os.cpu_count() or 1,
    )
    with sigterm_interrupts():
        if to_topic is not None:
            _send(made, to_topic, bootstrap, by_key=by_key, compression=compression or "none")
        elif to is None:
            with _progress(made) as passed:
                made.to_jsonl(sys.stdout.buffer, on_rows=passed)
        elif shape is ReplayFormat.JSONL:
            with _progress(made) as passed:
                count = made.to_jsonl(to, overwrite=overwrite, on_rows=passed)
            note(f"{counted(count, 'record')} written to {to}")
        else:
            from bucketlog.log_reader.parquet_writing import ParquetSettings

            settings = ParquetSettings(
                tuple(_names(partition_by or PARTITION_BY)), compression or "snappy"
            )
            chosen = _choose(engine, made.plan.stored_bytes, local_bytes_max)
            run = _on_spark if chosen is Engine.SPARK else _locally
            report = run(made, to, settings, overwrite)
            say_json({"engine": chosen.value, **asdict(report)})


def _check(
    to: str | None,
    to_topic: str | None,
    shape: ReplayFormat,
    engine: Engine,
    *,
    by_key: bool,
    given: ReplayFormat | None,
) -> None:
    if to is not None and to_topic is not None:
        raise ConfigurationError("--to and --to-topic", remedy="give one of them")
    if to_topic is not None and given is not None:
        raise ConfigurationError("--format with --to-topic", remedy="leave it out")
    if by_key and to_topic is None:
        raise ConfigurationError("--by-key without --to-topic", remedy="leave it out")
    if to is None and shape is ReplayFormat.PARQUET:
        raise ConfigurationError("--format parquet without --to", remedy="name a folder with --to")
    if engine is Engine.SPARK and (to is None or shape is not ReplayFormat.PARQUET):
        raise ConfigurationError(
            "--engine spark writes Parquet alone", remedy="add --to, or leave --engine out"
        )
    if shape is ReplayFormat.JSONL and to is not None and "://" in to:
        raise ConfigurationError(
            f"--to {to} with --format jsonl", remedy="name a file of this machine, or use parquet"
        )


def _check_reach(
    to: str | None,
    shape: ReplayFormat,
    of_parquet: Mapping[str, str | None],
    *,
    compression: str | None,
    overwrite: bool,
) -> None:
    """A flag that would do nothing is refused."""
    if overwrite and to is None:
        raise ConfigurationError("--overwrite without --to", remedy="leave it out, or add --to")
    if to is not None and shape is ReplayFormat.PARQUET:
        return
    alien = {**of_parquet, "--compression": compression}
    for flag in (flag for flag, given in alien.items() if given is not None):
        raise ConfigurationError(
            f"{flag} is for Parquet", remedy="leave it out, or write Parquet with --to FOLDER"
        )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _choose(engine: Engine, stored_bytes: int, local_bytes_max: int) -> Engine:
    """Says which, and why."""
    size, limit = f"{stored_bytes / MIB:,.1f} MiB", f"{local_bytes_max / MIB:,.1f} MiB"
    if engine is not Engine.AUTO:
        note(f"engine: {engine.value}, as asked; {size} are stored")
        return engine
    if stored_bytes <= local_bytes_max:
        note(f"engine: local, as {size} are stored, at most {limit} (--local-bytes-max)")
        return Engine.LOCAL
    if find_spec("pyspark") is None:
        note(f"engine: local, as Spark is not installed; {size} are stored")
        return Engine.LOCAL
    note(f"engine: spark, as {size} are stored, more than {limit} (--local-bytes-max)")
    return Engine.SPARK


def _locally(
    made: "Replay[bytes, bytes]", target: str, settings: "ParquetSettings", overwrite: bool
) -> "ReplayReport":
    with _progress(made) as passed:
        return made.to_parquet(
            target,
            partition_by=settings.partition_by,
            settings=settings,
            overwrite=overwrite,
            on_rows=passed,
        )


def _on_spark(
    made: "Replay[bytes, bytes]", target: str, settings: "ParquetSettings", overwrite: bool
) -> "ReplayReport":
    check_installed("spark")
    from bucketlog.demo.replay import QUIET
    from bucketlog.spark_jobs.parquet_lane import write_parquet
    from bucketlog.spark_jobs.session import local_session

    quiet = f"-Dlog4j2.configurationFile={QUIET.as_uri()}"
    plan = made.plan  # what is wrong with the source is said before Spark starts
    spark = local_session(
        cores=os.cpu_count() or 1,
        name="bucketlog replay",
        config={"spark.driver.extraJavaOptions": quiet},
    )
    try:
        return write_parquet(
            spark,
            {},
            target,
            columns=made.chosen_columns,
            settings=settings,
            overwrite=overwrite,
            plan=plan,
        )
    finally:
        spark.stop()


def _send(
    made: "Replay[bytes, bytes]",
    target: str,
    bootstrap: str,
    *,
    by_key: bool,
    compression: Literal["none", "snappy", "zstd", "lz4", "gzip"],
) -> None:
    from bucketlog.replaying.to_topic import Copy

    made.plan  # noqa: B018 - what is wrong with the source is said before a broker is asked
    copy = Copy(made, target, by_key=by_key)
    with connected(bootstrap) as log:
        try:
            with _progress(made) as passed:
                copy.run(log, compression=compression, on_rows=passed)
        except ConfigurationError:
            raise
        except (BucketlogError, KeyboardInterrupt):
            note(
                f"{counted(copy.copied, 'record')} were acknowledged by {target}; continue with "
                f"--offsets {copy.resume} (what was under way may come twice)"
            )
            raise
    note(f"{counted(copy.copied, 'record')} written to {target}")


@contextmanager
def _progress(made: "Replay[bytes, bytes]") -> "Iterator[Rows]":
    """Records, MB and share, on a terminal."""
    from bucketlog.replaying.record_bar import expected_records, record_bar

    with record_bar(made.topic.name, expected_records(made.plan)) as passed:
        yield passed
