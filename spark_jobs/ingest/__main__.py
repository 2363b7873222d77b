"""Ingest, from a command line.

    bucketlog spark ingest --bucket s3://logs/prod --topics orders \
        --schema 'id string, amount double' --parquet s3a://lake/orders
    spark-submit …/spark_jobs/ingest/__main__.py --bucket … --iceberg lake.db.orders

(with PYSPARK_PYTHON set to this Python). Under spark-submit it uses that session; else it makes a
local one.

Exit codes: 0, done; 1, failed: a line on stderr says why and what to do, and what was committed
before stays; 2, wrong usage.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, get_args
from uuid import uuid4

from py4j.protocol import Py4JError

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_reader.tables.ingest_loop import MAX_BATCH_LOG_OFFSETS, IngestReport
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.log_reader.tables.registry_formats.shape_options import (
    ShapeOptions,
    ValueFormatName,
)
from bucketlog.log_reader.tables.rows import BadRecords
from bucketlog.schema_registry.registry_access import RegistryAccess
from bucketlog.spark_jobs.ingest.job import ingest
from bucketlog.spark_jobs.ingest.parquet import parse_folder
from bucketlog.spark_jobs.ingest.rows import IngestShape, parse_shape
from bucketlog.spark_jobs.ingest.spark_failure import in_a_line
from bucketlog.spark_jobs.ingest.target import SparkTarget
from bucketlog.spark_jobs.submitting import run_as_module
from bucketlog.tiered_storage.backends.location import S3Options, parse_s3_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXIT_FAILED = 1


def argument_parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Ingest topics into Parquet by day or an Iceberg table, each record exactly "
        "once. Values are JSON, or come from a schema registry. Run the command again to continue. "
        "Prints a JSON report.",
    )
    parser.add_argument("--bucket", required=True, help="s3://bucket/prefix or file:///folder")
    parser.add_argument("--topics", required=True, help="names, separated by commas")
    _add_options_of_values(parser)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--parquet", metavar="FOLDER", help="path, file:///… or s3a://…")
    target.add_argument("--iceberg", metavar="TABLE", help="catalog.database.table")
    parser.add_argument(
        "--day-from", metavar="FIELD", help="a timestamp or date of the schema; default: the record"
    )
    parser.add_argument(
        "--max-batch-offsets",
        type=int,
        default=MAX_BATCH_LOG_OFFSETS,
        help="of all partitions in one commit; default: %(default)s",
    )
    parser.add_argument(
        "--fail-on-data-loss",
        choices=("true", "false"),
        default="true",
        help="false: continue where retention has deleted records that were not ingested",
    )
    parser.add_argument(
        "--bad-records",
        choices=get_args(BadRecords),
        help="values that do not fit the schema: dead-letter puts them into a separate table "
        "(default for Iceberg), fail ends the run (default for Parquet), null makes fields null",
    )
    parser.add_argument(
        "--dead-letters", metavar="TABLE", help="database.table; default: TABLE_dead_letters"
    )
    for name, of in (
        ("option", "of the source, as startingTimestamp=… or s3.endpoint_url=…"),
        ("target-option", "of the folder's S3 for the driver's own requests: endpoint_url=…"),
        ("conf", "of a local Spark session, as spark.jars=… (no spark-submit)"),
    ):
        parser.add_argument(f"--{name}", action="append", default=[], metavar="NAME=VALUE", help=of)
    parser.add_argument("--cores", type=int, default=2, help="of a local session")
    return parser


def _add_options_of_values(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schema",
        help="fields of the values: 'id string, amount double'; JSON values need this option; "
        "default with a registry: the fields of all versions of the subjects",
    )
    parser.add_argument(
        "--value-format",
        choices=get_args(ValueFormatName),
        default="json",
        help="json, or registry for Avro, Protobuf and JSON Schema in Confluent's wire format",
    )
    parser.add_argument(
        "--registry-url",
        metavar="URL",
        help="address of the schema registry; default: the variable "
        "BUCKETLOG_SCHEMA_REGISTRY_URL; the login is in BUCKETLOG_SCHEMA_REGISTRY_AUTH",
    )
    parser.add_argument(
        "--registry-ca-file",
        metavar="FILE",
        type=Path,
        help="authorities to trust at the registry, in PEM, at the same path on each "
        "executor; default: the variable BUCKETLOG_SCHEMA_REGISTRY_CA_FILE",
    )
    parser.add_argument(
        "--subject",
        action="append",
        default=[],
        metavar="NAME",
        help="subject with the schemas of the values; may be repeated; default: TOPIC-value of "
        "each topic",
    )
    parser.add_argument(
        "--message",
        metavar="NAME",
        help="full name of the Protobuf message; default: the first of each schema",
    )
    parser.add_argument(
        "--epoch-unit",
        action="append",
        default=[],
        metavar="[FIELD=]UNIT",
        help="of timestamps that are numbers: seconds, milliseconds or microseconds; without it, "
        "numbers are bad values",
    )
    parser.add_argument(
        "--epoch-range",
        metavar="DAY,DAY",
        default="1971-01-01,2100-01-01",
        help="the earliest and the first too late day of such timestamps; default: %(default)s",
    )


def main(arguments: Sequence[str], *, program: str) -> None:
    from pyspark.errors import PySparkException

    from bucketlog.spark_jobs.session import job_session

    parser = argument_parser(program)
    given = parser.parse_args(arguments)
    options = _pairs(parser, "option", given.option)
    conf = _pairs(parser, "conf", given.conf)
    topics = [name.strip() for name in given.topics.split(",") if name.strip()]
    try:
        shape = shape_of(given, topics)
    except ConfigurationError as error:
        parser.error(str(error))
    spark = None
    try:
        # what is wrong with the source or the folder is said before Spark starts
        s3 = parse_s3_options(_pairs(parser, "target-option", given.target_option))
        if given.parquet:
            parse_folder(given.parquet, source=given.bucket)
        log = IngestedLog(given.bucket, topics, options)
        log.now(is_first=False, fail_on_data_loss=False)
        spark = job_session(cores=given.cores, name="bucketlog ingest", config=conf)
        report = ingest(
            spark,
            log,
            _target(spark, given, s3),
            shape(),
            max_batch_offsets=given.max_batch_offsets,
            fail_on_data_loss=given.fail_on_data_loss == "true",
        )
    except BucketlogError as error:
        parser.exit(EXIT_FAILED, f"{parser.prog}: {error}\n")
    except (Py4JError, PySparkException) as error:
        parser.exit(EXIT_FAILED, f"{parser.prog}: {in_a_line(str(error))}\n")
    except OSError as error:
        parser.exit(
            EXIT_FAILED, f"{parser.prog}: {error} (see that it may be read and written to)\n"
        )
    finally:
        if spark is not None:
            spark.stop()
    sys.stdout.write(json.dumps(_as_json(report)) + "\n")


def _target(spark: "SparkSession", given: argparse.Namespace, s3: S3Options) -> SparkTarget:
    if given.iceberg:
        from bucketlog.spark_jobs.ingest.iceberg import IcebergTarget

        return IcebergTarget(spark, given.iceberg, new_id=_new_id, dead_letters=given.dead_letters)
    from bucketlog.spark_jobs.ingest.parquet import ParquetTarget

    return ParquetTarget(spark, given.parquet, source=given.bucket, new_id=_new_id, s3=s3)


def shape_of(given: argparse.Namespace, topics: Sequence[str]) -> Callable[[], IngestShape]:
    """Return a function that returns the shape of the rows, in a session. If the columns come from
    a registry, the function asks the registry. Raises `ConfigurationError`. The function raises
    `ConfigurationError` and `SchemaRegistryError`."""
    bad: BadRecords = given.bad_records or ("dead-letter" if given.iceberg else "fail")
    is_registry = given.value_format == "registry"
    access = None
    if is_registry:
        access = RegistryAccess.of_environment(given.registry_url, given.registry_ca_file)
    options = ShapeOptions(
        schema=given.schema,
        value_format=given.value_format,
        registry=access,
        subjects=given.subject,
        message=given.message,
        day_from=given.day_from,
        epoch_units=given.epoch_unit,
        epoch_range=given.epoch_range,
    )
    if is_registry:
        shapes = options.shapes(topics, bad)
        return lambda: IngestShape.of(shapes())
    schema, times = options.json_schema(), options.times()
    return lambda: parse_shape(schema, given.day_from, times=times, bad_records=bad)


def _new_id() -> str:
    return uuid4().hex


def _as_json(report: IngestReport) -> dict[str, object]:
    return {**asdict(report), "gaps": [gap._asdict() for gap in report.gaps]}


def _pairs(parser: argparse.ArgumentParser, name: str, given: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for item in given:
        key, separator, value = item.partition("=")
        if not separator:
            parser.error(f"--{name}: NAME=VALUE is expected")  # `item` may be a secret
        if key in pairs:
            parser.error(f"--{name} {key} is given twice")
        pairs[key] = value
    return pairs


if __name__ == "__main__":
    run_as_module(main, module="bucketlog.spark_jobs.ingest", verb="bucketlog spark ingest")
