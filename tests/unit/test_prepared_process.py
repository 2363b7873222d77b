"""A forked process of a test behaves like a started process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import COMMAND
from tests.servers.prepared_process import PreparedProcess, run_prepared

PIPE = subprocess.PIPE
SERVER = "tests.servers.prepared_server"


def ran(
    arguments: list[str], folder: Path, stdin: bytes = b"", **variables: str
) -> tuple[int, bytes, bytes]:
    environment = os.environ | variables
    done = run_prepared(
        [*COMMAND, *arguments],
        stdin,
        environment=environment,
        folder=folder,
        timeout_s=PATIENCE_S,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["topic", "--help"],
        ["topic", "lst"],
        ["schema", "check", "schema.avsc", "--format", "nothing"],
        ["apply", "-", "--dry-run", "--bootstrap", "127.0.0.1:1"],
    ],
    ids=" ".join,
)
def test_it_prints_and_ends_as_a_started_one(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = b"topics: not a list\n"
    forked = ran(arguments, tmp_path, stdin, COLUMNS="70")
    monkeypatch.setenv("BUCKETLOG_TESTS_FORK", "false")
    assert ran(arguments, tmp_path, stdin, COLUMNS="70") == forked


def test_it_has_the_given_folder_and_variables(tmp_path: Path) -> None:
    (tmp_path / "topics.yaml").write_text("topics: [1]\n")
    _, _, errors = ran(["apply", "topics.yaml"], tmp_path, BUCKETLOG_BOOTSTRAP="127.0.0.1:1")
    assert b"topics.yaml" in errors
    assert b"No such file" not in errors


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_is_a_child_that_a_signal_ends(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = []
    for _ in range(2):
        command = [*COMMAND, "produce", "t", "--bootstrap", "127.0.0.1:1"]
        with PreparedProcess(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
            assert psutil.Process(process.pid).ppid() == os.getpid()
            is_forked = SERVER in psutil.Process(process.pid).cmdline()
            assert is_forked != (os.environ.get("BUCKETLOG_TESTS_FORK") == "false")
            assert process.poll() is None
            process.send_signal(number)
            codes.append(process.wait(PATIENCE_S))
        monkeypatch.setenv("BUCKETLOG_TESTS_FORK", "false")
    assert codes[0] == codes[1] != 0


def test_an_interpreter_with_other_variables_is_started(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONWARNINGS": "error"}
    command = [*COMMAND, "--version"]
    with PreparedProcess(command, stdout=PIPE, env=environment, cwd=tmp_path) as process:
        assert SERVER not in psutil.Process(process.pid).cmdline()
        assert process.communicate()[0].startswith(b"0.")
    assert COMMAND[0] == sys.executable
