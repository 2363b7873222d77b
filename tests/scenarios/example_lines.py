"""The three services of `examples/`, each on four clients, and how many lines of code each has.

A line of code has a token that is not a comment. Imports and docstrings are left out: they grow
with what a program explains, and with how its names are listed. Every program is formatted by
`ruff format`, so that a line has the same meaning in all of them.
"""

import ast
import tokenize
from pathlib import Path
from typing import TypeGuard

from tests.scenarios.examples import EXAMPLES

SERVICES = ("order_service", "ingester", "etl")
OURS = "bucketlog"
CLIENTS = (OURS, "confluent_kafka", "aiokafka", "faststream")
_LAYOUT = frozenset(
    {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.ENCODING,
    }
)


def programs(service: str) -> dict[str, Path]:
    """By client. A client that cannot do the work has no program."""
    paths = {client: EXAMPLES / service / f"with_{client}.py" for client in CLIENTS}
    return {client: path for client, path in paths.items() if path.exists()}


def code_lines(path: Path) -> int:
    """Number of lines of code, without imports, docstrings, comments and blank lines."""
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    lines = {
        line
        for token in tokens
        if token.type not in _LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node):
            assert node.end_lineno is not None
            lines -= set(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def _is_docstring(node: ast.AST) -> TypeGuard[ast.Expr | ast.Import]:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def line_counts() -> dict[str, dict[str, int]]:
    """By service and client."""
    return {
        service: {client: code_lines(path) for client, path in programs(service).items()}
        for service in SERVICES
    }


def longer(counts: dict[str, dict[str, int]]) -> list[str]:
    """The programs of other clients that are not longer than ours."""
    return [
        f"{service} on {client}: {count} lines, ours {found[OURS]}"
        for service, found in counts.items()
        for client, count in found.items()
        if client != OURS and count <= found[OURS]
    ]
