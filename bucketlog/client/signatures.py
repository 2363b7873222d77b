"""Signatures and docstrings that several methods share.

`help()` and the reference show each method in full: every option with its default, and the text of
an asynchronous method without a reference to another one. Invariant: calls are not changed.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

ARGUMENTS = "Args:"
ATTRIBUTES = "Attributes:"


def with_options(*options: tuple[type, Mapping[str, Any]]) -> Callable[[F], F]:
    """Show the keyword arguments that a method takes as `**options` one by one.

    Args:
        options: Typed dictionaries, each with the defaults of its keys. Their docstrings describe
            the keys under "Attributes:".
    """

    def show(function: F) -> F:
        signature = inspect.signature(function)
        parameters = [
            each
            for each in signature.parameters.values()
            if each.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        lines: list[str] = []
        known = _entries(inspect.cleandoc(function.__doc__ or ""), ARGUMENTS)
        for typed, defaults in options:
            described = _entries(inspect.getdoc(typed) or "", ATTRIBUTES)
            for name, annotation in typed.__annotations__.items():
                if any(each.name == name for each in parameters):
                    continue
                parameters.append(
                    inspect.Parameter(
                        name,
                        inspect.Parameter.KEYWORD_ONLY,
                        default=defaults[name],
                        annotation=annotation,
                    )
                )
                if name not in known:
                    lines += described.get(name, [])
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]  # functions have it at run time
            parameters=parameters
        )
        if function.__doc__ is not None:
            function.__doc__ = _with_arguments(inspect.cleandoc(function.__doc__), lines)
        return function

    return show


def documented_as(original: object) -> Callable[[F], F]:
    """Give a method the docstring of another one. Its own docstring, if any, becomes the last
    paragraph before the sections.

    Args:
        original: A method or property with the same arguments, errors and result.
    """

    def document(function: F) -> F:
        text = inspect.getdoc(original) or ""
        own = inspect.cleandoc(function.__doc__ or "")
        if own:
            before, after = _split_at_sections(text)
            text = f"{before}\n\n{own}\n\n{after}".rstrip()
        function.__doc__ = text
        return function

    return document


def _split_at_sections(text: str) -> tuple[str, str]:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.endswith(":") and line[:1].isupper() and " " not in line:
            return "\n".join(lines[:number]).rstrip(), "\n".join(lines[number:])
    return text, ""


def _entries(text: str, section: str) -> dict[str, list[str]]:
    """The lines of a section of a docstring, by the name that they describe."""
    found: dict[str, list[str]] = {}
    name = ""
    lines = iter(text.splitlines())
    for line in lines:
        if line == section:
            break
    for line in lines:
        if line and not line.startswith(" "):
            break
        if line.startswith("    ") and not line.startswith("     "):
            name = line.partition(":")[0].strip()
        if line.strip():
            found.setdefault(name, []).append(line)
    return found


def _with_arguments(text: str, added: list[str]) -> str:
    """The docstring with further lines at the end of its arguments."""
    lines = text.splitlines()
    if ARGUMENTS not in lines:
        before, after = _split_at_sections(text)
        return "\n".join([before, "", ARGUMENTS, *added, "", after]).rstrip()
    at = lines.index(ARGUMENTS) + 1
    while at < len(lines) and lines[at].startswith(" "):
        at += 1
    return "\n".join([*lines[:at], *added, *lines[at:]])
