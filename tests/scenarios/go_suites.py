"""Tests of Kafka clients in Go: a suite runs the compiled tests of one Go package.

Sarama's tests cut connections with Toxiproxy, which runs between the clients and the brokers.
"""

import json
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.rigs.patience import eventually
from tests.scenarios.client_suites import (
    KAFKA_VERSION,
    SUITE_LIMIT_S,
    BrokerNeeds,
    Outcome,
    Outcomes,
    SuiteError,
    run_program,
)
from tests.servers.cluster import free_port

GO_RESULT = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
PROXIED_PORT = 29_091
"""The port at which Sarama's tests expect the first broker; further brokers have the next ports."""
PROXIED_BROKERS = 5
PROXIED = BrokerNeeds(
    brokers=PROXIED_BROKERS,
    advertised_port=PROXIED_PORT,
    creates_topics=False,
    rebalance_delay_ms=0,
)
ONE_BROKER = BrokerNeeds()


@dataclass(frozen=True, slots=True)
class GoSuite:
    """The tests of one Go package."""

    name: str
    installed: Path
    """The folder with the package's test program and the sources of its module."""
    address_variable: str = "GIVEN_BROKER"
    pattern: str = "."
    """A regular expression for the names of the tests that run."""
    one_address: bool = False
    """Give the tests the address of the first broker only."""
    omitted: tuple[str, ...] = ()
    """Tests that do not run, and count as skipped."""
    package: str = "."
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that the tests read in the folder of their package: the text by the file's name."""
    variables: Mapping[str, str] = field(default_factory=dict)
    needs: BrokerNeeds = ONE_BROKER

    def run(self, bootstrap: str, folder: Path) -> Outcomes:
        program = self.installed / "suite.test"
        command = [str(program), f"-test.run={self.pattern}", "-test.v"]
        if self.omitted:
            command.append(f"-test.skip={'|'.join(map(whole_name, self.omitted))}")
        limit = f"-test.timeout={SUITE_LIMIT_S:.0f}s"
        address = bootstrap.split(",")[0] if self.one_address else bootstrap
        environment = {self.address_variable: address, **self.variables}
        output = run_program([*command, limit], folder, environment, cwd=self._package(folder))
        return go_outcomes(output) | dict.fromkeys(self.omitted, Outcome.SKIPPED)

    def _package(self, folder: Path) -> Path:
        """Make a folder for the tests, with links to the files of the package and with `files`."""
        package = folder / "package"
        package.mkdir()
        for path in (self.installed / "source" / self.package).iterdir():
            if path.name not in self.files:
                (package / path.name).symlink_to(path)
        for name, text in self.files.items():
            (package / name).write_text(text)
        return package


@dataclass(frozen=True, slots=True)
class SaramaSuite:
    """Sarama's functional tests."""

    name: str
    tests: GoSuite
    proxy: Path
    """The path of Toxiproxy's program."""
    needs: BrokerNeeds = PROXIED

    def run(self, bootstrap: str, folder: Path) -> Outcomes:
        with proxies(self.proxy, bootstrap.split(","), folder) as address:
            variables = {"TOXIPROXY_ADDR": address, "KAFKA_VERSION": KAFKA_VERSION}
            return replace(self.tests, variables=variables).run(bootstrap, folder)


@contextmanager
def proxies(program: Path, brokers: list[str], folder: Path) -> Iterator[str]:
    """Run Toxiproxy in front of the brokers, with the names and ports that Sarama's tests expect.
    Yields the address of Toxiproxy's API. Raises `SuiteError` if Toxiproxy does not start."""
    rows = [
        {
            "name": f"kafka{number}",
            "listen": f"127.0.0.1:{PROXIED_PORT + number - 1}",
            "upstream": broker,
            "enabled": True,
        }
        for number, broker in enumerate(brokers, 1)
    ]
    config = folder / "proxies.json"
    config.write_text(json.dumps(rows))
    port = free_port()
    command = [str(program), "-host", "127.0.0.1", "-port", str(port), "-config", str(config)]
    with (folder / "proxies.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for_api(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def wait_for_api(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until Toxiproxy listens. Raises `SuiteError` if Toxiproxy does not start."""

    def listens() -> bool:
        if process.poll() is not None:
            raise SuiteError("Toxiproxy does not start", remedy="read proxies.log")
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True

    eventually(listens, "Toxiproxy listens", despite=(OSError,))


def whole_name(test: str) -> str:
    """A pattern of Go for a test or subtest of this name."""
    return "/".join(f"^{part}$" for part in test.split("/"))


def go_outcomes(output: str) -> Outcomes:
    words = {"PASS": Outcome.PASSED, "FAIL": Outcome.FAILED, "SKIP": Outcome.SKIPPED}
    return {name: words[word] for word, name in GO_RESULT.findall(output)}
