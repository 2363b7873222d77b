"""Everything installed is importable only under `bucketlog.`.

A project may have packages named like folders of this repository. `bucketlog dev`, the pytest
plugin and a replay work beside them and never import them.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_dev import READY, address_in, told_until
from tests.models.repository import ROOMS, ROOT
from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import COMMAND

pytestmark = pytest.mark.long

PLUGIN_TEST = """
import bucketlog

def test_round_trip(bucketlog_producer, bucketlog_topic):
    import metadata
    assert metadata.OWNER == "the project"
    topic = bucketlog.Topic(bucketlog_topic)
    assert bucketlog_producer.send(topic, b"x").result().offset == 0
"""
REPLAY = """
import sys, json, bucketlog, metadata
assert metadata.OWNER == "the project"
print(json.dumps([r.value.decode() for r in bucketlog.replay(sys.argv[1], bucketlog.Topic("t"))]))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that owns packages of all these names. Only `metadata` may be imported, by it."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ROOMS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    (folder / "metadata" / "__init__.py").write_text("OWNER = 'the project'\n")
    return folder


def run(project: Path, *command: str, stdin: str = "") -> str:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command,
        cwd=project,
        env=kept | {"PYTHONPATH": str(project)},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_dev_and_replay(project: Path) -> None:
    command = [*COMMAND, "dev", "--data", "data", "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(project)}
    with subprocess.Popen(
        command, cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            address = address_in(told_until(process, READY))
            at = ("--bootstrap", address)
            run(project, *COMMAND, "topic", "create", "t", *at)
            run(project, *COMMAND, "produce", "t", *at, stdin="one\ntwo\n")
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
    replayed = run(project, sys.executable, "-c", REPLAY, f"file://{project}/data/bucket")
    assert sorted(json.loads(replayed)) == ["one", "two"]


def test_pytest_plugin(project: Path) -> None:
    sample = ROOT / "tests" / "sample_project"
    shutil.copytree(sample, project, dirs_exist_ok=True)
    (project / "tests" / "test_foreign.py").write_text(PLUGIN_TEST)
    shown = run(project, sys.executable, "-m", "pytest", "--basetemp=temp", "tests/test_foreign.py")
    assert "1 passed" in shown
