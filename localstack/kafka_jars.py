"""Apache Kafka as `scripts/install.sh kafka-tools` installs it: its jars, and Java to run them."""

import subprocess
from pathlib import Path

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.spark_jobs.java import find_java

INSTALL = "scripts/install.sh kafka-tools"
ROOT = Path(__file__).parents[1]


def java_program() -> str:
    """Raises `ConfigurationError` where there is none."""
    java = find_java()
    return str(java.home / "bin" / "java") if java.home else "java"


def installed_jars() -> Path:
    """The folder of them. Raises `ConfigurationError` where they are not installed."""
    done = subprocess.run(
        [ROOT / "scripts" / "install.sh", "--where", "kafka-tools"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigurationError("Apache Kafka's tools are not installed", remedy=INSTALL)
    return Path(done.stdout.strip())
