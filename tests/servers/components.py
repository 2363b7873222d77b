"""Real servers and programs in tests: which took part, and what happens where one is missing.

Invariant: in CI (`CI=true`) a missing component is a failure, never a skip. Elsewhere it is a skip
that says what to install. The summary of every run lists the components that were really used.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping

import pytest

_USED = pytest.StashKey[dict[str, str]]()
_WORKER_KEY = "bucketlog_components"


class Components:
    """What tests report to; a fixture of this name gives it."""

    def __init__(self, used: dict[str, str], *, strict: bool) -> None:
        self._used = used
        self._strict = strict

    def took_part(self, name: str, version: str) -> None:
        """Call it once the component has answered; the last version told is shown."""
        self._used[name] = version

    def missing(self, name: str, install: str) -> None:
        """End the test: failed in CI, skipped elsewhere. `install` says how to get it."""
        message = f"{name} is missing: {install}"
        if self._strict:
            pytest.fail(f"{message} (in CI nothing may be missing)", pytrace=False)
        pytest.skip(message)

    def program(self, name: str, install: str, version_args: tuple[str, ...] = ()) -> str:
        """The path of a program on PATH; with `version_args` its first line is its version."""
        path = shutil.which(name)
        if path is None:
            self.missing(name, install)
            raise AssertionError("unreachable")
        if version_args:
            done = subprocess.run([path, *version_args], capture_output=True, text=True, check=True)
            lines = [line for line in done.stdout.splitlines() if "ersion" in line]
            self.took_part(name, lines[0].strip() if lines else done.stdout.strip())
        return path


def is_ci(environment: Mapping[str, str]) -> bool:
    return environment.get("CI", "").lower() in {"1", "true"}


@pytest.fixture(scope="session")
def components(pytestconfig: pytest.Config) -> Components:
    return Components(pytestconfig.stash[_USED], strict=is_ci(os.environ))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_USED] = {}


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:  # a worker of pytest-xdist: tell the controller
        output[_WORKER_KEY] = session.config.stash[_USED]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object, error: object) -> None:
    output = getattr(node, "workeroutput", None) or {}  # None: the worker has crashed
    config = getattr(node, "config", None)
    if isinstance(config, pytest.Config):
        config.stash[_USED].update(output.get(_WORKER_KEY, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    used = terminalreporter.config.stash[_USED]
    terminalreporter.section("real servers and clients that took part")
    for name in sorted(used):
        terminalreporter.line(f"{name}: {used[name]}")
    if not used:
        terminalreporter.line("none")
