"""Shares out the files of the suite to worker processes, as a plugin of pytest."""

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class SuiteScheduling(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist is not typed
    """Shares out files to workers. One worker gets all files of `tests/spark`, so that one JVM
    serves all of them. If a worker ends during a test, no other worker runs this test again. With
    pytest-xdist's own scheduler, such a test would end one worker after another, and the run would
    hang: files that are complete would be shared out again, and a worker that gets such a file
    waits for ever before its last test."""

    def _split_scope(self, nodeid: str) -> str:
        folder = "tests/spark/"
        return folder if nodeid.startswith(folder) else str(super()._split_scope(nodeid))

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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SuiteScheduling | None:
    return SuiteScheduling(config, log) if config.getvalue("dist") == "loadfile" else None
