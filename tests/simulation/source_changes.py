"""Mutants: changes of the product's text, and how they are applied.

Invariant: a mutant is a change of the text of one real function or Lua file; where the text is not
there any more, applying it fails, so that no mutant goes stale unseen.
"""

import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

from tests.simulation.redis_servers import LuaPatch


@dataclass(frozen=True)
class Change:
    """`where` is `name.lua` or `module:qualified.name`."""

    where: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """`second_lines`: other rules that have to be broken, too, or they would do for this one. What
    catches such a mutant counts only where nothing goes wrong without them alone."""

    rule: str
    changes: Sequence[Change]
    second_lines: Sequence[Change] = ()


def one(rule: str, where: str, old: str, new: str) -> Mutant:
    return Mutant(rule, [Change(where, old, new)])


def lua_patch(changes: Sequence[Change]) -> LuaPatch:
    wanted = [change for change in changes if change.where.endswith(".lua")]

    def patched(name: str, text: str) -> str:
        for change in wanted:
            if change.where == f"{name}.lua":
                text = _replaced(text, change)
        return text

    return patched


def apply(changes: Sequence[Change]) -> LuaPatch:
    """Change this process' functions; returns the change of Lua files."""
    by_function: dict[str, list[Change]] = {}
    for change in changes:
        if not change.where.endswith(".lua"):
            by_function.setdefault(change.where, []).append(change)
    for where, mine in by_function.items():
        function, text = changed_source(where, mine)
        made: dict[str, Any] = {}
        exec(compile(text, where, "exec"), dict(function.__globals__), made)
        function.__code__ = made[function.__name__].__code__
    return lua_patch(changes)


def changed_source(where: str, changes: Sequence[Change]) -> tuple[FunctionType, str]:
    """The function, and its text as it is to be, without decorators."""
    module_name, _, path = where.partition(":")
    *owners, name = path.split(".")
    owner: Any = import_module(module_name)
    for part in owners:
        owner = getattr(owner, part)
    function = inspect.getattr_static(owner, name)
    function = getattr(function, "__func__", function)
    assert isinstance(function, FunctionType), where
    text = inspect.getsource(function)
    for change in changes:
        text = _replaced(text, change)
    text = textwrap.dedent(text)
    return function, text[text.index("async def" if "async def" in text else "def") :]


def _replaced(text: str, change: Change) -> str:
    found = text.count(change.old)
    if found != 1:
        raise ValueError(f"{change.where} has {change.old!r} {found} times, not once")
    return text.replace(change.old, change.new)
