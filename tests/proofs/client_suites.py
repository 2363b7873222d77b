"""The proof that other clients' transaction tests pass: a target of `tests.proofs`."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bucketlog.embedded.cluster import EmbeddedCluster
from localstack.apache_kafka import running_kafka
from tests.proofs.progress import tell
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.client_suites import Outcome, Outcomes, Suite, SuiteError
from tests.scenarios.known_suites import CHECKOUTS, RACES, left_out, suites
from tests.servers.cluster import is_free

INSTALL = "scripts/install.sh"
ROOT = Path(__file__).parents[2]


class Comparison(NamedTuple):
    passed: list[str]
    """Passed on both."""
    failed_here: list[str]
    """Passed on Kafka alone."""
    skipped_here: list[str]
    """Passed on Kafka; skipped here, because bucketlog lacks a feature that the test needs."""
    failed_on_kafka: list[str]
    """Failed on Kafka, so the result here proves nothing."""
    races: list[str]
    """Passed or failed by chance, on either broker (`RACES`)."""
    skipped: list[str]

    def as_json(self) -> Figures:
        excluded = {
            "failed_on_kafka": self.failed_on_kafka,
            "skipped_here": self.skipped_here,
            "races": self.races,
        }
        return {
            "run": sum(len(names) for names in self) - len(self.skipped),
            "passed_on_both": len(self.passed),
            "failed_here": self.failed_here,
            **{word: names for word, names in excluded.items() if names},
        }


def compare(kafka: Outcomes, here: Outcomes) -> Comparison:
    """Compare the outcomes by test. A test that is not reported counts as failed."""
    found = Comparison([], [], [], [], [], [])
    for name in sorted(kafka.keys() | here.keys()):
        if name in RACES:
            found.races.append(name)
            continue
        match kafka.get(name, Outcome.FAILED), here.get(name, Outcome.FAILED):
            case Outcome.PASSED, Outcome.PASSED:
                found.passed.append(name)
            case Outcome.PASSED, Outcome.SKIPPED:
                found.skipped_here.append(name)
            case Outcome.PASSED, _:
                found.failed_here.append(name)
            case Outcome.FAILED, _:
                found.failed_on_kafka.append(name)
            case _:
                found.skipped.append(name)
    return found


def prove_client_suites(short: bool) -> Figures:
    """Other clients' transaction tests that pass on Apache Kafka also pass here."""
    if short:
        return {"left_out": "the short form leaves this out: the clients are built for minutes"}
    subprocess.run([ROOT / INSTALL, "kafka-tools", "client-suites"], check=True, stdout=sys.stderr)
    done = subprocess.run(
        [ROOT / INSTALL, "--where", "client-suites"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ShortfallError("the clients' tests are not installed", {})
    installed, named = Path(done.stdout.strip()), os.environ.get(CHECKOUTS)
    checkouts = Path(named) if named else None
    figures: Figures = {"left_out": left_out(checkouts)}
    problems: list[str] = []
    for suite in suites(installed, checkouts):
        if suite.port and not is_free(suite.port):
            figures["left_out"][suite.name] = f"its tests need port {suite.port}"
            continue
        try:
            found = compare(outcomes(suite, kafka), outcomes(suite, bucketlog))
        except SuiteError as error:
            tell(f"  {suite.name}: {error}\n{error.remedy}")
            raise ShortfallError(str(error), figures) from error
        figures[suite.name] = found.as_json()
        problems += [f"{suite.name}: {name}" for name in found.failed_here]
        if not found.passed:
            problems.append(f"{suite.name}: no test passed on both")
        tell(f"  {suite.name}: {figures[suite.name]}")
    if problems:
        raise ShortfallError(f"passed on Kafka alone: {'; '.join(problems)}", figures)
    return figures


def outcomes(suite: Suite, broker: Callable[[Path, Suite], Iterator[str]]) -> Outcomes:
    with tempfile.TemporaryDirectory(prefix="bucketlog-suite-") as name:
        folder = Path(name)
        written = folder / "suite"
        written.mkdir()
        with contextmanager(broker)(folder / "broker", suite) as bootstrap:
            return suite.run(bootstrap, written)


def kafka(folder: Path, suite: Suite) -> Iterator[str]:
    with running_kafka(folder, port=suite.port, partitions=suite.partitions) as broker:
        yield broker.bootstrap


def bucketlog(folder: Path, suite: Suite) -> Iterator[str]:
    settings = {"transactions": "true", "num_partitions": str(suite.partitions)}
    with EmbeddedCluster(folder, port=suite.port, settings=settings) as cluster:
        yield cluster.bootstrap


CLIENT_SUITE_TARGETS: dict[str, Callable[[bool], Figures]] = {"client-suites": prove_client_suites}
