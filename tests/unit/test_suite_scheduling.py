"""The suite names a test that hangs, and runs the other tests."""

import pytest

FILE = """
import threading

def test_before(): pass
def test_hangs(): threading.Event().wait()
def test_after(): pass
"""


def test_a_test_that_hangs_is_a_failure_and_runs_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FILE)
    run = pytester.runpytest_subprocess(
        *("-n", "1", "--dist", "loadfile", "-p", "tests.rigs.suite_scheduling"),
        *("-o", "faulthandler_timeout=2", "-o", "faulthandler_exit_on_timeout=true"),
    )
    run.assert_outcomes(passed=2, failed=1)
    run.stdout.fnmatch_lines(["*worker 'gw0' crashed while running '*::test_hangs'"])
    run.stderr.fnmatch_lines(["*, line 4 in test_hangs"])
