"""Writes log_format/wire/messages from kio's schemas: `python scripts/messages.py`.

Each API has a module with one class for its requests and one TypedDict for its responses: the union
of all versions served. tests/architecture/test_messages.py compares the modules with the output.
"""

import dataclasses
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import OWN_CODECS, SERVED_VERSIONS

TARGET = Path(__file__).parents[1] / "log_format" / "wire" / "messages"
PACKAGE = '"""Typed messages, a module an API. Written by `scripts/messages.py`: do not edit."""\n'
HEAD = '''\
"""{name}: its request and response, versions {first} to {last}.

Written by `scripts/messages.py` from kio's schemas: do not edit.
"""

'''
ZEROS: dict[type[Any], object] = {
    bool: False,
    int: 0,
    str: "",
    bytes: b"",
    timedelta: timedelta(0),
    UUID: None,
}
"""What Kafka assumes if a version lacks a field whose schema names no default."""
TAKEN = frozenset({"Listener", "Node"})
"""Names of classes outside the messages."""
LINE = 100


@dataclass(slots=True)
class Field:
    """A field in all versions that have it."""

    name: str
    plain: type[Any]
    is_array: bool
    nullable: bool = False
    default: Any = field(default_factory=lambda: MISSING)
    versions: int = 0
    tagged: bool = False
    defaulted: int = 0
    """Versions that can do without a value."""


@dataclass(slots=True)
class Structure:
    name: str
    versions: int = 0
    fields: dict[str, Field] = field(default_factory=dict)


def render() -> dict[str, str]:
    """Text by the name of the file."""
    modules = {"__init__.py": PACKAGE}
    for key in SERVED_VERSIONS:
        if key not in OWN_CODECS:
            modules[f"{key.name.lower()}.py"] = _module(key)
    return modules


def _module(key: ApiKey) -> str:
    first, last = SERVED_VERSIONS[key]
    versions = [*reversed(SERVED_VERSIONS[key].each())]  # the newest sets the order of fields
    requests = _merged([load_request_schema(key, version) for version in versions])
    responses = _merged([load_response_schema(key, version) for version in versions])
    names = TAKEN | {each.name for each in requests}
    renamed = {each.name: f"Response{each.name}" for each in responses if each.name in names}
    name = key.message_name
    body = [_request_class(each) for each in requests]
    body += [_response_type(each, renamed) for each in responses]
    body.append(_call(key.name, [f"ApiKey.{key.name}", requests[-1].name, responses[-1].name]))
    text = "\n\n".join(body)
    return HEAD.format(name=name, first=first, last=last) + _imports(text) + "\n\n" + text


def _merged(schemas: Sequence[type[Any]]) -> list[Structure]:
    """Structures of one message in all its versions, the nested ones first."""
    found: dict[str, Structure] = {}
    for schema in schemas:
        for each in _structures(schema):
            _merge(found.setdefault(each.__name__, Structure(each.__name__)), each)
    ordered: dict[str, Structure] = {}

    def place(structure: Structure) -> None:
        for each in structure.fields.values():
            if dataclasses.is_dataclass(each.plain):
                place(found[each.plain.__name__])
        ordered.setdefault(structure.name, structure)

    place(found[schemas[0].__name__])
    return list(ordered.values())


def _structures(schema: type[Any]) -> Iterator[type[Any]]:
    """Each structure once, even if two fields have it."""
    found = {schema.__name__: schema}
    waiting = [schema]
    while waiting:
        hints = get_type_hints(waiting.pop())
        for hint in hints.values():
            plain, _, _ = _taken_apart(hint)
            if dataclasses.is_dataclass(plain) and plain.__name__ not in found:
                found[plain.__name__] = plain
                waiting.append(plain)
    yield from found.values()


def _merge(structure: Structure, schema: type[Any]) -> None:
    structure.versions += 1
    hints = get_type_hints(schema)
    for each in dataclasses.fields(schema):
        plain, is_array, nullable = _taken_apart(hints[each.name])
        known = structure.fields.setdefault(each.name, Field(each.name, plain, is_array))
        same = known.plain is plain or known.plain.__name__ == plain.__name__
        if not same or known.is_array != is_array:
            raise ValueError(f"{structure.name}.{each.name} has two types: {known.plain}, {plain}")
        known.versions += 1
        known.nullable |= nullable
        known.tagged |= "tag" in each.metadata
        known.defaulted += each.default is not MISSING or plain is timedelta
        if known.default is MISSING:
            known.default = each.default


def _taken_apart(hint: Any) -> tuple[type[Any], bool, bool]:
    """The type, whether the field is an array of it, and whether it may be null."""
    nullable = get_origin(hint) in (types.UnionType, Union)
    if nullable:
        (hint,) = [arm for arm in get_args(hint) if arm is not types.NoneType]
    if get_origin(hint) is tuple:
        plain, _, _ = _taken_apart(get_args(hint)[0])
        return plain, True, nullable
    return _plain(hint), False, nullable


def _plain(hint: Any) -> type[Any]:
    """Without kio's names for numbers and strings."""
    if not isinstance(hint, type):
        return object
    if issubclass(hint, Enum) or dataclasses.is_dataclass(hint) or hint is bool:
        return hint
    if "Timedelta" in hint.__name__:
        return timedelta
    kinds = (int, float, str, bytes, UUID, datetime)
    return next((plain for plain in kinds if issubclass(hint, plain)), hint)


def _request_class(structure: Structure) -> str:
    lines = [
        "@dataclass(frozen=True, slots=True, kw_only=True)",
        f"class {structure.name}:",
    ]
    for each in structure.fields.values():
        hint = each.plain.__name__
        if each.is_array:
            hint = f"tuple[{hint}, ...]"
        if each.nullable:
            hint += " | None"
        default = ""
        if each.tagged or each.versions < structure.versions:
            default = f" = {_literal(_default(each))}"
        lines.append(f"    {each.name}: {hint}{default}")
    return _class(lines)


def _default(each: Field) -> Any:
    if each.default is not MISSING:
        return each.default
    if each.is_array:
        return ()
    return ZEROS[each.plain]


def _literal(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"timedelta(milliseconds={round(value.total_seconds() * 1000)})"
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, str):
        return f'"{value}"'
    if value in ((), b""):
        return "()" if value == () else 'b""'
    raise ValueError(f"no literal for {value!r}")


def _response_type(structure: Structure, renamed: Mapping[str, str]) -> str:
    """`renamed`: names of structures that the request has, too, and their names here."""
    lines = [f"class {renamed.get(structure.name, structure.name)}(TypedDict):"]
    for each in structure.fields.values():
        hint = renamed.get(each.plain.__name__, each.plain.__name__)
        if each.is_array:
            hint = f"Sequence[{hint}]"
        if each.nullable:
            hint += " | None"
        if each.defaulted or each.versions < structure.versions:
            hint = f"NotRequired[{hint}]"
        lines.append(f"    {each.name}: {hint}")
    return _class(lines)


def _class(lines: list[str]) -> str:
    if any(len(line) > LINE for line in lines):
        raise ValueError(f"a line is too long: {lines}")
    if lines[-1].endswith(":"):
        lines.append("    pass")
    return "\n".join(lines) + "\n"


def _call(target: str, arguments: Sequence[str]) -> str:
    """As ruff breaks it."""
    in_one = ", ".join(arguments)
    if len(line := f"{target} = ApiMessages({in_one})") <= LINE:
        return f"{line}\n"
    if len(line := f"    {in_one}") <= LINE:
        return f"{target} = ApiMessages(\n{line}\n)\n"
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"{target} = ApiMessages(\n{lines})\n"


def _imports(text: str) -> str:
    """What `text` uses, in ruff's order."""
    typing = [name for name in ("NotRequired", "TypedDict") if name in text]
    times = [name for name in ("datetime", "timedelta") if name in text]
    standard = [
        ("Sequence[" in text, "from collections.abc import Sequence"),
        ("@dataclass" in text, "from dataclasses import dataclass"),
        (bool(times), f"from datetime import {', '.join(times)}"),
        (True, f"from typing import {', '.join(typing)}"),
        ("UUID" in text, "from uuid import UUID"),
    ]
    blocks = ["\n".join(line for used, line in standard if used)]
    if ErrorCode.__name__ in text:
        blocks.append("from kio.schema.errors import ErrorCode")
    blocks.append(
        "from bucketlog.log_format.wire.api_keys import ApiKey\n"
        "from bucketlog.log_format.wire.api_messages import ApiMessages"
    )
    return "\n\n".join(blocks) + "\n"


def main() -> int:
    TARGET.mkdir(exist_ok=True)
    modules = render()
    for path in TARGET.glob("*.py"):
        if path.name not in modules:
            path.unlink()
    for name, text in modules.items():
        (TARGET / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
