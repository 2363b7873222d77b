"""The image's Dockerfile: linted, and held against the package and the broker. It cannot be built
here; what it copies can.
"""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.infra.programs import INFRA, MODULES, ROOT, installed, run
from tests.servers.components import Components

pytestmark = pytest.mark.long

DOCKERFILE = INFRA / "container" / "Dockerfile"
TEXT = DOCKERFILE.read_text()


@pytest.fixture(scope="module")
def hadolint(components: Components) -> Path:
    path = installed("linters", components).with_name("hadolint")
    components.took_part("hadolint", run([path, "--version"], ROOT).stdout.strip())
    return path


def found(hadolint: Path, file: Path) -> list[str]:
    done = run([hadolint, "--format", "json", file], ROOT)
    return [
        f"{one['code']} line {one['line']}: {one['message']}" for one in json.loads(done.stdout)
    ]


def test_hadolint(hadolint: Path, tmp_path: Path) -> None:
    assert found(hadolint, DOCKERFILE) == []
    assert "hadolint ignore" not in TEXT
    planted = tmp_path / "Dockerfile"
    planted.write_text("FROM python:latest\nRUN apt-get install curl\nCMD python -m x\n")
    codes = {text.split()[0] for text in found(hadolint, planted)}
    assert {"DL3007", "DL3008", "DL3025"} <= codes


def test_what_is_copied_is_the_whole_package(tmp_path: Path) -> None:
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.*)$", TEXT, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    context = tmp_path / "context"
    context.mkdir()
    for source in copied:
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / source, context / source, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / source, context)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=context, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    folders = [source for source in copied if (ROOT / source).is_dir()]
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(listed) > 100
    rooms = {path.removeprefix("bucketlog/") for path in listed if (ROOT / path).is_symlink()}
    assert rooms == set(folders) - {"bucketlog"}
    assert {
        path if path.startswith("bucketlog/") else f"bucketlog/{path}"
        for path in listed
        if not (ROOT / path).is_symlink()
    } <= packed
    allowed = re.findall(
        r"^!(\S+)$", (DOCKERFILE.parent / f"{DOCKERFILE.name}.dockerignore").read_text(), re.M
    )
    assert sorted(allowed) == sorted(copied)


def test_it_speaks_of_brokers_as_they_are() -> None:
    settings = {f"BUCKETLOG_{name.upper()}": name for name in BrokerSettings.model_fields}
    given = dict(re.findall(r"\b(BUCKETLOG_\w+)=(\S+)", TEXT))
    assert set(given) <= set(settings)
    ports = {given["BUCKETLOG_PORT"], given["BUCKETLOG_HTTP_PORT"]}
    (exposed,) = re.findall(r"^EXPOSE (.*)$", TEXT, re.MULTILINE)
    assert set(exposed.split()) == ports
    broker = (MODULES / "broker" / "main.tf").read_text()
    assert set(re.findall(r"^  (?:kafka|http)_port += (\d+)$", broker, re.MULTILINE)) == ports
    assert f":{given['BUCKETLOG_HTTP_PORT']}/healthz'" in TEXT


def test_it_runs_as_nobody_and_gets_the_signals() -> None:
    final = TEXT.rpartition("FROM ")[2]
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", final, re.MULTILINE)
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", final, re.MULTILINE)
    assert json.loads(entry) == ["python", "-P", "-m", "bucketlog.stateless_broker"]
