"""Things that must be done in one way only.

The rules are functions from sources to complaints, so that a test can show each of them failing.
"""

import ast
import re
from collections.abc import Iterator, Mapping

from tests.models.repository import PRODUCT, ROOT

TOPIC_CONFIG_ROOMS = ("consumers", "metadata", "stateless_broker")
READS_A_CONFIG = re.compile(r"\.configs(\.get\(|\[)|TOPIC_CONFIGS\[")
STARTS_PYTHON = re.compile(r'\b(sys\.executable|path),\s*"-[^PI]')
ROOT_ERROR = "BucketlogError"
TREE_LINE = re.compile(r"^([│├└─ ]*)(\w+Error)\b", re.MULTILINE)
INDENT = 4
TESTS_OF_A_BENCHMARK = frozenset({"tests/unit/test_spark_replay_figures.py"})
"""They show what a benchmark makes of what it measured, and nothing else of it is used in tests."""
KNOWS_CONFIGS = frozenset({"metadata/topic_configs.py", "metadata/topic_defaults.py"})


def sources(*folders: str) -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): path.read_text()
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def configs_without_defaults(files: Mapping[str, str]) -> Iterator[str]:
    """A topic's config that is read past `TopicDefaults`: a broker's default does not apply."""
    for name, text in files.items():
        if name not in KNOWS_CONFIGS:
            for number, line in enumerate(text.splitlines(), 1):
                if READS_A_CONFIG.search(line):
                    yield f"{name}:{number}: ask TopicDefaults for a topic's config"


def test_topic_configs_are_read_with_the_brokers_defaults() -> None:
    assert list(configs_without_defaults(sources(*TOPIC_CONFIG_ROOMS))) == []
    offender = {"stateless_broker/x.py": "limit = topic.configs.get(MAX_MESSAGE_BYTES)"}
    assert len(list(configs_without_defaults(offender))) == 1


def error_parents(files: Mapping[str, str]) -> dict[str, str]:
    """Every public error of the product below `BucketlogError`, and the class it derives from."""
    bases = {
        node.name: [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        for text in files.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }
    found: dict[str, str] = {}
    news = True
    while news:
        news = False
        for name, above in bases.items():
            parent = next((base for base in above if base == ROOT_ERROR or base in found), None)
            if parent is not None and name not in found:
                found[name] = parent
                news = True
    return found


def drawn_parents(docstring: str) -> dict[str, str]:
    """The tree of a docstring, as `error_parents` gives it."""
    above: dict[int, str] = {}
    found = {}
    for line in TREE_LINE.finditer(docstring):
        depth = len(line[1]) // INDENT
        above[depth] = line[2]
        if depth:
            found[line[2]] = above[depth - 1]
    return found


def product() -> dict[str, str]:
    return {name: text for name, text in sources(*PRODUCT).items() if "/build/" not in name}


def test_the_tree_of_errors_is_drawn_in_full() -> None:
    errors = (ROOT / "log_format/errors.py").read_text()
    docstring = ast.get_docstring(ast.parse(errors)) or ""
    assert drawn_parents(docstring) == error_parents(product())
    offender = {"x.py": "class NewError(errors.BucketError): ...", "errors.py": errors}
    assert error_parents(offender)["NewError"] == "BucketError"
    assert "NewError" not in drawn_parents(docstring)


def codes_chosen_elsewhere(files: Mapping[str, str]) -> Iterator[str]:
    """A Kafka error code that is chosen where an error of ours is caught, past `kafka_code`."""
    ours = {ROOT_ERROR, "TimeoutError", *error_parents(product())}
    for name, text in files.items():
        for handler in ast.walk(ast.parse(text)):
            if not isinstance(handler, ast.ExceptHandler) or handler.type is None:
                continue
            caught = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
            for node in (node for line in handler.body for node in ast.walk(line)):
                if (
                    caught & ours
                    and isinstance(node, ast.Attribute)
                    and ast.unparse(node.value) == "ErrorCode"
                    and node.attr != "none"
                ):
                    yield f"{name}:{node.lineno}: ask kafka_code"


def test_errors_become_kafkas_codes_in_one_place() -> None:
    assert list(codes_chosen_elsewhere(sources("consumers", "stateless_broker"))) == []
    offender = "try: ...\nexcept BucketError:\n    code = ErrorCode.unknown_server_error\n"
    assert len(list(codes_chosen_elsewhere({"x.py": offender}))) == 1


def imports_across(files: Mapping[str, str], forbidden: str) -> Iterator[str]:
    for name, text in files.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            else:
                continue
            if any(module.partition(".")[0] == forbidden for module in modules):
                yield f"{name}:{node.lineno}: what both need belongs to localstack/"


def test_benchmarks_and_tests_do_not_import_each_other() -> None:
    tests = {
        name: text
        for name, text in sources("tests").items()
        if name not in TESTS_OF_A_BENCHMARK and not name.startswith("tests/sample_project/")
    }
    assert list(imports_across(sources("benchmarks", "localstack"), "tests")) == []
    assert list(imports_across(sources("localstack"), "benchmarks")) == []
    assert list(imports_across(tests, "benchmarks")) == []
    offender = {"x.py": "from tests.scenarios import crash"}
    assert len(list(imports_across(offender, "tests"))) == 1


def children_that_import_from_here(files: Mapping[str, str]) -> Iterator[str]:
    """Calls that start a Python process which imports modules from the current folder."""
    for name, text in files.items():
        for found in STARTS_PYTHON.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield f"{name}:{line}: give Python -P, or -I for the standard library alone"


def test_child_processes_import_nothing_from_the_current_folder() -> None:
    assert list(children_that_import_from_here(sources(*PRODUCT, "benchmarks", "localstack"))) == []
    assert len(STARTS_PYTHON.findall('run([sys.executable, "-m", "x"])')) == 1
    assert len(STARTS_PYTHON.findall('run([path, "-m", "x"])')) == 1
    assert not STARTS_PYTHON.findall('run([sys.executable, "-P", "-m", "x"])')
