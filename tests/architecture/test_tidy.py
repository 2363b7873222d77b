"""Style that a program can check, over every source of the repository.

The rules are functions from a source to complaints, so that each is shown to fail on a planted
offender as well.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_FOLDERS = 3
DRAWERS = frozenset({"util", "utils", "helper", "helpers", "common", "misc", "core"})
MAY_PRINT = (
    "bucketlog/cli/",
    "bucketlog/demo",
    "benchmarks/",
    "tests/simulation/__main__.py",
    "tests/prove",
    "tests/scenarios/",
)
SUPERVISOR = "stateless_broker/supervisor.py"
LAZY_FACE = (
    "bucketlog/cli/",
    "bucketlog/demo",
    "bucketlog/embedded",
    "bucketlog/replaying/",
    "bucketlog/testing/",
    "bucketlog/__init__.py",
)
OUR_PACKAGES = frozenset(
    {"tiered_storage", "metadata", "consumers", "stateless_broker", "spark_jobs"}
)
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
    if source.path.endswith((".py", ".lua", ".sh")) and len(source.lines) > MAX_FILE_LINES:
        yield f"{len(source.lines)} lines, {MAX_FILE_LINES} are allowed"


def function_length(source: Source) -> Iterator[str]:
    for node in source.nodes():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
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
    for node in ast.parse(source.text).body:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            if name.split(".")[0] in OUR_PACKAGES:
                yield f"line {node.lineno} imports {name} when it is loaded"


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
)


@cache
def sources() -> list[Source]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    kinds = (".py", ".lua", ".sh", ".md", ".toml", ".txt", ".yaml", ".yml", ".tf", ".json")
    paths = [path for path in listed if path.endswith(kinds) or path in {"Makefile", ".ci/run"}]
    return [Source(path, (ROOT / path).read_text()) for path in paths if (ROOT / path).exists()]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_holds_everywhere(rule: Rule) -> None:
    complaints = [f"{source.path}: {text}" for source in sources() for text in rule(source)]
    assert not complaints, "\n".join(complaints)


OFFENDERS: dict[str, tuple[Rule, Source]] = {
    "long file": (file_length, Source("a.py", "x = 1\n" * 401)),
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
    "eager face": (lazy_face, Source("bucketlog/cli/a.py", "from tiered_storage import keys")),
}


@pytest.mark.parametrize("case", OFFENDERS)
def test_finds_a_planted_offender(case: str) -> None:
    rule, source = OFFENDERS[case]
    assert list(rule(source))


def test_a_reason_beside_satisfies() -> None:
    text = "x = 1  # noqa: E501 - the table reads better in one line\n"
    assert not list(reasons(Source("a.py", text)))
