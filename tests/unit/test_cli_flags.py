"""What holds of every command and flag: a variable, a page, a place in the completion."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from bucketlog.cli.config import Flag, broker_variables, flags_of
from bucketlog.cli.main import app, main
from bucketlog.stateless_broker.process.start_up import misspelt

if TYPE_CHECKING:
    from tests.servers.components import Components

ROOT = Path(__file__).parents[2]
WITHOUT_VARIABLE = {("", "--version")}
"""Flags that do something else than the command, so they are not settings."""
SHARED_WITH_BROKERS = {
    *("--port", "--http-port", "--safety-age-ms", "--encryption-key-file"),
    *("BUCKET", "bucket"),
}
COMMAND = typer.main.get_command(app)
FLAGS = list(flags_of(COMMAND))
OPTIONS = [flag for flag in FLAGS if flag.name.startswith("-")]


def id_of(flag: Flag) -> str:
    return f"{flag.command} {flag.name}"


@pytest.mark.parametrize("flag", OPTIONS, ids=id_of)
def test_every_flag_has_a_variable_of_its_name(flag: Flag) -> None:
    if (flag.command, flag.name) in WITHOUT_VARIABLE:
        assert flag.variable is None
        return
    assert flag.variable is not None
    assert flag.variable.startswith("BUCKETLOG_")
    assert flag.variable.endswith(flag.name.lstrip("-").replace("-", "_").upper())


def test_the_walk_reaches_every_command() -> None:
    assert {"", "consume", "topic create", "segment gc", "config show"} <= {
        flag.command for flag in FLAGS
    }
    assert len(OPTIONS) > 60


def test_a_variable_means_one_thing() -> None:
    by_variable: dict[str, set[str]] = {}
    for flag in OPTIONS:
        by_variable.setdefault(str(flag.variable), set()).add(flag.name)
    assert {name: flags for name, flags in by_variable.items() if len(flags) > 1} == {}
    taken = {flag.name for flag in FLAGS if flag.variable in broker_variables()}
    assert taken <= SHARED_WITH_BROKERS, "a broker would take it for its own setting"


def test_no_flags_variable_is_taken_for_a_misspelt_setting() -> None:
    names = {flag.variable for flag in FLAGS if flag.variable}
    assert list(misspelt(names)) == []
    assert list(misspelt({"BUCKETLOG_FLUSH_BYTE"})), "it does look"


def test_a_variable_is_heard(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BUCKETLOG_BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setenv("BUCKETLOG_CONSUME_FROM", "yesterday")
    assert main(["consume", "t"]) == 2
    assert "--from yesterday" in capsys.readouterr().err
    assert main(["consume", "t", "--from", "start"]) == 1, "a flag goes before it"
    monkeypatch.setenv("BUCKETLOG_TOPIC_CREATE_PARTITIONS", "none")
    capsys.readouterr()
    assert main(["topic", "create", "t"]) == 2
    assert "BUCKETLOG_TOPIC_CREATE_PARTITIONS" in capsys.readouterr().err


def test_settings_of_the_console_are_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [one for one in os.environ if one.startswith("BUCKETLOG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("BUCKETLOG_CONSOLE_REFRESH_MS", "1000")
    monkeypatch.setenv("BUCKETLOG_CONSOLE_NONSENSE", "1")
    assert main(["config", "show"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"console_refresh_ms +1000 +environment", out)
    assert "BUCKETLOG_CONSOLE_NONSENSE is in the environment, and no setting has that name" in err
    assert "REFRESH" not in err


def leaves() -> set[str]:
    found: set[str] = set()
    for name, command in COMMAND.commands.items():  # type: ignore[attr-defined]  # a group
        below = getattr(command, "commands", None)
        found |= {f"{name} {one}" for one in below} if below else {name}
        if getattr(command, "invoke_without_command", False):
            found.add(name)
    return found


def commands_in_the_table(page: str) -> set[str]:
    """A row begins with `group verb`, `verb` ..., or with `verb`; what else is in it are flags."""
    table = page.split("| command | does |")[1].split("\n\n")[0]
    found: set[str] = set()
    groups = {leaf.split()[0] for leaf in leaves() if " " in leaf}
    for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", row)
        name, *rest = first.split()
        if name in groups and rest:
            found |= {f"{name} {verb.split()[0]}" for verb in (" ".join(rest), *others)}
        else:
            found.add(name)
    return found


def test_the_page_names_every_command() -> None:
    page = (ROOT / "docs/cli.md").read_text()
    assert commands_in_the_table(page) == leaves()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_BUCKETLOG_COMPLETE" in capsys.readouterr().out


def completed_by_bash(components: "Components", line: str) -> set[str]:
    bash = shutil.which("bash")
    if bash is None:
        components.missing("bash", "your system's package")
        raise AssertionError
    words = line.split(" ")
    script = (
        'eval "$(bucketlog completion bash)"; '
        f"COMP_WORDS=({line or ' '}); COMP_CWORD={len(words) - 1}; "
        '_bucketlog_completion bucketlog; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    folder = Path(sys.executable).parent
    done = subprocess.run(
        [bash, "-c", script],
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_bash_completes(components: "Components") -> None:
    assert {"topic", "consume", "completion"} <= completed_by_bash(components, "bucketlog ")
    assert completed_by_bash(components, "bucketlog topic cre") == {"create"}
    assert "--if-not-exists" in completed_by_bash(components, "bucketlog topic create --if")
