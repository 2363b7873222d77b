"""What `bucketlog spark ingest` says in a line, without Spark."""

import re
from pathlib import Path

import pytest

from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    InvalidDataError,
    SchemaRegistryUnavailableError,
)
from bucketlog.log_reader.tables.registry_formats.values import NewerSchemaError
from bucketlog.spark_jobs import session
from bucketlog.spark_jobs.ingest import __main__ as command
from bucketlog.spark_jobs.ingest.parquet import parse_folder
from bucketlog.spark_jobs.ingest.spark_failure import error_of_values, in_a_line
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.written_log import WrittenLog

NO_CATALOG = """[REQUIRES_SINGLE_PART_NAMESPACE] spark_catalog requires a single-part namespace, \
but got `nope`.`db`. SQLSTATE: 42K05"""
BAD_NAME = """
[INVALID_IDENTIFIER] The unquoted identifier a-b is invalid and must be back quoted as: `a-b`.
Unquoted identifiers must also not start with a digit. SQLSTATE: 42602 (line 1, pos 1)

== SQL ==
a-b..c d
-^^^
"""
NO_ICEBERG = """An error occurred while calling o151.tableExists.
: org.apache.spark.SparkException: Cannot find catalog plugin class for catalog 'b': org.a.Catalog.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.error(QueryExecutionErrors.scala:1887)
Caused by: java.lang.ClassNotFoundException: org.a.Catalog
\tat java.base/jdk.internal.loader.BuiltinClassLoader.loadClass(BuiltinClassLoader.java:641)
\t... 28 more
"""
NO_S3A = """An error occurred while calling o370.getFileSystem.
: java.lang.RuntimeException: java.lang.ClassNotFoundException: Class \
org.apache.hadoop.fs.s3a.S3AFileSystem not found
\tat org.apache.hadoop.conf.Configuration.getClass(Configuration.java:2737)
Caused by: java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found
"""
NOT_WRITABLE = """An error occurred while calling o786.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/x.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.error(QueryExecutionErrors.scala:814)
Caused by: org.apache.spark.SparkException: something between
Caused by: java.io.IOException: Mkdirs failed to create file:/x/_temporary (exists=false)
"""
IN_A_WORKER = """[PYTHON_DATA_SOURCE_ERROR] Failed to read: Traceback (most recent call last):
  File "/spark_jobs/options.py", line 204, in _selection
    raise CorruptObjectError(
bucketlog.CorruptObjectError: log/7 is cut (restore it)
 SQLSTATE: 38000"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (NO_CATALOG, r"^\[REQUIRES.*`nope`.`db`.*\(name the table as .*--conf spark\.sql\.catalog"),
        (BAD_NAME, r"^\[INVALID_ID.*as: `a-b`\. \(name the table as catalog\.database\.table"),
        (NO_ICEBERG, r"^SparkException: Cannot find .*Exception: org\.a\.Catalog \(.*jar of Ice"),
        (NO_S3A, r"^RuntimeException: .*S3AFileSystem not found \(give Spark the jars of hadoop"),
        (NOT_WRITABLE, r"^SparkException: \[TASK.*; IOException: Mkdirs.*\(give a target that"),
        (IN_A_WORKER, r"^log/7 is cut \(restore it\)$"),
        ("", r"^ \(what was committed before stays"),
        ("x" * 1000, r"^x{300}… \(what was committed before stays"),
    ],
)
def test_a_failure_of_spark_is_one_line(text: str, line: str) -> None:
    told = in_a_line(text)
    assert "\n" not in told
    assert "\tat " not in told
    assert re.search(line, told), told


@pytest.mark.parametrize("letter", list("{}[]*?\\"))
def test_a_folder_that_spark_takes_as_a_pattern_is_refused(tmp_path: Path, letter: str) -> None:
    for url in (f"{tmp_path}/a{letter}b", f"s3a://bucket/a{letter}/b"):
        with pytest.raises(ConfigurationError, match=r"reads as a pattern|not an S3 location"):
            parse_folder(url, source="s3://log")
    assert parse_folder(f"{tmp_path}/a b(c)", source="s3://log").path == f"{tmp_path}/a b(c)"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--target-option", "secret_access_key=hidden"], "secret_access_key: Extra inputs"),
        (["--target-option", "endpoint_url=http://u:hidden@h"], "endpoint_url has a user"),
        (["--option", "failOnDataLoss=false"], "give --fail-on-data-loss"),
        (["--option", "Subscribe=zzz"], "give --topics"),
        (["--parquet", "/tmp/day=[1]"], "reads as a pattern"),
        (["--topics", "nothing"], "no topic 'nothing'"),
    ],
)
def test_what_is_wrong_is_said_before_spark_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    log = WrittenLog(FileBucket(tmp_path / "0"))
    log.create_topic("orders")
    log.flush()

    def no_spark(**given: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "job_session", no_spark)
    given = ["--bucket", f"file://{tmp_path}", "--topics", "orders", "--schema", "id string"]
    with pytest.raises(SystemExit) as ended:
        command.main(
            [*given, "--parquet", f"{tmp_path}-lake", *arguments], program="bucketlog spark ingest"
        )
    assert ended.value.code == 1
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1
    assert "hidden" not in err


@pytest.mark.parametrize("arguments", [["--option", "a=1", "--option", "a=2"], ["--option", "a"]])
def test_pairs_that_make_no_sense_are_wrong_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    given = ["--bucket", "file:///x", "--topics", "a", "--schema", "id string", "--parquet", "/x"]
    with pytest.raises(SystemExit) as ended:
        command.main([*given, *arguments], program="bucketlog spark ingest")
    assert ended.value.code == 2
    assert "--option" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "JSON values need --schema"),
        (["--schema", "id string", "--message", "m"], "--message applies only to values"),
        (["--value-format", "registry"], "no URL of a schema registry"),
        (["--value-format", "registry", "--registry-url", "nowhere"], "is not a URL"),
        (["--value-format", "registry", "--registry-url", "http://h:9x"], "is not a URL"),
        (["--value-format", "registry", "--registry-url", "http://[h"], "is not a URL"),
        (["--value-format", "registry", "--registry-url", "http://"], "is not a URL"),
        (
            [
                *("--value-format", "registry", "--registry-url", "http://x"),
                *("--subject", "s", "--schema", "id string"),
            ],
            "--subject and --schema are given",
        ),
        (["--schema", "id string", "--epoch-range", "2024-01-01"], "is not two days"),
        (["--schema", "id string", "--epoch-unit", "a=seconds", "--epoch-unit", "a=x"], "twice"),
    ],
)
def test_options_of_values_that_exclude_each_other_are_wrong_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    given = ["--bucket", "file:///x", "--topics", "a", "--parquet", "/x"]
    with pytest.raises(SystemExit) as ended:
        command.main([*given, *arguments], program="bucketlog spark ingest")
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_login_without_a_password_is_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BUCKETLOG_SCHEMA_REGISTRY_AUTH", "hidden")
    given = ["--bucket", "file:///x", "--topics", "a", "--parquet", "/x"]
    registry = ["--value-format", "registry", "--registry-url", "http://x"]
    with pytest.raises(SystemExit) as ended:
        command.main([*given, *registry], program="bucketlog spark ingest")
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert "BUCKETLOG_SCHEMA_REGISTRY_AUTH needs a user and a password" in err
    assert "hidden" not in err


@pytest.mark.parametrize("text", ["a reason (a remedy)", "a reason"])
@pytest.mark.parametrize(
    ("module", "kind"),
    [
        ("", InvalidDataError),
        (".log_reader.tables.registry_formats.values", NewerSchemaError),
        (".log_format.errors", SchemaRegistryUnavailableError),
    ],
)
def test_an_error_of_values_crosses_from_a_worker(
    module: str, kind: type[BucketlogError], text: str
) -> None:
    trace = f"Traceback:\n  File x\nbucketlog{module}.{kind.__name__}: {text}\n\n\tat org.apache"
    found = error_of_values(trace)
    assert type(found) is kind
    assert str(found) == text


def test_another_error_of_a_worker_is_not_of_values() -> None:
    assert error_of_values(IN_A_WORKER) is None


def test_a_spark_that_fails_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark.errors import AnalysisException

    log = WrittenLog(FileBucket(tmp_path / "0"))
    log.create_topic("orders")
    log.flush()

    def fails(**given: object) -> None:
        raise AnalysisException(NO_CATALOG)

    monkeypatch.setattr(session, "job_session", fails)
    given = ["--bucket", f"file://{tmp_path}", "--topics", "orders", "--schema", "id string"]
    with pytest.raises(SystemExit) as ended:
        command.main([*given, "--iceberg", "nope.db.t"], program="bucketlog spark ingest")
    assert ended.value.code == 1
    err = capsys.readouterr().err
    assert err.startswith("bucketlog spark ingest: [REQUIRES_SINGLE_PART_NAMESPACE]")
    assert err.count("\n") == 1
