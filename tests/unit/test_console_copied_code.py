"""Commands and programs of the page Messages: values stay values, whatever their characters."""

import ast
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bucketlog.console.copied_code import CopiedCode, SearchedRange, copied_code
from bucketlog.console.message_pages import messages
from bucketlog.console.page_query import PageQuery
from bucketlog.console.page_templates import environment
from bucketlog.log_reader.options import Assign, parse_options
from bucketlog.replaying.selection import parse_offsets
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.console_log import SCRIPT
from tests.rigs.written_log import WrittenLog, some_records
from tests.unit.test_console_log import console_of
from tests.unit.test_verify import IDENTITY

PLAIN = SearchedRange("file:///logs/a", "orders", 2, 3, 9, 6)
HOSTILE = [
    "$(touch owned)",
    "`touch owned`",
    "'; touch owned; '",
    '"; touch owned; "',
    "a\\'; touch owned #",
    "'\"'''\"\"\"\\",
    "--to",
    "-o",
    "{0}{x}%s",
    "*?[a]~ $HOME !! & | > <",
    SCRIPT,
    "żółć",
]
UNSHOWN = ["a\nrm -rf x", "a\x03b", "\x1b[201~touch owned\n", "a\u202eb", "a\0b", "a\rb"]
"""Characters that would control a terminal."""


def code_for(name: str, **changes: Any) -> CopiedCode:
    """Code for a topic with this name, in a bucket with the name in its address."""
    return copied_code(PLAIN._replace(url=f"file:///logs/{name}", topic=name, **changes))


def literals(program: str) -> list[object]:
    """All values that a program contains."""
    return [node.value for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Constant)]


def shape(program: str) -> str:
    """The structure of a program, without its values."""
    tree = ast.parse(program)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = 0
    return ast.dump(tree)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_one_word_of_a_command(name: str) -> None:
    code = code_for(name)
    assert code.replay is not None
    assert code.consume is not None
    words = shlex.split(code.replay, comments=True)
    assert words[:-3] == ["bucketlog", "replay", "--offsets", "2:3-9"]
    assert words[-3:] == ["--", f"file:///logs/{name}", name]
    assert parse_offsets(words[3]) == {2: (3, 9)}
    words = shlex.split(code.consume, comments=True)
    flags = "--partition 2 --from 3 -n 6 --until-end -o jsonl --"
    assert words == ["bucketlog", "consume", *flags.split(), name]


@pytest.mark.parametrize("name", HOSTILE[:-1])
def test_a_real_shell_runs_nothing_of_a_name(name: str, tmp_path: Path) -> None:
    command = code_for(name).replay
    assert command is not None
    shown = command.replace("bucketlog replay", "printf '%s\\n'", 1)
    done = subprocess.run(
        ["sh", "-c", shown], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-2:] == [f"file:///logs/{name}", name]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", UNSHOWN)
def test_no_command_has_characters_that_control_a_terminal(name: str) -> None:
    for text in (name, "orders"):
        found = PLAIN._replace(topic=text, url=f"file:///logs/{name}")
        assert (copied_code(found).replay, copied_code(found).consume) == (None, None)
    assert copied_code(PLAIN._replace(topic=name)).replay is None


@pytest.mark.parametrize("name", [*HOSTILE, *UNSHOWN])
def test_a_name_is_one_literal_of_a_program(name: str) -> None:
    plain, hostile = code_for("orders"), code_for(name)
    assert hostile.python.isascii()
    assert hostile.spark.isascii()
    assert shape(hostile.python) == shape(plain.python)
    assert shape(hostile.spark) == shape(plain.spark)
    assert {f"file:///logs/{name}", name, 2, 3, 9} <= set(literals(hostile.python))
    assert f"file:///logs/{name}" in literals(hostile.spark)
    assert json.dumps({name: [2]}) in literals(hostile.spark)


@pytest.mark.parametrize("part", [b"'''\\", b'"); import os #', b"\xff\x00\n", SCRIPT.encode()])
def test_a_filter_is_one_literal_of_a_program(part: bytes) -> None:
    plain = copied_code(PLAIN._replace(key_part=b"k", value_part=b"v"))
    code = copied_code(PLAIN._replace(key_part=part, value_part=part))
    for mine, other in ((code.python, plain.python), (code.spark, plain.spark)):
        assert shape(mine) == shape(other)
        assert literals(mine).count(part) == 2


def spark_options(program: str) -> dict[str, str]:
    """The options and the path in a program for Spark."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            texts = [ast.literal_eval(each) for each in node.args if isinstance(each, ast.Constant)]
            if node.func.attr == "option":
                found[texts[0]] = texts[1]
            elif node.func.attr == "load":
                found["path"] = texts[0]
    return found


def test_the_source_knows_the_options_of_spark() -> None:
    options = parse_options(spark_options(copied_code(PLAIN).spark))
    assert options.url == PLAIN.url
    assert options.selection == Assign({"orders": (2,)})
    assert options.include_headers
    assert (options.starting, options.ending) != (None, None)


def test_a_relative_path_becomes_absolute() -> None:
    code = copied_code(PLAIN._replace(url="logs/a"))
    assert code.replay is not None
    assert shlex.split(code.replay)[-2] == str(Path.cwd() / "logs/a")


def test_a_pattern_is_no_topic_of_a_consumer() -> None:
    assert copied_code(PLAIN._replace(topic="^.*")).consume is None


def test_without_a_number_a_consumer_reads_to_the_end() -> None:
    command = copied_code(PLAIN._replace(records=None)).consume
    assert command is not None
    assert "-n" not in shlex.split(command)


def page_of(log: WrittenLog, **query: str) -> str:
    console = console_of(log)
    values = messages(console, PageQuery(query))
    shared = {"root": "", "page_name": "messages", "navigation": (), "theme": "", "themes": ()}
    template = environment().get_template("messages.html")
    return template.render(
        may_change=False,
        **shared,
        **values,
        query=PageQuery(query),
        place="",
        now_ms=0,
        at="",
        limits=console.settings,
    )


def test_the_page_escapes_code_and_names_what_the_code_leaves_out() -> None:
    store = MemoryBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(store)
    log.create_topic(SCRIPT)
    log.append(SCRIPT, 0, some_records(3))
    log.create_topic("empty")
    log.flush()
    page = page_of(log, topic=SCRIPT, value="<b>", path="$.a")
    assert "<script>document" not in page
    assert "<b>" not in page
    assert "The commands have no filter." in page
    assert "The JSONPath is not in the code." in page
    assert "Copy as" not in page_of(log, topic="empty")
    assert "Export" not in page_of(log, topic="empty")
