"""Each program of `examples/` runs, and prints what it promises."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.scenarios.examples import EXAMPLES, ROOT, run_example

pytestmark = pytest.mark.long

ELSEWHERE = {"spark_batch.py"}
"""tests/spark/test_example.py"""
TOPICS = """\
[invoices]
partitions = 6
retention = "7d"

[customers]
configs = { "cleanup.policy" = "compact" }
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """One for the programs alone: their topics have fixed names."""
    with EmbeddedCluster(tmp_path_factory.mktemp("examples")) as started:
        yield started


@pytest.fixture(scope="module")
def orders(cluster: EmbeddedCluster) -> list[str]:
    """What the program prints that writes the topic `orders`."""
    return run_example("typed_records.py", bootstrap=cluster.bootstrap)


def test_typed_records(orders: list[str]) -> None:
    assert [line[:7] for line in orders[:3]] == ["order 1", "order 2", "order 3"]
    assert orders[0].removeprefix("order 1") == orders[2].removeprefix("order 3")  # one key
    assert orders[3:] == ["eu: 10.0", "us: 20.0"]


def test_group_worker(cluster: EmbeddedCluster) -> None:
    *first, done = run_example("group_worker.py", bootstrap=cluster.bootstrap)
    assert sorted(first) == [f"{name}.jpg resized to 640" for name in ("cat", "dog", "owl")]
    assert done == "done: 3, lag: 0"
    again = run_example("group_worker.py", "emu.jpg", bootstrap=cluster.bootstrap)
    assert again == ["emu.jpg resized to 640", "done: 1, lag: 0"]


def test_async_ingest(cluster: EmbeddedCluster) -> None:
    printed = run_example("async_ingest.py", bootstrap=cluster.bootstrap)
    assert printed == [f"sensor-{number}: 250 readings" for number in range(5)]


def test_dead_letters(cluster: EmbeddedCluster) -> None:
    assert run_example("dead_letters.py", bootstrap=cluster.bootstrap) == [
        "payment 1: 5.0",
        "payment 3: 7.0",
        'set aside, offset 1: {"id": 2, "amount": "much"}',
    ]


def test_model_evolution(cluster: EmbeddedCluster) -> None:
    assert run_example("model_evolution.py", bootstrap=cluster.bootstrap) == [
        "new program: 1 a@example.org en",
        "new program: 2 b@example.org de",
        "old program: 1 a@example.org",
        "old program: 2 b@example.org",
    ]


def test_resumed_transfer(cluster: EmbeddedCluster) -> None:
    for count, sent in ((20, 20), (50, 30), (50, 0)):
        printed = run_example("resumed_transfer.py", str(count), bootstrap=cluster.bootstrap)
        assert printed == [
            f"sent {sent} events",
            f"stored {count} events, each once and in order: True",
        ]


def test_plain_confluent(cluster: EmbeddedCluster) -> None:
    printed = run_example("plain_confluent.py", bootstrap=cluster.bootstrap)
    assert printed[:3] == [f"delivered at offset {offset}" for offset in range(3)]
    assert printed[3:] == ["hello", "hallo", "bonjour"]


def test_topics_from_file(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    file = tmp_path / "topics.toml"
    file.write_text(TOPICS)
    for done in ("created", "there already, settings applied"):
        assert run_example("topics_from_file.py", str(file), bootstrap=cluster.bootstrap) == [
            f"invoices: {done}",
            "  6 partitions, {'retention.ms': '604800000'}",
            f"customers: {done}",
            "  1 partitions, {'cleanup.policy': 'compact'}",
        ]


def test_pytest_plugin(cluster: EmbeddedCluster) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "bucketlog.testing", "-p", "no:cacheprovider"),
            *("--rootdir", str(EXAMPLES), str(EXAMPLES / "pytest_plugin.py")),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=EXAMPLES,
        env={**os.environ, "PYTHONPATH": str(ROOT), "BUCKETLOG_BOOTSTRAP": cluster.bootstrap},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.usefixtures("orders")
def test_replay_parquet(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    bucket, address = cluster.bucket_url, cluster.bootstrap
    (line,) = run_example("replay_parquet.py", bucket, str(lake), bootstrap=address)
    found = re.fullmatch(r"3 records in (\d+) files", line)
    assert found is not None, line
    assert len(list(lake.rglob("partition=*/*.parquet"))) == int(found[1]) > 0


@pytest.mark.usefixtures("orders")
def test_replay_frames(cluster: EmbeddedCluster) -> None:
    printed = run_example("replay_frames.py", cluster.bucket_url, bootstrap="127.0.0.1:1")
    assert printed == ["pandas: 3 rows", "polars: 3 rows, 30.0 in all", "amount: 30.0"]


def test_every_example_is_listed_and_tested() -> None:
    listed = re.findall(r"^\| \[(\w+\.py)\]\(\1\) \|", (EXAMPLES / "README.md").read_text(), re.M)
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.glob("*.py"))
    tested = {name.removeprefix("test_") + ".py" for name in globals() if name.startswith("test_")}
    assert set(listed) <= tested | ELSEWHERE
