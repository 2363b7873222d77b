"""One Spark session for a run, and logs written to folders."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.records import DecodedRecord
from bucketlog.spark_jobs.session import local_session
from bucketlog.tiered_storage.backends.file import FileBucket
from localstack.servers import ACCESS_KEY, SECRET_KEY
from localstack.spark_jars import installed_jars, jar_settings
from tests.rigs.written_log import WrittenLog
from tests.servers.components import Components


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`DataFrame.collect` leaves the closing of its socket to the garbage collector."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, components: Components
) -> Iterator[SparkSession]:
    warehouse = tmp_path_factory.mktemp("warehouse")
    try:
        further = jar_settings(installed_jars())
    except ConfigurationError:
        further = {}  # tests that need them ask for `spark_jars`
    with pytest.MonkeyPatch.context() as patch:
        # Spark's Python workers find the credentials of a test store in the environment
        patch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        session = local_session(
            config={
                **further,
                "spark.sql.warehouse.dir": str(warehouse),
                "spark.log.level": "ERROR",
            }
        )
        components.took_part("Spark", session.version)
        yield session
        session.stop()


@pytest.fixture(scope="session")
def spark_jars(components: Components) -> list[Path]:
    """Ask for it where `spark` must have s3a, the Kafka source or Iceberg."""
    try:
        jars = installed_jars()
    except ConfigurationError as error:
        components.missing("Spark's further jars", error.remedy)
        raise
    for jar in jars:
        for name in ("hadoop-aws", "iceberg-spark-runtime", "spark-sql-kafka"):
            if jar.name.startswith(name):
                components.took_part(name, jar.stem)
    return jars


@dataclass
class Stored:
    """A log in a folder, and what was written to it, by (topic, partition)."""

    folder: Path
    log: WrittenLog
    records: dict[tuple[str, int], list[DecodedRecord]]

    @property
    def url(self) -> str:
        return f"file://{self.folder}"

    def object_path(self, key: str) -> Path:
        return self.folder / "0" / key

    def load(self, spark: SparkSession, **options: str) -> DataFrame:
        return spark.read.format("bucketlog").options(**options).load(self.url)


@pytest.fixture
def stored(tmp_path: Path) -> Stored:
    """An empty log; its bucket is `tmp_path/bucket`."""
    folder = tmp_path / "bucket"
    return Stored(folder, WrittenLog(FileBucket(folder / "0")), {})
