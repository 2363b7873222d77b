"""The source on a Spark cluster: executors are processes of their own, whose Python has what we
need, and of us what `--py-files` brings. Their home folder cannot be written."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pyspark
import pytest

from bucketlog.spark_jobs.java import find_java
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.bucket import SyncBucket
from localstack.servers import RunningStore
from scripts import spark_package
from tests.rigs.written_log import WrittenLog, some_records
from tests.servers.components import Components

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
TWO_EXECUTORS = "local-cluster[2,1,1024]"
RECORDS = 10 * 2 * 30
UNWRITABLE = "/proc/nobody"
"""Not even by root."""

APPLICATION = """
import json, sys

from pyspark.sql import SparkSession
from bucketlog.spark_jobs.source import register

spark = SparkSession.builder.getOrCreate()
register(spark)
reader = spark.read.format("bucketlog").option("subscribe", "orders").option("minPartitions", 4)
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
records = [reader.load(url).count() for url in sys.argv[1:]]
print(json.dumps({"records": records, "executors": executors}))
"""


class Submitter:
    """`spark-submit` with a Python that does not know our packages."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        ours = sysconfig.get_path("purelib", vars={"base": str(folder / "venv")})
        # a folder that is named in a .pth file is searched, and .pth files in it are not read: by
        # one of these our packages are installed editable
        (Path(ours) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        (folder / "application.py").write_text(APPLICATION)
        self._spark = folder / "spark"  # executors write below it
        self._spark.mkdir()
        for part in SPARK.iterdir():
            (self._spark / part.name).symlink_to(part)
        self.archive = folder / "bucketlog.zip"
        assert spark_package.write(self.archive) > 100

    def run(
        self, arguments: list[str], *options: str, environment: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        java = find_java()
        known = {"PATH": os.environ["PATH"], "HOME": UNWRITABLE, "SPARK_HOME": str(self._spark)}
        known |= {"PYSPARK_PYTHON": str(self.python), "SPARK_LOCAL_IP": "127.0.0.1"}
        known |= {"JAVA_HOME": str(java.home)} if java.home is not None else {}
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.jars.ivy": str(self._folder / "ivy"),
        }
        command = [str(self._spark / "bin" / "spark-submit"), "--master", TWO_EXECUTORS, *options]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        return subprocess.run(
            [*command, "application.py", *arguments],
            cwd=self._folder,
            env=known | (environment or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


@pytest.fixture(scope="module")
def submitter(tmp_path_factory: pytest.TempPathFactory) -> Submitter:
    return Submitter(tmp_path_factory.mktemp("cluster"))


def written(bucket: SyncBucket) -> None:
    log = WrittenLog(bucket)
    log.create_topic("orders", 2)
    for _ in range(10):
        for partition in (0, 1):
            log.append("orders", partition, some_records(30))
        log.flush()
    bucket.close()


def figures(done: "subprocess.CompletedProcess[str]") -> dict[str, object]:
    assert done.returncode == 0, done.stderr[-5_000:]
    found: dict[str, object] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def test_the_archive_is_all_that_executors_need_of_us(
    submitter: Submitter,
    minio: RunningStore,
    tmp_path: Path,
    components: Components,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From a folder and from MinIO, by one application: a cluster costs half a minute."""
    alone = [str(submitter.python), "-c", "import pyspark, pyarrow, bucketlog"]
    found = subprocess.run(alone, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert "No module named 'bucketlog'" in found.stderr, "else this shows nothing"
    minio.make_bucket("cluster")
    for name, value in minio.environment().items():
        monkeypatch.setenv(name, value)
    urls = [f"file://{tmp_path}/log", "s3://cluster/log"]
    for url in urls:
        written(open_sync_bucket(url))
    environment = minio.environment()
    done = submitter.run(urls, "--py-files", str(submitter.archive), environment=environment)
    assert figures(done) == {"records": [RECORDS, RECORDS], "executors": 2}
    components.took_part("Spark cluster", f"{pyspark.__version__}, {TWO_EXECUTORS}")


def test_an_archive_is_made_the_same_twice(submitter: Submitter, tmp_path: Path) -> None:
    other = tmp_path / "other.zip"
    command = [sys.executable, str(ROOT / "scripts" / "spark_package.py"), str(other)]
    subprocess.run(command, check=True, capture_output=True)
    assert other.read_bytes() == submitter.archive.read_bytes()
