"""Shares out the files of the suite to worker processes, as a plugin of pytest.

`--minutes 30` begins no further file after this time, and the end of the output names the files
that did not run. The order of the files then depends on the commit, so that each file runs for some
commits on slow machines, too.
"""

import math
import subprocess
import time
from random import Random

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

TOGETHER = "tests/spark/"


class SuiteScheduling(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist is not typed
    """Shares out files to workers. One worker gets all files of `tests/spark`, so that one JVM
    serves all of them. If a worker ends during a test, no other worker runs this test again. With
    pytest-xdist's own scheduler, such a test would end one worker after another, and the run would
    hang: files that are complete would be shared out again, and a worker that gets such a file
    waits for ever before its last test."""

    def __init__(self, config: pytest.Config, log: object) -> None:
        super().__init__(config, log)
        minutes = config.getoption("minutes")
        self._ends_s = math.inf if minutes is None else time.monotonic() + 60 * minutes
        self.left_out: list[str] = []
        """Files that did not run, because the time was over."""

    def _split_scope(self, nodeid: str) -> str:
        return _unit_of(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        if time.monotonic() > self._ends_s:
            self.left_out += self.workqueue
            self.workqueue.clear()
        super()._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Return the test that ran when the worker ended, or None after the worker's last test."""
        ended = None
        work = self.assigned_work[node]
        for file, tests in list(work.items()):
            for nodeid, is_complete in tests.items():
                if ended is None and not is_complete:
                    ended = nodeid
                    tests[nodeid] = True
            if all(tests.values()):
                del work[file]
        super().remove_node(node)
        return ended


def _unit_of(nodeid: str) -> str:
    """The file, or the folder, whose tests run in one worker."""
    return TOGETHER if nodeid.startswith(TOGETHER) else nodeid.split("::", 1)[0]


SCHEDULING = pytest.StashKey[SuiteScheduling]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--minutes",
        type=float,
        help="begin no further file after this time, in minutes (the order depends on the commit)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a bound of time, the unit that takes longest is first, and the commit orders the
    others."""
    if config.getoption("minutes") is None:
        return
    asked = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(asked, cwd=config.rootpath, capture_output=True, check=False).stdout
    units = sorted({_unit_of(item.nodeid) for item in items})
    Random(commit).shuffle(units)
    place = {unit: number for number, unit in enumerate(units)} | {TOGETHER: -1}
    items.sort(key=lambda item: place[_unit_of(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SuiteScheduling | None:
    if config.getvalue("dist") != "loadfile":
        return None
    config.stash[SCHEDULING] = SuiteScheduling(config, log)
    return config.stash[SCHEDULING]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    scheduling = config.stash.get(SCHEDULING, None)
    if scheduling is not None and scheduling.left_out:
        minutes = config.getoption("minutes")
        terminalreporter.section(f"did not run: would have begun after {minutes:g} minutes")
        for unit in sorted(scheduling.left_out):
            terminalreporter.line(unit)
