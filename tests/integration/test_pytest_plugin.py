"""The pytest plugin as a user has it: a project outside the repository, run by pytest-xdist.

What is held against the promises is what the run says (how many passed) and what it leaves behind:
no process, no topic, no data.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bucketlog import EmbeddedCluster, Topic, connect
from tests.integration.test_embedded import is_running, wait_gone
from tests.rigs.patience import PATIENCE_S, eventually

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "sample_project"
SAMPLE_TESTS = 8
PYTEST = [sys.executable, "-m", "pytest", "-p", "observer", "--basetemp=temp"]
PYTEST += ["-p", "no:hypothesispytest"]  # half a second a process, for what the project has not
OBSERVER = """
import json, os, pathlib, pytest

@pytest.fixture(autouse=True)
def observed(bucketlog_cluster):
    seen = {"bootstrap": bucketlog_cluster.bootstrap, "pids": list(bucketlog_cluster.pids.values())}
    partial = pathlib.Path("observed", f"{os.getpid()}.partial")
    partial.write_text(json.dumps(seen | {"log": str(bucketlog_cluster.log_path)}))
    partial.rename(partial.with_suffix(".json"))
"""
FAILING = """
import os, time

def test_fails(bucketlog_topic):
    assert bucketlog_topic == "no name"

def test_takes_its_worker_with_it(bucketlog_topic):
    os._exit(1)

def test_goes_on_elsewhere(bucketlog_producer, bucketlog_topic):
    import bucketlog
    assert bucketlog_producer.send(bucketlog.Topic(bucketlog_topic), b"x").result().offset == 0
"""
OPTIONS = """
import pytest

@pytest.mark.parametrize("alike", ["a/b", "a-b"])  # as names of topics they are the same
def test_options(alike, bucketlog_cluster, bucketlog_log, bucketlog_topic):
    assert bucketlog_cluster.bucket_url == "s3://elsewhere"
    assert bucketlog_log.topics.partition_count(bucketlog_topic) == 3
"""
WAITING = """
import pathlib, time

def test_waits(bucketlog_producer, bucketlog_topic):
    import bucketlog
    bucketlog_producer.send(bucketlog.Topic(bucketlog_topic), b"x").result()
    pathlib.Path("observed/sent").touch()
    while not pathlib.Path("observed/signalled").exists():
        time.sleep(0.02)
"""


class Project:
    """A copy of the sample project. `observed` tells which cluster its processes saw."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: list[subprocess.Popen[str]] = []
        shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "observed").mkdir()
        (folder / "observer.py").write_text(OBSERVER)

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """In a process group of its own, as a shell does."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
        run = subprocess.Popen(
            [*PYTEST, *arguments],
            cwd=self.folder,
            env=kept | {"PYTHONPATH": str(ROOT)} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.runs.append(run)
        return run

    def observed(self) -> list[dict[str, object]]:
        return [json.loads(path.read_text()) for path in self.folder.glob("observed/*.json")]

    def cluster_pids(self) -> list[int]:
        return [pid for seen in self.observed() for pid in seen["pids"]]  # type: ignore[attr-defined]  # JSON


def outcomes(output: str) -> dict[str, int]:
    """Of pytest's last line: {"passed": 8}."""
    last = output.strip().splitlines()[-1]
    return {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|errors?)", last)}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project")
    yield project
    for run in project.runs:
        if run.poll() is None:  # the test gave up
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()


def test_workers_share_one_cluster_that_ends_with_them(project: Project) -> None:
    """Also where a test fails, and where one takes its worker with it."""
    (project.folder / "tests" / "test_failing.py").write_text(FAILING)
    pytest_run = project.start("-n", "2")
    output, _ = pytest_run.communicate(timeout=PATIENCE_S)
    left = [pid for pid in project.cluster_pids() if is_running(pid)]
    assert outcomes(output) == {"passed": SAMPLE_TESTS + 1, "failed": 2}, output
    assert pytest_run.returncode == 1
    seen = project.observed()
    assert "replacing crashed worker" in output
    assert len(seen) >= 2, "the replacement may find that all tests have run"
    assert len({cluster["bootstrap"] for cluster in seen}) == 1
    assert len(set(project.cluster_pids())) == 3, "guard, Valkey and broker"
    assert left == []
    log = Path(str(seen[0]["log"]))
    assert log.exists()
    assert not log.with_name("bucket").exists()


def test_a_cluster_that_runs_already(project: Project, broker: EmbeddedCluster) -> None:
    """Nothing is started, and nothing is left there."""
    (project.folder / "tests" / "test_options.py").write_text(OPTIONS)
    options = ["-o", "bucketlog_partitions=3", "-o", "bucketlog_bucket_url=s3://elsewhere"]
    with connect(broker.bootstrap) as log:
        before = {topic.name for topic in log.topics.list()}
        run = project.start(*options, BUCKETLOG_TEST_BOOTSTRAP=broker.bootstrap)
        output, _ = run.communicate(timeout=PATIENCE_S)
        left = {topic.name for topic in log.topics.list()} - before
    assert outcomes(output) == {"passed": SAMPLE_TESTS + 2}, output
    assert f"bucketlog: the cluster at {broker.bootstrap}" in output
    assert run.returncode == 0
    assert project.cluster_pids() == []
    assert [name for name in left if name.startswith("test_")] == []


def test_ctrl_c_ends_the_cluster_and_keeps_what_is_to_be_kept(project: Project) -> None:
    run = waiting(project, "-n", "1", "-o", "bucketlog_data_dir=kept")
    os.killpg(run.pid, signal.SIGINT)
    (project.folder / "observed" / "signalled").touch()
    output, _ = run.communicate(timeout=PATIENCE_S)
    left = [pid for pid in project.cluster_pids() if is_running(pid)]
    assert run.returncode == pytest.ExitCode.INTERRUPTED, output
    assert left == []
    with EmbeddedCluster(project.folder / "kept") as again, connect(again.bootstrap) as log:
        (topic,) = log.topics.list()
        with log.consumer(Topic(topic.name), start="earliest", until="end") as consumer:
            assert [record.value for record in consumer] == [b"x"]


def test_kill_9_of_pytest_ends_the_cluster(project: Project) -> None:
    run = waiting(project, "-n", "1")
    run.kill()
    (project.folder / "observed" / "signalled").touch()
    run.communicate(timeout=PATIENCE_S)
    assert wait_gone(project.cluster_pids()) == []


def waiting(project: Project, *arguments: str) -> "subprocess.Popen[str]":
    """A run in the middle of a test."""
    (project.folder / "tests" / "test_waiting.py").write_text(WAITING)
    run = project.start(*arguments, "tests/test_waiting.py")
    sent = project.folder / "observed" / "sent"
    eventually(lambda: sent.exists() or run.poll() is not None)
    assert run.poll() is None, run.communicate()[0]
    assert len(project.cluster_pids()) == 3
    return run
