"""The SDK's types as a user sees them: bucketlog installed from its wheel among what it requires,
no stubs but Protobuf's, no settings of this repository, and each example and each snippet of the
documents as it stands there."""

import json
import re
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "docs/sdk.md", "docs/testing.md")
PROJECT = "tests/sample_project"
EXAMPLES = "examples"
EXTRAS = {
    "arrow",
    "avro",
    "embedded",
    "duckdb",
    "otel",
    "pandas",
    "polars",
    "protobuf",
    "registry",
    "spark",
}
FOR_TESTS = ("pytest", "pytest-asyncio", "pytest-xdist")
STUBS = "types-protobuf"
"""Protobuf has none of its own, as docs/sdk.md says."""
WRONG = """
import bucketlog
from bucketlog.testing import TopicFactory

def wrong(log: bucketlog.Log, factory: TopicFactory) -> None:
    words = bucketlog.Topic("words", value=str)
    with log.producer() as producer:
        producer.send(words, 1)
    for record in log.consumer(factory.like(words)):
        number: int = record.value
"""
WRONG_LINES = [8, 10]
"""What a checker must complain of, else it has not seen the types."""


class User:
    """Someone's environment, and the folder with their code."""

    def __init__(self, folder: Path) -> None:
        self.code = folder / "code"
        environment = folder / "venv"
        venv.create(environment)
        self.python = environment / "bin" / "python"
        (packages,) = environment.glob("lib/python*/site-packages")
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        (wheel,) = (folder / "dist").glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            self.top_level = {name.partition("/")[0] for name in archive.namelist()}
            archive.extractall(packages)
        (installed,) = packages.glob("bucketlog-*.dist-info")
        for root in (Distribution.at(installed), *map(distribution, (*FOR_TESTS, STUBS))):
            for required in closure(root, EXTRAS):
                link(required, packages)
        self._write_code()

    def _write_code(self) -> None:
        self.code.mkdir()
        for document in DOCUMENTS:
            text = (ROOT / document).read_text()
            snippets = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
            assert snippets
            stem = Path(document).stem.lower()
            for number, snippet in enumerate(snippets):
                (self.code / f"{stem}_{number}.py").write_text(snippet)
        for source in (*(ROOT / PROJECT).rglob("*.py"), *(ROOT / EXAMPLES).glob("*.py")):
            (self.code / source.name).write_text(source.read_text())
        (self.code / "wrong.py").write_text(WRONG)


def closure(root: Distribution, extras: set[str]) -> Iterator[Distribution]:
    """What `pip install` of it would install, without it."""
    seen: set[tuple[str, str]] = set()
    waiting = [(root, frozenset(extras))]
    while waiting:
        found, chosen = waiting.pop()
        yield found
        for text in found.requires or ():
            needed = Requirement(text)
            wanted = needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in ("", *chosen)
            )
            key = (needed.name, ",".join(sorted(needed.extras)))
            if wanted and key not in seen:
                seen.add(key)
                inner = root if needed.name == root.name else distribution(needed.name)
                waiting.append((inner, frozenset(needed.extras)))


def link(package: Distribution, packages: Path) -> None:
    for top in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
        target = packages / top
        if not target.exists():
            target.symlink_to(str(package.locate_file(top)))


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(tmp_path_factory.mktemp("user"))


def test_mypy_strict(user: User) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--cache-dir=/dev/null",
            "--python-executable",
            user.python,
            ".",
        ],
        cwd=user.code,
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line for line in complaints if not line.startswith("wrong.py:")] == [], done.stderr
    assert [int(line.split(":")[1]) for line in complaints] == WRONG_LINES


def test_pyright_strict(user: User) -> None:
    (user.code / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", user.python, "."],
        cwd=user.code,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    complaints = [
        (Path(row["file"]).name, row["range"]["start"]["line"] + 1, row["message"]) for row in found
    ]
    assert [row for row in complaints if row[0] != "wrong.py"] == []
    assert sorted({line for _, line, _ in complaints}) == WRONG_LINES


def test_the_wheel_has_one_top_level_package(user: User) -> None:
    packages = {name for name in user.top_level if not name.endswith(".dist-info")}
    assert packages == {"bucketlog"}
