"""Reading and comparing the results of other clients' tests."""

import json
import sys
from pathlib import Path

import pytest

from tests.proofs.client_suites import compare
from tests.scenarios.client_suites import (
    Outcome,
    SuiteError,
    go_outcomes,
    jest_outcomes,
    junit_outcomes,
    librdkafka_outcomes,
    read_report,
    run_program,
)
from tests.scenarios.known_suites import RACES

PASSED, FAILED, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED


@pytest.mark.parametrize(
    ("kafka", "here", "where"),
    [
        (PASSED, PASSED, "passed"),
        (PASSED, FAILED, "failed_here"),
        (PASSED, None, "failed_here"),
        (PASSED, SKIPPED, "skipped_here"),
        (FAILED, PASSED, "failed_on_kafka"),
        (FAILED, FAILED, "failed_on_kafka"),
        (None, PASSED, "failed_on_kafka"),
        (SKIPPED, SKIPPED, "skipped"),
    ],
)
def test_only_what_passes_on_kafka_counts(
    kafka: Outcome | None, here: Outcome | None, where: str
) -> None:
    found = compare({"t": kafka} if kafka else {}, {"t": here} if here else {})
    assert {word for word, names in found._asdict().items() if names} == {where}


def test_a_failure_is_named_and_skipped_tests_were_not_run() -> None:
    found = compare({"a": PASSED, "b": PASSED, "c": SKIPPED}, {"a": PASSED, "b": FAILED})
    assert found.as_json() == {"run": 2, "passed_on_both": 1, "failed_here": ["b"]}


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


def test_a_race_counts_for_neither_broker() -> None:
    (race,) = RACES
    found = compare({race: PASSED}, {race: FAILED})
    assert found.races == [race]
    assert not found.failed_here
    assert found.as_json()["races"] == [race]
