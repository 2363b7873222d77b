"""The project files agree with the code: versions, the changelog, hosted CI, commit hooks."""

import re
import tomllib
from collections.abc import Iterable
from typing import Any

import pytest
import yaml

from tests.models.repository import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
KINDS = [kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]]
FRAGMENT = re.compile(rf"\+[a-z0-9-]+\.({'|'.join(KINDS)})\.md")


def misnamed(names: Iterable[str]) -> list[str]:
    """Those that the changelog would leave out."""
    return [name for name in names if name != "README.md" and not FRAGMENT.fullmatch(name)]


def test_every_news_fragment_gets_into_the_changelog() -> None:
    assert misnamed(path.name for path in (ROOT / "newsfragments").iterdir()) == []


@pytest.mark.parametrize("name", ["42.added.md", "+x.feature.md", "+x.added.txt", "x.added.md"])
def test_a_misnamed_fragment_is_found(name: str) -> None:
    assert misnamed([name, "+x.added.md", "README.md"]) == [name]


def test_the_kinds_of_news_are_explained() -> None:
    text = (ROOT / "newsfragments" / "README.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == KINDS


def test_the_changelog_begins_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (.+)$", text, re.MULTILINE)
    assert newest is not None
    assert newest[1] == PROJECT["project"]["version"]


def test_hosted_ci_runs_every_python_of_the_wheel() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yaml").read_text())
    job = workflow["jobs"]["run"]
    prefix = "Programming Language :: Python :: 3."
    classifiers = PROJECT["project"]["classifiers"]
    named = [text.rpartition(" ")[2] for text in classifiers if text.startswith(prefix)]
    assert job["strategy"]["matrix"]["python"] == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    assert ".ci/run" in [step.get("run") for step in job["steps"]]


def test_the_commit_hooks_are_what_make_lint_runs() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert lint is not None
    commands = [line.strip().removeprefix("@").removesuffix(" .") for line in lint[1].splitlines()]
    entries = [hook["entry"].replace(".venv/bin", "$(BIN)") for hook in hooks]
    assert entries[: len(commands)] == commands


LISTS = (
    "constraints.txt",
    "infra/container/requirements.txt",
    "localstack/requirements.txt",
    "scripts/build_tools.txt",
    "scripts/supply_tools.txt",
    "tests/infra/linters.txt",
    "tests/infra/schemas.txt",
)
PINNED = re.compile(r"([\w.-]+)==(\S+)(?: ;[^\\]*)?((?: *\\\n +--hash=sha256:[0-9a-f]{64})+)\n")


def unpinned(text: str) -> list[str]:
    """The rest of a list without its comments and its packages with versions and hashes."""
    return PINNED.sub("", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).split("\n")[:-1]


def versions(name: str) -> dict[str, str]:
    return {found[1]: found[2] for found in PINNED.finditer((ROOT / name).read_text())}


@pytest.mark.parametrize("name", LISTS)
def test_every_package_of_a_list_has_its_hashes(name: str) -> None:
    assert unpinned((ROOT / name).read_text()) == []
    assert versions(name)


@pytest.mark.parametrize(
    "line",
    [
        "six==1.17.0\n",
        "six \\\n    --hash=sha256:00\n",
        "six>=1\n",
        "--index-url https://example\n",
    ],
)
def test_a_package_without_hashes_is_found(line: str) -> None:
    sound = f"# comment\nsix==1.17.0 ; x == 'y' \\\n    --hash=sha256:{'0' * 64}\n"
    assert unpinned(sound) == []
    assert unpinned(sound + line) != []


def test_what_builds_and_runs_the_image_is_what_is_tested() -> None:
    tested = versions("constraints.txt").items()
    assert versions("infra/container/requirements.txt").items() <= tested
    assert versions("scripts/build_tools.txt").items() <= tested
    (builder,) = PROJECT["build-system"]["requires"]
    assert builder == f"hatchling=={versions('constraints.txt')['hatchling']}"
