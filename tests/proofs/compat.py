"""The proof that the test suites of Kafka clients pass: the target `compat` of `tests.proofs`.

The full form writes the table of `docs/compatibility.md`. A suite that was not run keeps its rows.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from localstack.machine import machine
from tests.proofs.compat_table import Row, write_page
from tests.proofs.progress import tell
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.client_suites import Outcome, Suite, SuiteError
from tests.scenarios.expected_failures import Cause, Verdict, judge
from tests.scenarios.known_suites import CHECKOUTS, KnownSuite, install, known_suites, left_out
from tests.scenarios.suite_brokers import bucketlog, kafka, run_on
from tests.servers.cluster import is_free

INSTALL_TOOLS = Path(__file__).parents[2] / "scripts" / "install.sh"
CHOSEN = "COMPAT_SUITES"
"""An environment variable with the names of the suites to run, comma-separated; default: all."""


@dataclass(slots=True)
class Report:
    rows: dict[str, Row] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> Figures:
        return {
            "suites": {name: row.as_json() for name, row in self.rows.items()},
            **({"left_out": self.left_out} if self.left_out else {}),
        }


def prove_compat(short: bool) -> Figures:
    """The test suites of Kafka clients pass on bucketlog; each exception has a reason."""
    named = os.environ.get(CHECKOUTS)
    checkouts = Path(named) if named else None
    wanted = set(filter(None, os.environ.get(CHOSEN, "").split(",")))
    suites = [known for known in known_suites(checkouts) if known.short or not short]
    if unknown := wanted - {known.name for known in suites}:
        raise ShortfallError(f"{CHOSEN} names unknown suites: {', '.join(sorted(unknown))}", {})
    if not short:  # librdkafka's tests call them, and reasons are checked on Apache Kafka
        subprocess.run([INSTALL_TOOLS, "kafka-tools"], check=True, stdout=sys.stderr)
    report = Report(left_out={} if short else left_out(checkouts))
    for known in suites:
        if known.name in report.left_out or (wanted and known.name not in wanted):
            continue
        try:
            run_suite(known, report, short)
        except SuiteError as error:
            tell(f"  {known.name}: {error}\n{error.remedy}")
            report.problems.append(f"{known.name}: {error}")
    if not short:
        write_page(report.rows)
    if not report.rows:
        report.problems.append("no suite was run")
    if report.problems:
        raise ShortfallError("; ".join(report.problems), report.as_json())
    return report.as_json()


def run_suite(known: KnownSuite, report: Report, short: bool) -> None:
    """Run the suite, and on Apache Kafka too if expectations say that Kafka fails."""
    make = known.short if short and known.short is not None else known.make
    suite = make(install(known.package or known.name))
    if suite.needs.port and not is_free(suite.needs.port):
        report.left_out[known.name] = f"its tests need port {suite.needs.port}, which is in use"
        return
    verdict = judge(known.name, run_on(bucketlog, suite))
    report.problems += problems(known.name, verdict)
    if not short:
        report.problems += wrong_claims(known.name, verdict, suite)
    row = Row.of(known, verdict, machine()["commit"])
    report.rows[known.name] = row
    tell(f"  {known.name}: {row.as_json()}")


def problems(name: str, verdict: Verdict) -> list[str]:
    found = [f"{name}: {test} has no explanation" for test in verdict.failed]
    found += [f"{name}: {test} passes, but is expected to fail" for test in verdict.surprises]
    return found if verdict.passed else [*found, f"{name}: no test passed"]


def wrong_claims(name: str, verdict: Verdict, suite: Suite) -> list[str]:
    """Tests that pass on Apache Kafka, although an expectation says that they do not."""
    claimed = [
        test
        for row, tests in (*verdict.expected.items(), *verdict.skipped.items())
        if row.cause is Cause.KAFKA_TOO
        for test in tests
    ]
    if not claimed:
        return []
    there = run_on(kafka, suite)
    return [
        f"{name}: {test} passes on Apache Kafka, so its explanation is wrong"
        for test in claimed
        if there.get(test) is Outcome.PASSED
    ]


COMPAT_TARGETS: dict[str, Callable[[bool], Figures]] = {"compat": prove_compat}
