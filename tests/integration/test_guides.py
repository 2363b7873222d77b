"""The tutorial and the how-to guides: each of their code blocks runs, or is parsed, as it is there.

The blocks of a page run in order, in one folder and one shell. A Python block that begins with the
name of a file is that file; the others of a page are one program. Lines of `text` blocks are in the
output of the commands.
"""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.models.repository import ROOT
from tests.servers.cluster import free_port

pytestmark = pytest.mark.long

GUIDES = sorted(path.name for path in (ROOT / "docs/guides").glob("*.md"))
PAGES = ["docs/tutorial.md", *(f"docs/guides/{name}" for name in GUIDES)]
ADDRESS = "localhost:9092"
BUCKET = "s3://bucket/prefix"
METRICS = "http://127.0.0.1:8080/metrics"
WEB_PORT = "8123"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# (\S+)\n")
BEFORE = re.compile(r"^(python3 -m venv|\. \.venv|pip install|bucketlog dev ).*\n", re.MULTILINE)
"""Lines that set up what the test has already: `make prove WHAT=newcomer` runs such lines."""
KINDS = {"python", "sh", "text", "ini", "yaml", "properties", "json"}


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text())


def script_of(page: str, folder: Path) -> tuple[str, list[str]]:
    """Writes the page's files. Returns its shell commands and the lines that they print."""
    commands, lines, cells = ["set -euo pipefail"], [], []
    for kind, text in blocks(page):
        named = NAME.match(text)
        if kind == "python" and named:
            (folder / named[1]).write_text(text)
        elif kind == "python":
            cells.append(text)
            (folder / "cells.py").write_text("\n".join(cells))
            if len(cells) == 1:
                commands.append("run_cells")
        elif kind == "sh":
            commands.append(BEFORE.sub("", text))
        elif kind == "text":
            lines += text.splitlines()
    run_cells = f"run_cells() {{ {sys.executable} -W error cells.py; }}"
    return "\n".join([commands[0], run_cells, *commands[1:]]), lines


def check_parsed(kind: str, text: str) -> None:
    match kind:
        case "ini":
            unit = configparser.ConfigParser(strict=False)
            unit.read_string(text)
            assert {"Unit", "Service"} <= set(unit.sections())
        case "json":
            json.loads(text)
        case "properties":
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            assert all(re.fullmatch(r"[\w.]+=\S+", line) for line in lines)
        case "yaml":
            for service in yaml.safe_load(text)["services"].values():
                for variable in service["environment"]:
                    name = variable.removeprefix("BUCKETLOG_").lower()
                    assert name in BrokerSettings.model_fields, variable


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_runs(page: str, tmp_path: Path) -> None:
    assert {kind for kind, _ in blocks(page)} <= KINDS
    for kind, text in blocks(page):
        check_parsed(kind, text)
    work = tmp_path / "work"
    work.mkdir()
    script, lines = script_of(page, work)
    if script.count("\n") < 2:
        return  # nothing to run
    shell = shutil.which("bash")
    assert shell is not None
    with EmbeddedCluster(tmp_path / "data") as cluster:
        actual = {
            ADDRESS: cluster.bootstrap,
            BUCKET: cluster.bucket_url,
            METRICS: f"http://{cluster.host}:{cluster.http_port}/metrics",
            WEB_PORT: str(free_port()),
        }
        for path in work.iterdir():
            path.write_text(replaced(path.read_text(), actual))
        done = subprocess.run(
            [shell, "-c", replaced(script, actual)],
            cwd=work,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "BUCKETLOG_BOOTSTRAP": cluster.bootstrap,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    at = 0
    printed = done.stdout.splitlines()
    for line in lines:
        assert line in printed[at:], f"{line!r} is not printed:\n{done.stdout}\n{done.stderr}"
        at += printed[at:].index(line) + 1


def replaced(text: str, actual: dict[str, str]) -> str:
    """In one pass: a port may contain the digits of another name."""
    return re.sub("|".join(map(re.escape, actual)), lambda found: actual[found[0]], text)


def test_a_value_with_the_digits_of_another_name_stays() -> None:
    actual = {ADDRESS: f"127.0.0.1:3{WEB_PORT}", WEB_PORT: "28482"}
    assert replaced(f"{ADDRESS} {WEB_PORT}", actual) == f"127.0.0.1:3{WEB_PORT} 28482"


def test_a_line_that_is_not_printed_is_found(tmp_path: Path) -> None:
    script, lines = script_of("docs/guides/lag.md", tmp_path)
    assert "python check_lag.py cleanup 100" in script
    assert "too far behind" in lines
    assert (tmp_path / "check_lag.py").is_file()
