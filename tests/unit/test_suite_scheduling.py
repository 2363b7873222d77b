"""The suite names a test that hangs or ends its worker, and runs the other tests."""

import pytest

from tests.rigs.patience import PATIENCE_S

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


def test_a_run_whose_worker_ends_runs_all_other_tests(pytester: pytest.Pytester) -> None:
    files = {f"test_{number}": "def test_passes(): pass" for number in range(40)}
    files["test_3"] = "import os\ndef test_ends_its_worker(): os._exit(1)\n" + files["test_3"]
    pytester.makepyfile(**files)
    run = pytester.runpytest_subprocess(
        *("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"),
        *("-p", "tests.rigs.suite_scheduling"),
        timeout=PATIENCE_S,
    )
    run.assert_outcomes(passed=40, failed=1)


def test_no_file_begins_after_the_given_time(pytester: pytest.Pytester) -> None:
    """Each worker gets two files at once; all others wait, and are named in the end."""
    waiting = "import threading\ndef test_waits(): threading.Event().wait(0.5)\n"
    pytester.makepyfile(**{f"test_{number}": waiting for number in range(10)})
    run = pytester.runpytest_subprocess(
        *("-n", "1", "--dist", "loadfile", "--no-loadscope-reorder", "--minutes", "0"),
        *("-p", "tests.rigs.suite_scheduling"),
        timeout=PATIENCE_S,
    )
    passed = run.parseoutcomes()["passed"]
    assert passed < 10
    run.stdout.fnmatch_lines(["*did not run: would have begun after 0 minutes*"])
    named = [line for line in run.outlines if line.endswith(".py")]
    assert len(named) == 10 - passed
