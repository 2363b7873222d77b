"""Inside the broker nothing takes more than eight parameters: beyond that, take named groups."""

import ast
from collections.abc import Iterator

import pytest

from tests.models.repository import ROOT

BROKER = ROOT / "stateless_broker"
MAX_PARAMETERS = 8


def complaints(text: str) -> Iterator[str]:
    """Functions and dataclasses; fields of a dataclass count unless they have a default."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef(name=name, args=args) | ast.AsyncFunctionDef(name=name, args=args):
                names = [each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
                count = len(names) - (names[:1] in (["self"], ["cls"]))
            case ast.ClassDef(name=name, body=body) if _is_dataclass(node):
                count = sum(isinstance(each, ast.AnnAssign) and not each.value for each in body)
            case _:
                continue
        if count > MAX_PARAMETERS:
            yield f"{name} takes {count} parameters, {MAX_PARAMETERS} are allowed"


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_holds_everywhere_in_the_broker() -> None:
    found = [
        f"{path.relative_to(BROKER)}: {text}"
        for path in sorted(BROKER.rglob("*.py"))
        for text in complaints(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "offender",
    [
        "def f(self, a, b, c, d, *, e, g, h, i, j): ...",
        "@dataclass(frozen=True)\nclass A:\n" + "".join(f"    x{n}: int\n" for n in range(9)),
    ],
    ids=["function", "dataclass"],
)
def test_finds_a_planted_offender(offender: str) -> None:
    assert list(complaints(offender))


def test_eight_are_allowed() -> None:
    assert not list(complaints("def f(self, a, b, c, d, *, e, g, h, i): ..."))
