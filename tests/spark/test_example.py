"""The Spark program of `examples/` reads what the program for typed records wrote."""

from pathlib import Path

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.scenarios.examples import run_example

pytestmark = pytest.mark.long


def test_spark_batch(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path) as cluster:
        run_example("typed_records.py", bootstrap=cluster.bootstrap)
        bucket = str(tmp_path / "bucket")
    # pyspark leaves sockets to the garbage collector
    printed = run_example("spark_batch.py", bucket, bootstrap="127.0.0.1:1", warnings="default")
    assert printed == ["eu: 2 orders, 10.0", "us: 1 orders, 20.0"]
