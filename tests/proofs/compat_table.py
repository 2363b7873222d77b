"""The tables of `docs/compatibility.md` with the results of the clients' test suites.

The first table has a row for each suite, the second a row for each expectation that was needed.
Both are between two marks, and only this module writes there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.proofs.shortfall import Figures
from tests.scenarios.expected_failures import Cause, Verdict
from tests.scenarios.known_suites import KnownSuite

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN = "<!-- tables: make prove WHAT=compat -->"
END = "<!-- end of the tables -->"
SUITES = (
    "| suite | version | tests | passed | failed | expected failures | skipped | commit |",
    "|---|---|---|---|---|---|---|---|",
)
REASONS = (
    "| suite | tests | outcome | number | cause | reason |",
    "|---|---|---|---|---|---|",
)
CAUSES = {
    Cause.KAFKA_TOO: "Apache Kafka 4.3.1 fails, too",
    Cause.CHANCE: "chance",
    Cause.SETUP: "not given",
    Cause.HERE: "bucketlog",
}


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    version: str
    origin: str
    passed: int
    failed: int
    expected: int
    skipped: int
    commit: str
    reasons: tuple[str, ...] = ()
    """Rows of the second table."""

    @classmethod
    def of(cls, known: KnownSuite, verdict: Verdict, commit: str | None) -> "Row":
        return cls(
            known.name,
            known.version,
            known.origin,
            passed=len(verdict.passed),
            failed=len(verdict.failed),
            expected=sum(map(len, verdict.expected.values())),
            skipped=sum(map(len, verdict.skipped.values())),
            commit=commit or "unknown",
            reasons=tuple(
                f"| {known.name} | `{row.tests}` | {outcome} | {len(tests)} "
                f"| {CAUSES[row.cause]} | {row.reason} |"
                for outcome, rows in (("failed", verdict.expected), ("skipped", verdict.skipped))
                for row, tests in rows.items()
            ),
        )

    def as_json(self) -> Figures:
        return {
            "version": self.version,
            "passed": self.passed,
            "failed": self.failed,
            "expected_failures": self.expected,
            "skipped": self.skipped,
        }

    def line(self) -> str:
        counts = f"{self.passed} | {self.failed} | {self.expected} | {self.skipped}"
        return f"| {self.name} | {self.version} | {self.origin} | {counts} | `{self.commit}` |"


def read_rows(page: str) -> dict[str, Row]:
    """The rows of both tables, by the suite's name. Raises `ValueError` on any other line."""
    text = page.partition(BEGIN)[2].partition(END)[0]
    first, _, second = text.partition(REASONS[0])
    reasons: dict[str, list[str]] = {}
    for line in _lines(second):
        reasons.setdefault(line.split("|")[1].strip(), []).append(line)
    rows = {}
    for line in _lines(first):
        name, version, origin, *counts, commit = (cell.strip() for cell in line.split("|")[1:-1])
        passed, failed, expected, skipped = map(int, counts)
        rows[name] = Row(
            name,
            version,
            origin,
            passed,
            failed,
            expected,
            skipped,
            commit.strip("`"),
            tuple(reasons.pop(name, ())),
        )
    if reasons:
        raise ValueError(f"reasons of suites that have no row: {', '.join(reasons)}")
    return rows


def _lines(text: str) -> list[str]:
    """The rows of a table, without its header. Raises `ValueError` if there is anything else."""
    lines = [line for line in text.splitlines() if line and line not in (*SUITES, *REASONS)]
    for line in lines:
        if not re.fullmatch(r"\|.*\|", line):
            raise ValueError(f"this line is not a row of a table: {line}")
    return lines


def write_rows(page: str, rows: Mapping[str, Row]) -> str:
    """The page with these rows in place of those of the same suites."""
    kept = dict(sorted({**read_rows(page), **rows}.items()))
    lines = [
        *SUITES,
        *(row.line() for row in kept.values()),
        "",
        *REASONS,
        *(line for row in kept.values() for line in row.reasons),
    ]
    before, _, rest = page.partition(BEGIN)
    return "\n".join([before + BEGIN, "", *lines, "", END + rest.partition(END)[2]])


def write_page(rows: Mapping[str, Row]) -> None:
    PAGE.write_text(write_rows(PAGE.read_text(), rows))
