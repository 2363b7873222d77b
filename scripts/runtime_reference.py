"""An extension of griffe: the API reference shows signatures and docstrings as `help()` does.

Decorators of `bucketlog.client.signatures` complete them when a module is imported. griffe reads
the sources, and does not see this.
"""

import inspect
from typing import Any

import griffe

DECORATORS = {"documented_as", "with_options"}
OPTIONS: griffe.GoogleOptions = {
    "returns_multiple_items": False,
    "returns_named_value": False,
    "warn_missing_types": False,
    "warn_unknown_params": False,
}
"""The same as in mkdocs.yml."""
IN_THREAD = "_in_thread"
"""Makes an asynchronous method from a blocking one: `create = _in_thread(Topics.create)`."""


class RuntimeReference(griffe.Extension):
    """Replaces what decorated methods show."""

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        if _is_decorated(func):
            _complete(func, griffe.dynamic_import(func.path))

    def on_attribute(self, *, attr: griffe.Attribute, **kwargs: Any) -> None:
        if "property" in attr.labels and _is_decorated(attr):
            shown = griffe.dynamic_import(attr.path)
            attr.docstring = _docstring(shown, attr)

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        for name, member in list(cls.members.items()):
            if isinstance(member, griffe.Attribute) and str(member.value).startswith(IN_THREAD):
                made = griffe.Function(name, lineno=member.lineno, endlineno=member.endlineno)
                made.labels.add("async")
                cls.set_member(name, made)
                _complete(made, griffe.dynamic_import(made.path))


def _is_decorated(shown: griffe.Function | griffe.Attribute) -> bool:
    names = (each.callable_path.rpartition(".")[2] for each in getattr(shown, "decorators", ()))
    return not DECORATORS.isdisjoint(names)


def _complete(func: griffe.Function, shown: Any) -> None:
    func.docstring = _docstring(shown, func)
    func.overloads = None
    signature = inspect.signature(shown)
    known = {each.name: each for each in func.parameters}
    func.parameters = griffe.Parameters(
        *(known.get(name) or _parameter(each) for name, each in signature.parameters.items())
    )
    if func.returns is None and signature.return_annotation is not inspect.Signature.empty:
        func.returns = _annotation(signature.return_annotation)


def _docstring(shown: object, parent: griffe.Function | griffe.Attribute) -> griffe.Docstring:
    return griffe.Docstring(
        inspect.getdoc(shown) or "",
        parent=parent,
        parser=griffe.Parser.google,
        parser_options=OPTIONS,
    )


def _parameter(shown: inspect.Parameter) -> griffe.Parameter:
    has_default = shown.default is not inspect.Parameter.empty
    return griffe.Parameter(
        shown.name,
        annotation=_annotation(shown.annotation),
        kind=griffe.ParameterKind(shown.kind.description),
        default=repr(shown.default) if has_default else None,
    )


def _annotation(shown: object) -> str | None:
    if shown is inspect.Parameter.empty:
        return None
    return inspect.formatannotation(shown)
