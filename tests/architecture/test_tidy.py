"""Style that a program can check, over every source of the repository.

The rules are functions from a source to complaints, so that each is shown to fail on a planted
offender as well.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.models.repository import ROOMS, ROOT, listed_files

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_DOCUMENTED_LINES = 700
SECTIONS = frozenset({"Args:", "Attributes:", "Returns:", "Yields:", "Raises:", "Examples:"})
"""Of docstrings in Google's style."""
MAX_FOLDERS = 3
DRAWERS = frozenset({"util", "utils", "helper", "helpers", "common", "misc", "core"})
MAY_PRINT = (
    "bucketlog/cli/completion.py",
    "bucketlog/cli/entry.py",  # prints without `terminal`, which needs the extra
    "bucketlog/terminal.py",
    "benchmarks/",
    "examples/",
    "tests/fuzz/__main__.py",
    "tests/simulation/__main__.py",
    "tests/proofs/",
    "tests/scenarios/",
)
GRPC_PROGRAM = "tests/infra/provider_process.py"
GRPC_MODULE = "tests.infra.provider_process"
TRACING = "tests/rigs/traced_memory.py"
APART = {"grpc": GRPC_PROGRAM, GRPC_MODULE: GRPC_PROGRAM, "tracemalloc": TRACING}
WAITING = "tests/rigs/patience.py"
MAY_SLEEP = (WAITING, "tests/simulation/", "tests/sample_project/")
SLEEPS = frozenset({"time.sleep", "asyncio.sleep"})
CLOCKS = frozenset(
    {
        *(f"time.{name}" for name in ("time", "monotonic", "perf_counter", "process_time")),
        *(f"time.{name}_ns" for name in ("time", "monotonic", "perf_counter", "process_time")),
        *("time.thread_time", "loop.time", "datetime.now", "datetime.datetime.now"),
    }
)
SUPERVISOR = "stateless_broker/supervision.py"
LAZY_FACE = (
    "bucketlog/cli/",
    "bucketlog/demo",
    "bucketlog/embedded/",
    "bucketlog/replaying/",
    "bucketlog/testing/",
    "bucketlog/__init__.py",
)
BEHIND_THE_FACE = tuple(f"bucketlog.{room}" for room in ROOMS if room != "log_format")
REASONLESS = re.compile(r"#\s*(noqa:?\s*([A-Z]+\d+(,\s*)?)*|type:\s*ignore\s*(\[[\w, -]*\])?)\W*$")
SKIPS = re.compile(r"pytest\.(mark\.)?(skip|xfail|skipif|importorskip)\b")
HOSTS = re.compile(
    "|".join(
        re.escape(host)
        for host in (
            "pypi" + ".org",
            "pythonhosted" + ".org",
            "registry.npmjs" + ".org",
            "repo.maven.apache" + ".org",
            "repo1.maven" + ".org",
            "proxy.golang" + ".org",
            "crates" + ".io",
            "deb.debian" + ".org",
        )
    )
)
MACHINE_PATHS = re.compile(r"(?<![\w.}/])/(work|root|home/\w+|Users/\w+)/")


class Source(NamedTuple):
    """`path` is relative to the repository, with slashes."""

    path: str
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def nodes(self) -> Sequence[ast.AST]:
        return _nodes(self.text) if self.path.endswith(".py") else ()

    def comments(self) -> Iterator[tokenize.TokenInfo]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return (token for token in tokens if token.type == tokenize.COMMENT)


@cache
def _nodes(text: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text)))


Rule = Callable[[Source], Iterator[str]]


def file_length(source: Source) -> Iterator[str]:
    if not source.path.endswith((".py", ".lua", ".sh")):
        return
    length = len(source.lines) - sum(map(_reference_lines, source.nodes()))
    if length > MAX_FILE_LINES:
        yield f"{length} lines, {MAX_FILE_LINES} are allowed"
    if len(source.lines) > MAX_DOCUMENTED_LINES:
        yield f"{len(source.lines)} lines with docstrings, {MAX_DOCUMENTED_LINES} are allowed"


def _reference_lines(node: ast.AST) -> int:
    """Lines of the sections of a docstring, which are the reference's text, with the lines around
    them. Its first paragraphs count as lines of the source."""
    if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return 0
    lines = (ast.get_docstring(node) or "").splitlines()
    sections = [number for number, line in enumerate(lines) if line in SECTIONS]
    return len(lines) - sections[0] + 2 if sections else 0


def function_length(source: Source) -> Iterator[str]:
    for node in source.nodes():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1 - _reference_lines(node)
            if length > MAX_FUNCTION_LINES:
                yield f"{node.name} has {length} lines, {MAX_FUNCTION_LINES} are allowed"


def folder_depth(source: Source) -> Iterator[str]:
    if source.path.count("/") > MAX_FOLDERS:
        yield f"more than {MAX_FOLDERS} folders deep"


def no_drawers(source: Source) -> Iterator[str]:
    for part in Path(source.path).with_suffix("").parts:
        if part.lstrip("_") in DRAWERS:
            yield f"{part!r} says nothing of what it owns"


def docstring(source: Source) -> Iterator[str]:
    if source.path.endswith(".py") and not ast.get_docstring(ast.parse(source.text)):
        yield "no module docstring"


def no_hosts(source: Source) -> Iterator[str]:
    for number, line in enumerate(source.lines, 1):
        if HOSTS.search(line):
            yield f"line {number} names a package registry"
        if MACHINE_PATHS.search(line):
            yield f"line {number} names a path of one machine"


def no_print(source: Source) -> Iterator[str]:
    if source.path.startswith(MAY_PRINT):
        return
    for node in source.nodes():
        match node:
            case ast.Call(func=ast.Name(id="print"), lineno=line):
                yield f"line {line} prints: write to a log, or return it"


def no_bare_except(source: Source) -> Iterator[str]:
    if source.path == SUPERVISOR:
        return
    for node in source.nodes():
        match node:
            case ast.ExceptHandler(
                type=None | ast.Name(id="Exception" | "BaseException"), body=body, lineno=line
            ) if not any(isinstance(step, ast.Raise) for step in body):
                yield f"line {line} swallows every exception: name those that are expected"


def reasons(source: Source) -> Iterator[str]:
    if not source.path.endswith(".py"):
        return
    for token in source.comments():
        if REASONLESS.search(token.string):
            yield f"line {token.start[0]}: {token.string!r} has no reason beside it"
    for node in source.nodes():
        if isinstance(node, ast.Call) and SKIPS.fullmatch(_dotted_name(node.func)):
            given = {keyword.arg for keyword in node.keywords}
            if "reason" not in given and not node.args:
                yield f"line {node.lineno}: {_dotted_name(node.func)} has no reason"


def _dotted_name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(value=ast.Attribute() | ast.Name()):
            return f"{_dotted_name(node.value)}.{node.attr}"
        case ast.Name():
            return node.id
    return ""


def lazy_face(source: Source) -> Iterator[str]:
    """The public face may reach everything, but only when it is used."""
    if not source.path.startswith(LAZY_FACE):
        return
    for line, name in _imports(ast.parse(source.text).body):
        if name.startswith(BEHIND_THE_FACE):
            yield f"line {line} imports {name} when it is loaded"


def _imports(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and module of each import among the nodes."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""


def apart(source: Source) -> Iterator[str]:
    """A process that has served gRPC may lose the children it forks. Tracing memory may end it."""
    for line, name in _imports(source.nodes()):
        for module, place in APART.items():
            if f"{name}.".startswith(f"{module}.") and source.path != place:
                yield f"line {line} imports {name}: use {place} instead"


def one_import_root(source: Source) -> Iterator[str]:
    """The folders at the top are importable under `bucketlog.` only, as in the wheel."""
    for line, name in _imports(source.nodes()):
        if name.split(".")[0] in ROOMS:
            yield f"line {line} imports {name}: import bucketlog.{name}"


def one_way_to_wait(source: Source) -> Iterator[str]:
    """Tests wait for facts. `asyncio.sleep(0)` is a turn of the event loop and takes no time."""
    if not source.path.startswith("tests/") or source.path.startswith(MAY_SLEEP):
        return
    for node in source.nodes():
        match node:
            case ast.Call(args=[ast.Constant(value=0)]):
                continue
            case ast.Call(
                func=ast.Attribute(attr="select"),
                args=[ast.List(elts=[]), ast.List(elts=[]), ast.List(elts=[]), _],
                lineno=line,
            ):
                yield f"line {line} sleeps by select: use {WAITING}"
            case ast.Call(func=function, lineno=line) if _dotted_name(function) in SLEEPS:
                yield f"line {line} sleeps: use `eventually` of {WAITING}, or `let_pass`"
            case ast.ImportFrom(module="time" | "asyncio", names=names, lineno=line) if any(
                alias.name == "sleep" for alias in names
            ):
                yield f"line {line} imports sleep: use {WAITING}"


def no_clock_in_assertions(source: Source) -> Iterator[str]:
    """What a clock said, by itself or by a name of the same function, is no test's subject: on a
    busy machine it is another."""
    if not source.path.startswith("tests/") or source.path.startswith(MAY_SLEEP):
        return
    for function in source.nodes():
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        timed = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and _reads_clock(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and (
                _reads_clock(node.test) or timed & _names(node.test)
            ):
                yield f"line {node.lineno} asserts on a clock: use a Deadline of {WAITING}"


def _reads_clock(expression: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Call)
        and (
            _dotted_name(node.func) in CLOCKS
            or (
                isinstance(node.func, ast.Attribute) and ast.unparse(node).endswith("loop().time()")
            )
        )
        for node in ast.walk(expression)
    )


def _names(expression: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


RULES: tuple[Rule, ...] = (
    file_length,
    function_length,
    folder_depth,
    no_drawers,
    docstring,
    no_hosts,
    no_print,
    no_bare_except,
    reasons,
    lazy_face,
    one_import_root,
    apart,
    one_way_to_wait,
    no_clock_in_assertions,
)


@cache
def sources() -> list[Source]:
    kinds = (".py", ".lua", ".sh", ".md", ".toml", ".txt", ".yaml", ".yml", ".tf", ".json")
    paths = [
        path for path in listed_files() if path.endswith(kinds) or path in {"Makefile", ".ci/run"}
    ]
    return [Source(path, (ROOT / path).read_text()) for path in paths]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_holds_everywhere(rule: Rule) -> None:
    complaints = [f"{source.path}: {text}" for source in sources() for text in rule(source)]
    assert not complaints, "\n".join(complaints)


OFFENDERS: dict[str, tuple[Rule, Source]] = {
    "long file": (file_length, Source("a.py", "x = 1\n" * 401)),
    "long file with docstrings": (
        file_length,
        Source("a.py", 'def f():\n    """F.\n\n    Args:\n' + "    x\n" * 700 + '    """\n'),
    ),
    "long function": (function_length, Source("a.py", "def f():\n" + "    x = 1\n" * 70)),
    "deep folder": (folder_depth, Source("a/b/c/d/e.py", "")),
    "drawer": (no_drawers, Source("metadata/utils.py", "")),
    "drawer folder": (no_drawers, Source("common/a.py", "")),
    "no docstring": (docstring, Source("a.py", "x = 1\n")),
    "registry": (no_hosts, Source("a.md", "https://files.python" + "hosted.org/x")),
    "machine path": (no_hosts, Source("a.md", "see " + "/work" + "/main")),
    "print": (no_print, Source("metadata/a.py", "print('hello')")),
    "except": (no_bare_except, Source("a.py", "try:\n    f()\nexcept Exception:\n    pass")),
    "bare except": (no_bare_except, Source("a.py", "try:\n    f()\nexcept:\n    pass")),
    "noqa": (reasons, Source("a.py", "x = 1  # noqa: E501\n")),
    "ignore": (reasons, Source("a.py", "x = 1  # type: ignore[misc]\n")),
    "xfail": (reasons, Source("a.py", "import pytest\npytest.mark.xfail()\n")),
    "eager face": (
        lazy_face,
        Source("bucketlog/cli/a.py", "from bucketlog.tiered_storage import keys"),
    ),
    "another root": (
        one_import_root,
        Source("metadata/a.py", "from metadata.fold import LogState"),
    ),
    "grpc": (apart, Source("tests/a.py", "import grpc\n")),
    "a part of grpc": (apart, Source("tests/a.py", "from grpc.aio import server\n")),
    "sleep": (one_way_to_wait, Source("tests/a.py", "import time\ntime.sleep(0.1)")),
    "sleeping task": (
        one_way_to_wait,
        Source("tests/a.py", "async def f():\n    await asyncio.sleep(pause_s)"),
    ),
    "sleep by select": (one_way_to_wait, Source("tests/a.py", "select.select([], [], [], 0.1)")),
    "sleep by its name": (one_way_to_wait, Source("tests/a.py", "from time import sleep\n")),
    "clock in an assertion": (
        no_clock_in_assertions,
        Source("tests/a.py", "def test():\n    assert time.monotonic() < end"),
    ),
    "clock of the loop in an assertion": (
        no_clock_in_assertions,
        Source("tests/a.py", "def test():\n    assert asyncio.get_running_loop().time() < 1"),
    ),
    "elapsed time in an assertion": (
        no_clock_in_assertions,
        Source(
            "tests/a.py",
            "def test():\n    took_s = time.perf_counter() - began\n    assert took_s < 1",
        ),
    ),
    "tracing": (apart, Source("tests/a.py", "import tracemalloc\n")),
    "the program of grpc": (apart, Source("a.py", f"import {GRPC_MODULE}\n")),
}


@pytest.mark.parametrize("case", OFFENDERS)
def test_finds_a_planted_offender(case: str) -> None:
    rule, source = OFFENDERS[case]
    assert list(rule(source))


def test_a_turn_of_the_event_loop_is_no_sleep() -> None:
    text = "async def f():\n    await asyncio.sleep(0)\n"
    assert not list(one_way_to_wait(Source("tests/a.py", text)))


def test_a_reason_beside_satisfies() -> None:
    text = "x = 1  # noqa: E501 - the table reads better in one line\n"
    assert not list(reasons(Source("a.py", text)))
