"""The jars that Spark needs beyond its own, as `scripts/install.sh spark-jars` installs them, and a
session's settings to use them: s3a on a test store, Iceberg with a catalog in SQLite.

Spark's Kafka source needs no setting: `format("kafka")` is there with the jars.
"""

import subprocess
from pathlib import Path

from bucketlog.log_format.errors import ConfigurationError
from localstack.servers import ACCESS_KEY, REGION, SECRET_KEY, RunningStore

INSTALL = "scripts/install.sh spark-jars"
ROOT = Path(__file__).parents[1]
ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def installed_jars() -> list[Path]:
    """Waits for an installation that is under way. Raises `ConfigurationError` where there is
    none."""
    done = subprocess.run(
        [ROOT / "scripts" / "install.sh", "--where", "spark-jars"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigurationError("Spark's further jars are not installed", remedy=INSTALL)
    return sorted(Path(done.stdout.strip()).glob("*.jar"))


def jar_settings(jars: list[Path]) -> dict[str, str]:
    """What a session must be started with."""
    return {"spark.jars": ",".join(map(str, jars)), "spark.sql.extensions": ICEBERG_EXTENSIONS}


def s3a_settings(store: RunningStore) -> dict[str, str]:
    """Of a session to be started. On a running one they are set without `spark.hadoop.`; a store's
    buckets then need names of their own, since Hadoop keeps a file system by its bucket."""
    return {
        "spark.hadoop.fs.s3a.endpoint": store.endpoint_url,
        "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.access.key": ACCESS_KEY,
        "spark.hadoop.fs.s3a.secret.key": SECRET_KEY,
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def iceberg_settings(catalog: str, database: Path, warehouse: str) -> dict[str, str]:
    """A catalog of this name in the SQLite file `database`; may be set on a running session, before
    the catalog is used. Its tables stand under `warehouse`: s3a://…, or a folder."""
    at = f"spark.sql.catalog.{catalog}"
    return {
        at: "org.apache.iceberg.spark.SparkCatalog",
        f"{at}.type": "jdbc",
        f"{at}.uri": f"jdbc:sqlite:{database}",
        f"{at}.jdbc.schema-version": "V1",
        f"{at}.warehouse": warehouse,
        f"{at}.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
    }
