"""The public names of the SDK as the reference lists them: classes, functions and members."""

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, NamedTuple, is_typeddict

from _pytest.fixtures import FixtureFunctionDefinition

from scripts.reference_pages import API_PAGES, identifier

PACKAGE = "bucketlog"


class PublicName(NamedTuple):
    """`path` is as in `bucketlog.client.log.Log.consumer`."""

    path: str
    shown: Any
    """The object whose docstring and signature the reference shows."""
    owner: type | None = None

    @property
    def is_class(self) -> bool:
        return isinstance(self.shown, type)

    @property
    def is_fixture(self) -> bool:
        return isinstance(self.shown, FixtureFunctionDefinition)

    @property
    def text(self) -> str:
        if self.is_fixture:
            return inspect.getdoc(self.shown._get_wrapped_function()) or ""
        own = self.shown.__doc__ if self.is_class else inspect.getdoc(self.shown)
        if self.is_class and is_dataclass(self.shown) and str(own).startswith(self.name + "("):
            return ""  # made by dataclass
        return inspect.cleandoc(own or "")

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def parameters(self) -> list[inspect.Parameter]:
        if self.is_fixture or isinstance(self.shown, property):
            return []
        found = inspect.signature(self.shown).parameters.values()
        return [each for each in found if each.name not in ("self", "cls")]

    @property
    def fields(self) -> list[str]:
        """Of a value."""
        if is_typeddict(self.shown):
            return list(self.shown.__annotations__)
        if self.is_class and is_dataclass(self.shown):
            return [name for name in self.shown.__dataclass_fields__ if not name.startswith("_")]
        return list(getattr(self.shown, "_fields", ()))

    @property
    def source(self) -> str:
        shown: Any = self.shown.fget if isinstance(self.shown, property) else self.shown
        return inspect.getsource(inspect.unwrap(shown))


def public_names() -> Iterator[PublicName]:
    """Each name on the reference's pages, then its public members, with those of base classes."""
    seen: set[str] = set()
    for _, _, names in API_PAGES.values():
        for name in names:
            path = identifier(name)
            module, _, short = path.rpartition(".")
            shown = getattr(importlib.import_module(module), short)
            yield PublicName(path, shown)
            if isinstance(shown, type):
                for member in _members(shown):
                    if member.path not in seen:
                        seen.add(member.path)
                        yield member


def _members(owner: type) -> Iterator[PublicName]:
    names: set[str] = set()
    for base in owner.__mro__:
        if not base.__module__.startswith(PACKAGE):
            continue
        for name, value in vars(base).items():
            if name.startswith("_") or name in names:
                continue
            names.add(name)
            found = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            if inspect.isfunction(found) or isinstance(found, property):
                yield PublicName(f"{base.__module__}.{base.__qualname__}.{name}", found, owner)
