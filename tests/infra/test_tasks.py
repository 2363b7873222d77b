"""What the modules say of brokers against the brokers themselves: settings, ports, paths, the start
of a task, lines of the log.
"""

import ipaddress
import logging
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.process.http_endpoint import PAGES
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.infra import costs, pages
from tests.infra.programs import EXAMPLES, MODULES
from tests.rigs.patience import PATIENCE_S

pytestmark = pytest.mark.long

BROKER = (MODULES / "broker" / "main.tf").read_text()
PREFIX = "BUCKETLOG_"


def test_every_setting_is_one() -> None:
    text = "\n".join(path.read_text() for path in MODULES.glob("broker/*.tf"))
    settings = {f"{PREFIX}{name.upper()}" for name in BrokerSettings.model_fields}
    named = set(re.findall(rf"\b{PREFIX}[A-Z0-9_]*[A-Z0-9]\b", text))
    assert named <= settings
    required = {
        f"{PREFIX}{name.upper()}"
        for name, field in BrokerSettings.model_fields.items()
        if field.is_required()
    }
    assert required <= named


def test_a_broker_is_killed_after_it_has_drained() -> None:
    (drain_ms,) = re.findall(
        r"stop_timeout_s >= (\d+)", (MODULES / "broker" / "variables.tf").read_text()
    )
    assert int(drain_ms) * 1000 > BrokerSettings.model_fields["drain_timeout_ms"].default


def start_of_a_task() -> str:
    (lines,) = re.findall(r'start = join\(" && ", \[(.*?)\n  \]\)', BROKER, re.DOTALL)
    return " && ".join(re.findall(r'^    "(.*)",$', lines, re.MULTILINE))


def test_a_task_advertises_its_address_and_is_the_broker_itself(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "$2" = -m ] && echo "$$ $BUCKETLOG_ADVERTISED_HOST $*" && exit\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(
        ["/bin/sh", "-c", start_of_a_task()], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        said, _ = process.communicate(timeout=PATIENCE_S)
    pid, address, *command = said.split()
    assert int(pid) == process.pid, "signals would go to a shell"
    assert ipaddress.ip_address(address).version == 4
    assert command == ["-P", "-m", "bucketlog.stateless_broker"]


def test_a_task_whose_address_is_not_known_does_not_start(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\n[ "$2" = -m ] && echo started\nexit 1\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", "-c", start_of_a_task()], env=environment, capture_output=True, check=False
    )
    assert done.returncode != 0
    assert not done.stdout


def test_the_health_check_asks_for_a_path_that_is_there() -> None:
    (path,) = re.findall(r"\$\{local\.http_port\}(/\w+)", BROKER)
    assert path in {page.path for page in PAGES}


def test_alarms_are_made_of_lines_that_brokers_write(caplog: pytest.LogCaptureFixture) -> None:
    (lines,) = re.findall(
        r"log_lines = \{\n(.*?)\n  \}",
        (MODULES / "observability" / "main.tf").read_text(),
        re.DOTALL,
    )
    patterns = re.findall(r'pattern = "\\"(.*?)\\""', lines)
    assert len(patterns) == len(lines.splitlines())
    with caplog.at_level(logging.WARNING):
        health = Health()
        health.stop_writing("damage")
        health.degrade(BrokerPart.BUCKET, "it is away")
    for pattern in patterns:
        assert any(pattern in line for line in caplog.messages), pattern


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.parent.name)
def test_every_module_has_a_page(page: Path) -> None:
    text = page.read_text()
    assert text == pages.with_tables(text, page.parent), "run: python -m tests.infra.pages"


@pytest.mark.parametrize("page", costs.pages(), ids=lambda page: page.parent.name)
def test_every_example_says_what_it_costs(page: Path) -> None:
    text = page.read_text()
    assert text == costs.with_costs(text, page.parent), "run: python -m tests.infra.costs"


def test_costs_are_those_computed_by_hand() -> None:
    month = costs.month(costs.fleet_of(EXAMPLES / "minimal"), 1.0)
    assert month["brokers"] == pytest.approx(720 * (0.03238 + 2 * 0.00356))
    puts = 4 * 86_400 + 1440
    requests = puts * (0.005 + 3 * 0.0004) + 4 * 1440 * 0.005
    assert month["S3: requests"] == pytest.approx(30 * requests / 1000)
