"""Reading and judging the results of clients' test suites."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from tests.proofs.compat import problems
from tests.scenarios.client_suites import (
    Outcome,
    SuiteError,
    jest_outcomes,
    junit_outcomes,
    librdkafka_outcomes,
    local_tests,
    read_report,
    run_program,
)
from tests.scenarios.expected_failures import Cause, Expectation, Verdict, judge
from tests.scenarios.go_suites import go_outcomes

PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED
FIELDS = [field.name for field in dataclasses.fields(Verdict)]
FAILS = Expectation("x", "bad*", Cause.HERE, "why")
RACES = Expectation("x", "race", Cause.CHANCE, "why")


@pytest.mark.parametrize(
    ("name", "outcome", "where"),
    [
        ("good", PASSED, {"passed"}),
        ("good", FAILED, {"failed"}),
        ("good", SKIPPED, {"failed"}),
        ("bad1", FAILED, {"expected"}),
        ("bad2", SKIPPED, {"skipped"}),
        ("bad1", PASSED, {"passed", "surprises"}),
        ("race", PASSED, {"passed"}),
        ("race", FAILED, {"expected"}),
    ],
)
def test_each_failure_needs_an_expectation(name: str, outcome: Outcome, where: set[str]) -> None:
    verdict = judge("x", {name: outcome}, (FAILS, RACES))
    found = {field: getattr(verdict, field) for field in FIELDS}
    assert {field for field, names in found.items() if names} == where


def test_expectations_are_those_of_one_suite() -> None:
    assert judge("y", {"bad1": FAILED}, (FAILS,)).failed == ["bad1"]


def test_problems_name_what_has_no_explanation() -> None:
    verdict = judge("x", {"a": FAILED, "bad": PASSED}, (FAILS,))
    assert problems("x", verdict) == [
        "x: a has no explanation",
        "x: bad passes, but is expected to fail",
    ]
    assert "x: no test passed" in problems("x", judge("x", {"a": SKIPPED}, ()))


def test_pytest() -> None:
    report = """<testsuites><testsuite><testcase classname="a.T" name="ok"/>
        <testcase classname="a" name="bad"><failure message="no"/></testcase>
        <testcase classname="a" name="torn"/>
        <testcase classname="a" name="torn"><error message="teardown"/></testcase>
        <testcase classname="a" name="not"><skipped message="why"/></testcase>
        </testsuite></testsuites>"""
    assert junit_outcomes(report) == {
        "a.T::ok": PASSED,
        "a::bad": FAILED,
        "a::torn": FAILED,
        "a::not": SKIPPED,
    }


def test_go() -> None:
    output = "log\n--- FAIL: TestA (1.2s)\n    --- PASS: TestA/x (1s)\n    --- SKIP: TestA/y (0s)\n"
    assert go_outcomes(output) == {"TestA": FAILED, "TestA/x": PASSED, "TestA/y": SKIPPED}


def test_librdkafka() -> None:
    states = {"<MAIN>": "PASSED", "0103": "PASSED", "0098": "SKIPPED", "0090": "RUNNING"}
    report = json.dumps({"tests": {name: {"state": state} for name, state in states.items()}})
    assert librdkafka_outcomes(report) == {"0103": PASSED, "0098": SKIPPED, "0090": FAILED}


def test_librdkafka_names_its_tests_without_a_broker() -> None:
    source = """_TEST(0001_multiobj, 0),
    _TEST(0004_conf, TEST_F_LOCAL),
    _TEST(0079_fork,
          TEST_F_LOCAL | TEST_F_KNOWN_ISSUE,
          .extra = "may hang"),
    _TEST(0103_transactions, 0, TEST_BRKVER(0, 11, 0, 0)),
    _TEST(8000_idle, TEST_F_MANUAL),"""
    assert local_tests(source) == {"0004_conf", "0079_fork", "8000_idle"}


def test_jest() -> None:
    results = [
        {"fullName": "a b", "status": "passed"},
        {"fullName": "a c", "status": "failed"},
        {"fullName": "a d", "status": "pending"},
    ]
    report = json.dumps({"testResults": [{"assertionResults": results}]})
    assert jest_outcomes(report) == {"a b": PASSED, "a c": FAILED, "a d": SKIPPED}


def test_a_suite_without_a_report_has_failed(tmp_path: Path) -> None:
    run_program([sys.executable, "-c", "print('it broke')"], tmp_path, {})
    with pytest.raises(SuiteError) as raised:
        read_report(tmp_path / "report.xml", tmp_path)
    assert raised.value.remedy == "it broke"
