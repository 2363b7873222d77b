"""The first program of docs/spark.md runs as `.venv/bin/python job.py`, without an active venv."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bucketlog
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.spark_jobs.java import find_java
from tests.models.repository import ROOT
from tests.rigs.patience import PATIENCE_S

pytestmark = pytest.mark.long

BUCKET = "s3://logs/prod"


def first_program() -> str:
    found = re.search(r"^```python\n(.*?)^```", (ROOT / "docs/spark.md").read_text(), re.M | re.S)
    assert found is not None
    return found[1]


def test_the_first_program_needs_no_settings_of_spark(tmp_path: Path) -> None:
    orders = bucketlog.Topic("orders", value=str)
    with EmbeddedCluster(tmp_path / "data") as cluster:
        with bucketlog.connect(cluster.bootstrap) as log:
            log.topics.ensure(orders)
            with log.producer() as producer:
                producer.send(orders, "nine-fifty")
        bucket = cluster.bucket_url
    program = tmp_path / "job.py"
    assert BUCKET in first_program()
    program.write_text(first_program().replace(BUCKET, bucket))
    own = str(Path(sys.executable).parent)
    path = [each for each in os.environ["PATH"].split(os.pathsep) if each != own]
    java = find_java().home
    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={
            "PATH": os.pathsep.join(path),
            "HOME": str(tmp_path),
            "SPARK_LOCAL_IP": "127.0.0.1",
            **({} if java is None else {"JAVA_HOME": str(java)}),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "nine-fifty" in done.stdout
