"""What `--help` shows: a sentence for each command, what each option does, and an example that
parses."""

import inspect
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from bucketlog.cli.examples import EXAMPLES
from bucketlog.cli.main import app
from bucketlog.spark_jobs import replay
from bucketlog.spark_jobs.ingest import __main__ as ingest

ROOT: Any = typer.main.get_command(app)
PASSED_ON = {
    "spark replay": replay.argument_parser,
    "spark ingest": ingest.argument_parser,
}
"""The job parses these arguments itself."""
FRAGMENT = re.compile(
    r"^(?:Of|As|By|So|Than|Which|What|One|Its|Their|Them|It|Whose|All that|Default|Such as|"
    r"Stop then|Sent)\b|^[^A-Z]"
)
"""First words of a help text that cannot be read alone."""
NUMBERS = re.compile(r"\b(?:int|float)\b")
UNIT = re.compile(
    r"\b(numbers?|ports?|seconds?|milliseconds?|ms|bytes|MiB|records?|partitions?|threads?|"
    r"offsets?|groups|iterations|events|rows?|time|size|pause)\b",
    re.IGNORECASE,
)


def commands(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
    for name, each in (inner or {}).items():
        yield from commands(each, f"{path} {name}".strip())


COMMANDS = dict(commands(ROOT))
OPTIONS = {
    f"{path} {max(each.opts, key=len)}": each
    for path, command in COMMANDS.items()
    for each in command.params
    if each.opts[0].startswith("-") and each.name != "help"
}


def fault(text: str | None, *, is_number: bool = False) -> str:
    """What the help text of an option lacks; empty if nothing."""
    if not text:
        return "no help"
    if FRAGMENT.match(text):
        return "begins as a fragment"
    if not text.rstrip().endswith((".", ")")):
        return "no full stop"
    return "no unit" if is_number and not UNIT.search(text) else ""


@pytest.mark.parametrize("path", COMMANDS)
def test_a_command_has_a_summary(path: str) -> None:
    summary = (COMMANDS[path].help or "").partition("\n\n")[0]
    assert re.match(r"[A-Z][\w-]+ ", summary)
    assert summary.endswith(".")


def test_options_say_what_they_do() -> None:
    assert len(OPTIONS) > 300
    found = {
        name: fault(option.help, is_number=is_number(option)) for name, option in OPTIONS.items()
    }
    assert {name: OPTIONS[name].help for name, text in found.items() if text} == {}


def is_number(option: Any) -> bool:
    return bool(NUMBERS.search(inspect.formatannotation(option.type_descriptor.annotation)))


@pytest.mark.parametrize("path", COMMANDS)
def test_the_example_of_a_command_parses(path: str) -> None:
    assert path in EXAMPLES, "add an example to bucketlog/cli/examples.py"
    for line in EXAMPLES[path]:
        assert arguments_of(line)[: len(path.split())] == path.split()
        assert len(line) <= 90
        parse(arguments_of(line))


def test_examples_are_in_the_help() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    for path, command in COMMANDS.items():
        assert all(f"  {line}" in command.epilog for line in EXAMPLES[path])


def arguments_of(line: str) -> list[str]:
    """Of the command `bucketlog` in a line of a shell."""
    words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", line))
    return words[words.index("bucketlog") + 1 :]


def parse(arguments: list[str]) -> None:
    command, name = ROOT, "bucketlog"
    context = ROOT.make_context(name, list(arguments), resilient_parsing=False)
    while hasattr(command, "commands"):
        name, command, rest = command.resolve_command(
            context, context._protected_args + context.args
        )
        if make_parser := PASSED_ON.get(" ".join(arguments[:2])):
            make_parser("bucketlog").parse_args(arguments[2:])
            return
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize(
    ("text", "is_number", "expected"),
    [
        (None, False, "no help"),
        ("Of the first broker.", False, "begins as a fragment"),
        ("So many, in turn.", False, "begins as a fragment"),
        ("Number of brokers", False, "no full stop"),
        ("How much.", True, "no unit"),
        ("Number of brokers.", True, ""),
    ],
)
def test_poor_help_is_found(text: str | None, is_number: bool, expected: str) -> None:
    assert fault(text, is_number=is_number) == expected


def test_a_wrong_example_of_a_job_is_found() -> None:
    with pytest.raises(SystemExit):
        parse(["spark", "replay", "--bucket", "s3://bucket", "--topics", "orders"])


def test_a_wrong_example_is_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(["topic", "list", "--nope"])
