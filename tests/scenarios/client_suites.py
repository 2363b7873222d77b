"""Tests of Kafka clients, run against a broker.

Invariant: the tests run unchanged. They get the address of a broker. A pytest plugin replaces
fixtures that start brokers (`tests/scenarios/given_broker.py`). A suite that does not report each
of its tests has failed.
"""

import json
import os
import re
import shlex
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
from localstack.kafka_jars import installed_jars, java_program
from tests.servers.kafka_tools import CLASSES, QUICK_START

SUITE_LIMIT_S = 1800.0
KAFKA_VERSION = "4.3.1"
"""The tests choose their expectations by this version."""
PLUGIN = Path(__file__).with_name("given_broker.py")
KAFKA_TOOLS = ("kafka-acls", "kafka-topics")
TIMEOUT_FACTOR = 3
"""Some of librdkafka's tests start Java within 20 s, which takes longer on a busy machine."""
SESSION_TIMEOUT_MS_MIN = 6_000
"""Kafka's default of `group.min.session.timeout.ms`."""
REBALANCE_DELAY_MS = 1_000
"""Some tests expect that consumers that start together get their partitions together."""
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


@dataclass(frozen=True, slots=True)
class BrokerNeeds:
    """The brokers that the tests of a suite expect."""

    partitions: int = 1
    """Partitions of automatically created topics; the tests rely on this number."""
    port: int = 0
    """The port at which the tests expect the broker; 0: the tests are given the address."""
    host: str = "127.0.0.1"
    """The host name at which the tests expect the broker."""
    brokers: int = 1
    node_id: int = 1
    """The node id of the first broker; each further broker has the next id."""
    session_timeout_ms_min: int = SESSION_TIMEOUT_MS_MIN
    """`group.min.session.timeout.ms` of the brokers."""
    rebalance_delay_ms: int = REBALANCE_DELAY_MS
    """`group.initial.rebalance.delay.ms` of the brokers."""
    creates_topics: bool = True
    """`auto.create.topics.enable` of the brokers."""
    advertised_port: int = 0
    """The port that the first broker advertises; each further broker has the next port. 0: each
    broker advertises the port at which it listens."""


class Suite(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> BrokerNeeds: ...

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
    needs: BrokerNeeds = BrokerNeeds()
    arguments: tuple[str, ...] = ()
    address_variable: str = "GIVEN_BROKER"
    scheme: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    imports: tuple[Path, ...] = ()
    """Folders with packages that the tests import, in addition to the packages of `python`."""

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
            "PYTHONPATH": os.pathsep.join(map(str, (plugins, *self.imports))),
            self.address_variable: self.scheme + bootstrap,
            **self.variables,
        }
        run_program([*command, f"--junitxml={report}", *self.tests], folder, environment)
        return junit_outcomes(read_report(report, folder))


@dataclass(frozen=True, slots=True)
class LibrdkafkaSuite:
    name: str
    sources: Path
    """librdkafka's sources, with the libraries and the tests, built."""
    needs: BrokerNeeds
    tests: tuple[str, ...] = ()
    """The numbers of the tests; none: all tests that need a broker."""
    scenario: str = "default"
    """A scenario of librdkafka's tests. It selects tests by what their brokers do."""
    omitted: tuple[str, ...] = ()

    def run(self, bootstrap: str, folder: Path) -> Outcomes:
        tests = self._tree(folder)
        (tests / "test.conf").write_text(
            f"metadata.broker.list={bootstrap}\ntest.topic.random=true\n"
            f"test.timeout.multiplier={TIMEOUT_FACTOR}\n"
        )
        report = tests / "report.json"
        environment = {
            "BROKERS": bootstrap,
            "KAFKA_PATH": str(kafka_tools(folder / "kafka")),
            "TEST_KAFKA_VERSION": KAFKA_VERSION,
            "TEST_REPORT": report.name,
            "TEST_SCENARIO": self.scenario,
            "LD_LIBRARY_PATH": f"{self.sources / 'src'}:{self.sources / 'src-cpp'}",
        }
        if self.tests:
            environment["TESTS"] = ",".join(self.tests)
        if self.omitted:
            environment["TESTS_SKIP"] = ",".join(self.omitted)
        # one after the other, quick forms, without the tests that need no broker
        command = [str(tests / "test-runner"), "-p1", "-Q", "-L"]
        run_program(command, folder, environment, cwd=tests)
        found = librdkafka_outcomes(read_report(report, folder))
        not_run = local_tests((tests / "test.c").read_text())
        if self.tests:
            not_run |= {name for name in found if name[:4] not in self.tests}
        return {name: outcome for name, outcome in found.items() if name not in not_run}

    def _tree(self, folder: Path) -> Path:
        """A copy of the tests, which write beside themselves, with links to the other sources."""
        for path in self.sources.iterdir():
            if path.name != "tests":
                (folder / path.name).symlink_to(path)
        ignored = shutil.ignore_patterns("*.o", "*.d")
        return Path(shutil.copytree(self.sources / "tests", folder / "tests", ignore=ignored))


@dataclass(frozen=True, slots=True)
class JestSuite:
    name: str
    tree: Path
    """The client's repository, with its `node_modules`."""
    tests: tuple[str, ...]
    needs: BrokerNeeds

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


def librdkafka_outcomes(report: str) -> Outcomes:
    words = {"PASSED": Outcome.PASSED, "SKIPPED": Outcome.SKIPPED}
    return {
        name: words.get(test["state"], Outcome.FAILED)
        for name, test in json.loads(report)["tests"].items()
        if name != "<MAIN>"
    }


def local_tests(source: str) -> set[str]:
    """The tests that librdkafka's list marks as tests without a broker, or as manual tests."""
    flags = r"\b_TEST\(\s*(\w+),([^()]*)"
    return {
        name
        for name, rest in re.findall(flags, source)
        if re.search(r"TEST_F_(LOCAL|MANUAL)\b", rest)
    }


def kafka_tools(folder: Path) -> Path:
    """Write the parts of a Kafka distribution that librdkafka's tests use: scripts, and libraries
    to compile programs of theirs with."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    (folder / "libs").symlink_to(installed_jars())
    java = [java_program(), *QUICK_START, "-cp", f"{installed_jars()}/*"]
    for name in KAFKA_TOOLS:
        _write_script(programs / f"{name}.sh", f'{shlex.join([*java, CLASSES[name]])} "$@"')
    with_own_classes = f'{shlex.join(java)}":$CLASSPATH" "$@"'
    _write_script(programs / "kafka-run-class.sh", with_own_classes)
    return folder


def _write_script(path: Path, command: str) -> None:
    path.write_text(f"#!/bin/sh\nexec {command}\n")
    path.chmod(0o700)


def jest_outcomes(report: str) -> Outcomes:
    words = {"passed": Outcome.PASSED, "pending": Outcome.SKIPPED, "todo": Outcome.SKIPPED}
    found: Outcomes = {}
    for file in json.loads(report)["testResults"]:
        for test in file["assertionResults"]:
            found[test["fullName"]] = words.get(test["status"], Outcome.FAILED)
    return found
