"""What a docstring of the reference must say, as functions from a public name to complaints.

griffe parses the docstrings in Google's style, as it does for the site.
"""

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from typing import Any, is_typeddict

import griffe

import bucketlog
from tests.models.prose import DANGLING
from tests.models.public_names import PublicName

PLACE = re.compile(r"\b(?:Made|Returned|Given|Raised|Used) (?:by|for)\b")
"""How the docstring of a class says where its instances come from, if users do not make them."""
UNITS = re.compile(
    r"\b(seconds?|milliseconds?|bytes?|MiB|records?|numbers?|offsets?|partitions?|ports?|threads?|"
    r"ids?|attempts?|iterations?|brokers?|rows?|files?|timestamps?|versions?|replicas?)\b",
    re.IGNORECASE,
)
NUMBERS = re.compile(r"(?<![\w.])(?:int|float|timedelta)(?![\w.])")
RAISED = re.compile(r"[\w.]+")
STYLE = griffe.Parser.google


def complaints(public: PublicName, *, may_raise: bool = True) -> list[str]:
    """What the docstring of the name lacks."""
    if not public.text:
        return ["no docstring"]
    sections = _sections(public.text)
    found = [*_summary(public.text)]
    if is_typeddict(public.shown):
        return [*found, *_fields(public, sections), *_example(sections)]
    if public.is_class:
        found += _class(public, sections)
    elif not isinstance(public.shown, property) and not public.is_fixture:
        found += _parameters(public, sections)
        found += _result(public, sections)
    if public.owner is None and not public.is_fixture:
        found += _example(sections)
    return [*found, *_errors(public, sections, may_raise)]


@cache
def _sections(text: str) -> dict[griffe.DocstringSectionKind, Any]:
    parsed = griffe.Docstring(text).parse(STYLE, warnings=False)
    return {section.kind: section.value for section in parsed}


def _summary(text: str) -> Iterator[str]:
    first = " ".join(text.partition("\n\n")[0].split())
    word = re.match(r"`[^`]+`|[\w-]+", first)
    if word is None or len(first.split()) < 2:
        yield f"the summary {first!r} is not a sentence"
    elif word[0].lower() in DANGLING:
        yield f"the summary begins with {word[0]!r}, and cannot be read alone"
    elif not (word[0][0].isupper() or word[0][0] == "`"):
        yield "the summary does not begin with a capital letter"
    if not first.endswith("."):
        yield f"the summary {first!r} does not end with a full stop"


def _class(public: PublicName, sections: dict[Any, Any]) -> Iterator[str]:
    if griffe.DocstringSectionKind.parameters in sections:
        yield from _parameters(public, sections)
        return
    if not PLACE.search(public.text):
        yield "no Args, and the text does not say what makes it: 'Made by `Log.producer`.'"
    yield from _fields(public, sections)


def _fields(public: PublicName, sections: dict[Any, Any]) -> Iterator[str]:
    described = {
        each.name: each.description
        for each in sections.get(griffe.DocstringSectionKind.attributes, ())
    }
    hints = getattr(public.shown, "__annotations__", {})
    for name in public.fields:
        if not described.get(name, "").strip():
            yield f"the attribute {name} is not described"
        elif NUMBERS.search(inspect.formatannotation(hints.get(name, ""))) and not UNITS.search(
            f"{described[name]} {name.replace('_', ' ')}"
        ):
            yield f"the attribute {name} has no unit"


def _parameters(public: PublicName, sections: dict[Any, Any]) -> Iterator[str]:
    described = {
        each.name.lstrip("*"): each.description
        for each in sections.get(griffe.DocstringSectionKind.parameters, ())
    }
    known = {each.name for each in public.parameters}
    yield from (f"there is no parameter {name}" for name in described if name not in known)
    for each in public.parameters:
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            yield f"**{each.name} hides the names of options"
            continue
        text = described.get(each.name, "").strip()
        if not text:
            yield f"the parameter {each.name} is not described"
            continue
        annotation = inspect.formatannotation(each.annotation)
        if NUMBERS.search(annotation) and not UNITS.search(text):
            yield f"the parameter {each.name} has no unit"
        yield from _default(each, text)


def _default(parameter: inspect.Parameter, text: str) -> Iterator[str]:
    """The signature shows a default. Its meaning or its size is for the text to say."""
    default = parameter.default
    if default is inspect.Parameter.empty or isinstance(default, bool | str | tuple):
        return
    if default is None:
        if not re.search(r"\bNone\b|\bdefault", text, re.IGNORECASE):
            yield f"the parameter {parameter.name} does not say what None means"
    elif isinstance(default, int | float):
        shown = {f"{default:g}", f"{default:,}", str(default)}
        if isinstance(default, int) and default and default % 2**20 == 0:
            shown.add(f"{default // 2**20} MiB")
        if not any(re.search(rf"(?<![\d.,]){re.escape(each)}(?![\d])", text) for each in shown):
            yield f"the parameter {parameter.name} does not say its default {default}"
    elif "default" not in text.lower():
        yield f"the parameter {parameter.name} does not say its default"


def _result(public: PublicName, sections: dict[Any, Any]) -> Iterator[str]:
    annotation = inspect.signature(public.shown).return_annotation
    if annotation in (None, "None", inspect.Signature.empty):
        return
    kinds = griffe.DocstringSectionKind
    if not sections.keys() & {kinds.returns, kinds.yields}:
        yield "no Returns or Yields"


def _example(sections: dict[Any, Any]) -> Iterator[str]:
    parts = sections.get(griffe.DocstringSectionKind.examples, ())
    if not any(kind is griffe.DocstringSectionKind.examples for kind, _ in parts):
        yield "no Examples with lines of >>>"


def _errors(public: PublicName, sections: dict[Any, Any], may_raise: bool) -> Iterator[str]:
    kinds = griffe.DocstringSectionKind
    raised = [str(each.annotation) for each in sections.get(kinds.raises, ())]
    yield from (f"{name} is not an error" for name in raised if not _is_error(name))
    if public.is_class or isinstance(public.shown, property) or public.is_fixture:
        return
    if may_raise and not raised:
        yield "no Raises"
    if not may_raise and raised:
        yield "has Raises, and is listed as a name that raises nothing"
    known = {_error(name) for name in raised if _is_error(name)}
    for name in _raised_in(public.source):
        if _is_error(name) and not any(issubclass(_error(name), each) for each in known):
            yield f"raises {name}, and does not say so"


def _raised_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name))):
                yield name


def _is_error(name: str) -> bool:
    return isinstance(_error(name), type)


def _error(name: str) -> Any:
    return (
        getattr(bucketlog, name, None)
        if name in bucketlog.__all__
        else getattr(builtins, name, None)
    )


def is_value(shown: object) -> bool:
    """A class whose instances are plain values."""
    return isinstance(shown, type) and (is_dataclass(shown) or hasattr(shown, "_fields"))
