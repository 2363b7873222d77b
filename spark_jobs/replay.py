"""The replay job: topics from the bucket into partitioned Parquet, read without a broker.

    bucketlog spark replay --bucket s3://logs/prod --topics orders --target s3a://lake/orders
    spark-submit …/spark_jobs/replay.py --bucket …      (with PYSPARK_PYTHON set to this Python)

Tasks write the files themselves (`spark_jobs.parquet_lane`); only where values are read as JSON, or
where the target is neither a folder nor S3, do records pass through Spark. Invariant: what is
replayed is decided before Spark starts, and the job fails unless the Parquet that was written holds
exactly the records that the footers promise.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Literal

from pyspark.sql import DataFrame, SparkSession, functions

from bucketlog.log_format.errors import BucketlogError, ConfigurationError, CorruptObjectError
from bucketlog.log_reader.bounds import ENDING, STARTING, STRATEGY
from bucketlog.log_reader.parquet_target import ReplayedPartition, ReplayReport, is_target
from bucketlog.log_reader.parquet_writing import ParquetSettings
from bucketlog.log_reader.replay_plan import ReplayPlan, plan_replay, replay_options
from bucketlog.spark_jobs.parquet_lane import write_parquet
from bucketlog.spark_jobs.session import job_session
from bucketlog.spark_jobs.source import FORMAT, register
from bucketlog.spark_jobs.submitting import run_as_module

EXIT_FAILED = 1
DERIVED = ("day", "hour")
"""Columns that replay adds when it partitions by them, from the record's timestamp in UTC."""


def replay_to_parquet(
    spark: SparkSession,
    source_url: str,
    topics: Sequence[str],
    target: str,
    *,
    partition_by: Sequence[str] = ("topic", "partition"),
    json_schema: str | None = None,
    mode: Literal["errorifexists", "overwrite"] = "errorifexists",
    options: Mapping[str, str] | None = None,
    settings: ParquetSettings | None = None,
    plan: ReplayPlan | None = None,
) -> ReplayReport:
    """Write all records of `topics` at `source_url` as Parquet under `target`.

    `partition_by` names `topic`, `partition`, `day` and `hour`, and of `json_schema` any column.
    With `json_schema` (DDL, as `carrier string, delay double`) the value is read as one JSON object
    and its fields become columns in its place; a value that does not parse fails the job. `options`
    are further options of the source (startingTimestamp, s3.region, …), `settings` of the files
    (its `partition_by` does not count; Spark's own apply where records pass through it). `plan` is
    what `plan_replay` gave for the same source. Raises `ConfigurationError` for
    what does not fit together, `CorruptObjectError` where counts differ.
    """
    if mode not in ("errorifexists", "overwrite"):
        raise ConfigurationError(f"mode {mode!r}", remedy="use errorifexists or overwrite")
    if not topics:
        raise ConfigurationError("no topics to replay", remedy="name at least one")
    wanted = _source_options(source_url, topics, options or {})
    if json_schema is None and is_target(target):
        return write_parquet(
            spark,
            wanted,
            target,
            settings=replace(settings or ParquetSettings(), partition_by=tuple(partition_by)),
            overwrite=mode == "overwrite",
            plan=plan,
        )
    return _through_spark(spark, wanted, target, partition_by, json_schema, mode, plan)


def _through_spark(
    spark: SparkSession,
    options: Mapping[str, str],
    target: str,
    partition_by: Sequence[str],
    json_schema: str | None,
    mode: str,
    plan: ReplayPlan | None,
) -> ReplayReport:
    start = time.monotonic()
    plan = plan or plan_replay(replay_options(options))
    register(spark)
    bounds = {name.lower() for name in (*STARTING, *ENDING, STRATEGY)}
    wanted = {name: value for name, value in options.items() if name.lower() not in bounds}
    log = spark.read.format(FORMAT).options(**wanted, **plan.pinned).load()
    frame = _shape(log, partition_by, json_schema)
    frame.write.mode(mode).partitionBy(*partition_by).parquet(target)
    written = spark.read.schema(frame.schema).parquet(target)
    partitions = _count(written, plan.partitions)
    records = sum(partition.records for partition in partitions)
    if plan.records is not None and records != plan.records:
        raise CorruptObjectError(
            target, 0, f"{records} records are there, {plan.records} were to be replayed"
        )
    return ReplayReport(
        target=target,
        records=records,
        files=len(written.inputFiles()),
        file_bytes=None,
        seconds=round(time.monotonic() - start, 3),
        partitions=partitions,
        withheld_records=plan.withheld_records,
    )


def _source_options(url: str, topics: Sequence[str], more: Mapping[str, str]) -> dict[str, str]:
    return {**more, "subscribe": ",".join(topics), "path": url}


def _shape(log: DataFrame, partition_by: Sequence[str], json_schema: str | None) -> DataFrame:
    frame = log
    if json_schema is not None:
        parsed = functions.from_json(
            log["value"].cast("string"), json_schema, {"mode": "FAILFAST"}
        ).alias("json")
        nested = log.select(parsed)
        fields = nested.select("json.*").columns
        clash = sorted({name.lower() for name in fields} & {name.lower() for name in log.columns})
        if clash:
            raise ConfigurationError(
                f"json_schema has columns of the source: {', '.join(clash)}",
                remedy="leave them out of the schema",
            )
        frame = log.select("*", parsed).select(
            *[name for name in log.columns if name != "value"], "json.*"
        )
    if "day" in partition_by and "day" not in frame.columns:
        frame = frame.withColumn("day", functions.to_date(frame["timestamp"]))
    if "hour" in partition_by and "hour" not in frame.columns:
        frame = frame.withColumn("hour", functions.hour(frame["timestamp"]))
    for name in partition_by:
        if name not in frame.columns or name in ("key", "value", "headers"):
            raise ConfigurationError(
                f"cannot partition by {name!r}",
                remedy=f"choose among {', '.join(dict.fromkeys((*frame.columns, *DERIVED)))}",
            )
    return frame


def _count(
    written: DataFrame, expected: Sequence[tuple[str, int]]
) -> tuple[ReplayedPartition, ...]:
    rows = (
        written.groupBy("topic", "partition")
        .agg(
            functions.count("*").alias("records"),
            functions.min("offset").alias("first"),
            functions.max("offset").alias("last"),
        )
        .collect()
    )
    found = {(row["topic"], row["partition"]): row for row in rows}
    partitions = []
    for topic, partition in expected:
        row = found.pop((topic, partition), None)
        partitions.append(
            ReplayedPartition(topic, partition, 0, None, None)
            if row is None
            else ReplayedPartition(topic, partition, row["records"], row["first"], row["last"])
        )
    if found:
        raise CorruptObjectError("", 0, f"records of {sorted(found)} were not to be replayed")
    return tuple(partitions)


def argument_parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Write topics from the bucket as partitioned Parquet; prints a JSON report.",
    )
    parser.add_argument("--bucket", required=True, help="s3://bucket/prefix or file:///folder")
    parser.add_argument("--topics", required=True, help="names, separated by commas")
    parser.add_argument("--target", required=True, help="a folder Spark can write: path, s3a://…")
    parser.add_argument(
        "--partition-by",
        default="topic,partition",
        help="columns, separated by commas; day and hour are made from the timestamp",
    )
    parser.add_argument("--json-schema", help="read values as JSON: 'carrier string, delay double'")
    parser.add_argument("--overwrite", action="store_true", help="replace what is at the target")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="further options of the source, as startingOffsets=… or s3.endpoint_url=…",
    )
    parser.add_argument("--cores", type=int, default=2, help="of a local session (no spark-submit)")
    return parser


def main(arguments: Sequence[str], *, program: str) -> None:
    """The command line. Under spark-submit it uses that session; else it makes a local one."""
    parser = argument_parser(program)
    given = parser.parse_args(arguments)
    options = {}
    for item in given.option:
        name, separator, value = item.partition("=")
        if not separator:
            parser.error(f"--option {item}: NAME=VALUE is expected")
        options[name] = value

    topics = _names(given.topics)
    try:  # what is wrong with the source is said before Spark starts
        plan = plan_replay(
            replay_options(_source_options(given.bucket, topics, options)),
            cores=lambda: given.cores,
        )
    except BucketlogError as error:
        parser.exit(EXIT_FAILED, f"{parser.prog}: {error}\n")
    spark = job_session(cores=given.cores, name="bucketlog replay")
    try:
        report = replay_to_parquet(
            spark,
            given.bucket,
            topics,
            given.target,
            partition_by=_names(given.partition_by),
            json_schema=given.json_schema,
            mode="overwrite" if given.overwrite else "errorifexists",
            options=options,
            plan=plan,
        )
    except BucketlogError as error:
        parser.exit(EXIT_FAILED, f"{parser.prog}: {error}\n")
    finally:
        spark.stop()
    sys.stdout.write(json.dumps(asdict(report)) + "\n")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    run_as_module(main, module="bucketlog.spark_jobs.replay", verb="bucketlog spark replay")
