"""A plugin for pytest: how the files of the suite are shared out to worker processes."""

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController


class SuiteScheduling(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist is not typed
    """Files are shared out to workers, the files of `tests/spark` as one: a JVM for all. A test
    whose worker ended is not run again: pytest-xdist would end every worker with such a test."""

    def _split_scope(self, nodeid: str) -> str:
        folder = "tests/spark/"
        return folder if nodeid.startswith(folder) else str(super()._split_scope(nodeid))

    def remove_node(self, node: WorkerController) -> str | None:
        """Returns the test that ran when the worker ended, or None after its last test."""
        for tests in self.assigned_work[node].values():
            for nodeid, is_complete in tests.items():
                if not is_complete:
                    tests[nodeid] = True
                    super().remove_node(node)
                    return str(nodeid)
        super().remove_node(node)
        return None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SuiteScheduling | None:
    return SuiteScheduling(config, log) if config.getvalue("dist") == "loadfile" else None
