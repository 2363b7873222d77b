"""Transaction tests of other clients, run against a broker.

Invariant: the tests run unchanged. They get the address of a broker. A pytest plugin replaces
fixtures that start brokers (`tests/scenarios/given_broker.py`). A suite that does not report each
of its tests has failed.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree

from bucketlog.log_format.errors import BucketlogError

SUITE_LIMIT_S = 1800.0
KAFKA_VERSION = "4.3.1"
"""The tests choose their expectations by this version."""
PLUGIN = Path(__file__).with_name("given_broker.py")
GO_RESULT = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
TAIL_LINES = 40


class SuiteError(BucketlogError):
    """A suite did not run to its end; the results of its tests are unknown."""

    code = "CLIENT_SUITE"


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


Outcomes = dict[str, Outcome]
"""Outcomes by the name of the test in its suite."""


class Suite(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> int:
        """Partitions of automatically created topics; the tests rely on this number."""
        ...

    @property
    def port(self) -> int:
        """The port at which the tests expect the broker; 0: the tests are given the address."""
        ...

    def run(self, bootstrap: str, folder: Path) -> Outcomes:
        """Run the suite in `folder`, an empty folder for its output. Raises `SuiteError`."""
        ...


@dataclass(frozen=True, slots=True)
class PytestSuite:
    name: str
    tree: Path
    """The client's repository or source distribution."""
    parts: tuple[str, ...]
    """Parts of `tree` that the tests need. The tests use the installed client."""
    tests: tuple[str, ...]
    python: Path
    package: str = ""
    """A folder of tests that is a package in the repository, but not in the distribution."""
    partitions: int = 1
    port: int = 0
    arguments: tuple[str, ...] = ()
    address_variable: str = "GIVEN_BROKER"
    scheme: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, bootstrap: str, folder: Path) -> Outcomes:
        for part in self.parts:
            source = self.tree / part
            if source.is_dir():
                shutil.copytree(source, folder / part)
            else:
                shutil.copy(source, folder / part)
        if self.package:
            (folder / self.package / "__init__.py").touch()
        plugins = folder / "plugins"
        plugins.mkdir()
        shutil.copy(PLUGIN, plugins)
        report = folder / "report.xml"
        command = [str(self.python), "-m", "pytest", "-q", "-p", PLUGIN.stem, *self.arguments]
        environment = {
            "GIVEN_BROKER": bootstrap,
            "PYTHONPATH": str(plugins),
            self.address_variable: self.scheme + bootstrap,
            **self.variables,
        }
        run_program([*command, f"--junitxml={report}", *self.tests], folder, environment)
        return junit_outcomes(read_report(report, folder))


@dataclass(frozen=True, slots=True)
class GoSuite:
    name: str
    program: Path
    pattern: str
    variables: Mapping[str, str]
    partitions: int = 1
    port: int = 0

    def run(self, bootstrap: str, folder: Path) -> Outcomes:
        command = [str(self.program), f"-test.run={self.pattern}", "-test.v"]
        limit = f"-test.timeout={SUITE_LIMIT_S:.0f}s"
        output = run_program(
            [*command, limit],
            folder,
            {"KGO_SEEDS": bootstrap, "KGO_TEST_RF": "1", **self.variables},
        )
        return go_outcomes(output)


@dataclass(frozen=True, slots=True)
class LibrdkafkaSuite:
    name: str
    program: Path
    tests: tuple[str, ...]
    partitions: int = 4
    port: int = 0

    def run(self, bootstrap: str, folder: Path) -> Outcomes:
        (folder / "test.conf").write_text(
            f"metadata.broker.list={bootstrap}\ntest.topic.random=true\n"
        )
        report, root = folder / "report.json", self.program.parents[1]
        environment = {
            "TESTS": ",".join(self.tests),
            "TEST_KAFKA_VERSION": KAFKA_VERSION,
            "TEST_REPORT": report.name,
            "LD_LIBRARY_PATH": f"{root / 'src'}:{root / 'src-cpp'}",
        }
        # sequentially, and without the tests that need no broker
        run_program([str(self.program), "-p1", "-L"], folder, environment)
        return librdkafka_outcomes(read_report(report, folder))


@dataclass(frozen=True, slots=True)
class JestSuite:
    name: str
    tree: Path
    """The client's repository, with its `node_modules`."""
    tests: tuple[str, ...]
    partitions: int = 1
    port: int = 9092

    def run(self, bootstrap: str, folder: Path) -> Outcomes:
        report = folder / "report.json"
        command = ["node", "node_modules/jest/bin/jest.js", "--ci", "--runInBand", "--forceExit"]
        reported = ["--json", f"--outputFile={report}", "--reporters=default", "--"]
        environment = {"KAFKA_VERSION": KAFKA_VERSION, "NODE_ENV": "test"}
        run_program([*command, *reported, *self.tests], folder, environment, cwd=self.tree)
        return jest_outcomes(read_report(report, folder))


def run_program(
    command: list[str], folder: Path, environment: Mapping[str, str], *, cwd: Path | None = None
) -> str:
    """The output of the program, whatever its exit code. Raises `SuiteError` if it does not
    end."""
    log = folder / "output.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=cwd or folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            process.wait(SUITE_LIMIT_S + 60)
        except subprocess.TimeoutExpired:
            raise SuiteError(
                f"{command[0]} does not end after {SUITE_LIMIT_S:.0f} s", remedy=tail(folder)
            ) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return log.read_text(errors="replace")


def tail(folder: Path) -> str:
    lines = (folder / "output.log").read_text(errors="replace").splitlines()
    return "\n".join(lines[-TAIL_LINES:])


def read_report(path: Path, folder: Path) -> str:
    if not path.exists():
        raise SuiteError(f"{path.stem}: the suite wrote no report", remedy=tail(folder))
    return path.read_text(errors="replace")


def junit_outcomes(report: str) -> Outcomes:
    found: Outcomes = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        kinds = {part.tag for part in case}
        if kinds & {"failure", "error"}:
            found[name] = Outcome.FAILED
        elif found.get(name) is not Outcome.FAILED:  # an error of the teardown is a second entry
            found[name] = Outcome.SKIPPED if "skipped" in kinds else Outcome.PASSED
    return found


def go_outcomes(output: str) -> Outcomes:
    words = {"PASS": Outcome.PASSED, "FAIL": Outcome.FAILED, "SKIP": Outcome.SKIPPED}
    return {name: words[word] for word, name in GO_RESULT.findall(output)}


def librdkafka_outcomes(report: str) -> Outcomes:
    words = {"PASSED": Outcome.PASSED, "SKIPPED": Outcome.SKIPPED}
    return {
        name: words.get(test["state"], Outcome.FAILED)
        for name, test in json.loads(report)["tests"].items()
        if name != "<MAIN>"
    }


def jest_outcomes(report: str) -> Outcomes:
    words = {"passed": Outcome.PASSED, "pending": Outcome.SKIPPED, "todo": Outcome.SKIPPED}
    found: Outcomes = {}
    for file in json.loads(report)["testResults"]:
        for test in file["assertionResults"]:
            found[test["fullName"]] = words.get(test["status"], Outcome.FAILED)
    return found
