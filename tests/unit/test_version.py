"""The version, from an installed package and from a source tree."""

import importlib.util
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bucketlog
from bucketlog.cli.main import app
from bucketlog.version import UNKNOWN, package_version

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def not_found(_name: str) -> str:
    raise PackageNotFoundError


def test_it_is_that_of_the_project() -> None:
    assert bucketlog.__version__ == tomllib.loads(PYPROJECT.read_text())["project"]["version"]
    assert "__version__" in dir(bucketlog)


def test_a_source_tree_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketlog.version.version", not_found)
    assert package_version() == tomllib.loads(PYPROJECT.read_text())["project"]["version"]


@pytest.mark.parametrize("text", ["", "[project]\nname = 'other'\nversion = '3'\n"])
def test_another_project_around_it_does_not_count(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketlog.version.version", not_found)
    pyproject = tmp_path / "pyproject.toml"
    assert package_version(pyproject) == UNKNOWN
    pyproject.write_text(text)
    assert package_version(pyproject) == UNKNOWN


def test_the_command_line_says_whether_kernels_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.output.splitlines() == [bucketlog.__version__, "compiled code: yes"]
    found = importlib.util.find_spec

    def without_llvmlite(name: str) -> object:
        return None if name == "llvmlite" else found(name)

    monkeypatch.setattr(importlib.util, "find_spec", without_llvmlite)
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.output.splitlines()[1] == "compiled code: no, install bucketlog[broker] for it"
