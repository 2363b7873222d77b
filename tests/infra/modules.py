"""A Terraform module as data: what is declared in it.

Parsed by python-hcl2. Invariant: what is said of a block comes from the text alone; nothing is
evaluated (Terraform does that, by `validate` and `test`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import hcl2

IS_BLOCK = "__is_block__"
COMMENTS = "__comments__"
_MARKS = frozenset({IS_BLOCK, COMMENTS, "__inline_comments__"})
Body = dict[str, Any]


class Declared(NamedTuple):
    """A resource or data source. `kind` such as aws_s3_bucket."""

    kind: str
    name: str
    body: Body


@dataclass(slots=True)
class Module:
    path: Path
    resources: list[Declared] = field(default_factory=list)
    data: list[Declared] = field(default_factory=list)
    calls: dict[str, Body] = field(default_factory=dict)
    variables: dict[str, Body] = field(default_factory=dict)
    outputs: dict[str, Body] = field(default_factory=dict)

    def source_of(self, call: str) -> Path:
        return (self.path / unquoted(self.calls[call]["source"])).resolve()


def unquoted(text: object) -> str:
    return str(text).strip('"')


@cache
def read_module(path: Path) -> Module:
    """All `*.tf` of a folder, read once. Raises the parser's errors."""
    module = Module(path)
    for file in sorted(path.glob("*.tf")):
        _add(module, hcl2.loads(file.read_text()))
    return module


def _add(module: Module, parsed: Mapping[str, Any]) -> None:
    for kind, blocks in parsed.items():
        if kind in _MARKS:
            continue
        for block in blocks:
            match kind:
                case "resource" | "data":
                    target = module.resources if kind == "resource" else module.data
                    target.extend(_declared(block))
                case "module":
                    module.calls.update(_named(block))
                case "variable":
                    module.variables.update(_named(block))
                case "output":
                    module.outputs.update(_named(block))


def _named(block: Body) -> dict[str, Body]:
    return {unquoted(name): body for name, body in block.items() if name not in _MARKS}


def _declared(block: Body) -> Iterator[Declared]:
    for kind, named in _named(block).items():
        for name, body in _named(named).items():
            yield Declared(kind, name, body)
