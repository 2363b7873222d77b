"""The tables of the clients' test suites in `docs/compatibility.md`."""

import pytest

from tests.proofs.compat_table import BEGIN, END, PAGE, REASONS, SUITES, Row, read_rows, write_rows
from tests.scenarios.client_suites import Outcome
from tests.scenarios.expected_failures import EXPECTED, Cause, Expectation, judge
from tests.scenarios.known_suites import known_suites, pins

KNOWN = {known.name: known for known in known_suites(PAGE.parent)}


def test_the_rows_have_the_pinned_versions() -> None:
    rows = read_rows(PAGE.read_text())
    assert rows
    for name, row in rows.items():
        assert (row.version, row.origin) == (KNOWN[name].version, KNOWN[name].origin)


def test_no_failure_is_unexplained() -> None:
    for row in read_rows(PAGE.read_text()).values():
        assert row.passed > 0
        assert row.failed == 0, row.name
        explained = [int(line.split("|")[4]) for line in row.reasons]
        assert sum(explained) == row.expected + row.skipped, row.name


def test_the_reasons_are_those_of_the_expectations() -> None:
    known = {(row.suite, f"`{row.tests}`", row.reason) for row in EXPECTED}
    for row in read_rows(PAGE.read_text()).values():
        for line in row.reasons:
            suite, tests, *_, reason = (cell.strip() for cell in line.split("|")[1:-1])
            assert (suite, tests, reason) in known


def test_expectations_name_suites_and_give_reasons() -> None:
    for row in EXPECTED:
        assert row.suite in KNOWN
        assert row.reason
        assert "|" not in row.tests + row.reason
    also = {name for known in KNOWN.values() for name in known.also}
    assert set(pins()) == also | {known.package or name for name, known in KNOWN.items()}


def test_a_written_row_is_read_again_and_others_stay() -> None:
    why = Expectation("franz-go", "TestB*", Cause.HERE, "why")
    outcomes = {"TestA": Outcome.PASSED, "TestB1": Outcome.FAILED, "TestB2": Outcome.SKIPPED}
    row = Row.of(KNOWN["franz-go"], judge("franz-go", outcomes, (why,)), "abc1234")
    assert (row.passed, row.failed, row.expected, row.skipped) == (1, 0, 1, 1)
    page = f"# Page\n\n{BEGIN}\n{END}\n\nThe end.\n"
    once = write_rows(page, {"franz-go": row})
    other = Row.of(KNOWN["kafka-go"], judge("kafka-go", {"a": Outcome.PASSED}, ()), None)
    twice = write_rows(once, {"kafka-go": other})
    assert read_rows(twice) == {"franz-go": row, "kafka-go": other}
    assert twice.startswith("# Page\n\n")
    assert twice.endswith(f"{END}\n\nThe end.\n")


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([*SUITES, "a remark"], "not a row"),
        ([*SUITES, *REASONS, "| x | `t` | failed | 1 | chance | why |"], "no row"),
    ],
)
def test_other_text_between_the_marks_is_refused(lines: list[str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_rows("\n".join([BEGIN, *lines, END]))
