"""A schema in a registry's answer, and the schemas that the schema refers to.

Pure. Invariants: an answer of another shape raises `ValueError`, because registries are hostile.
The number and the size of the schemas that a schema refers to are bounded.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.log_format.errors import InvalidDataError

REFERENCES_MAX = 1000
ID_MAX = 2**32 - 1
"""Largest id of a schema: a frame has room for 32 bits."""
VERSION_MAX = 2**31 - 1


class Reference(NamedTuple):
    """A reference to another schema. `name`: the name of that schema in the text."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema of a registry. `subject`, `version` and `schema_id` are None if the answer does not
    have them. `type`: AVRO, PROTOBUF, JSON, or another type that the registry knows."""

    subject: str | None
    version: int | None
    schema_id: int | None
    type: str
    text: str
    references: tuple[Reference, ...] = ()


def id_in(value: object) -> int:
    """Return a schema id. Raises `ValueError`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= ID_MAX:
        raise ValueError(f"{value!r} is not a schema id")
    return value


def version_in(value: object) -> int:
    """Return the version of a subject. Raises `ValueError`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= VERSION_MAX:
        raise ValueError(f"{value!r} is not a version")
    return value


def text_in(value: object) -> str:
    """Return a string. Raises `ValueError`."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    return value


def items_in(value: object) -> list[object]:
    """Return a list. Raises `ValueError`."""
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return value


def fields_in(value: object) -> dict[str, object]:
    """Return a JSON object. Raises `ValueError`."""
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not a JSON object")
    return value


def schema_in(answer: object) -> RegisteredSchema:
    """Return the schema of an answer. Raises `ValueError`."""
    given = fields_in(answer)
    subject, version, schema_id = given.get("subject"), given.get("version"), given.get("id")
    return RegisteredSchema(
        None if subject is None else text_in(subject),
        None if version is None else version_in(version),
        None if schema_id is None else id_in(schema_id),
        text_in(given.get("schemaType") or "AVRO"),
        text_in(given.get("schema")),
        tuple(_references(given.get("references"))),
    )


def _references(value: object) -> Iterable[Reference]:
    """Return the references. Those without a subject or a version are skipped: they name nothing
    that the registry has."""
    for each in items_in(value or []):
        given = fields_in(each)
        subject, version = given.get("subject"), given.get("version")
        if subject is not None and version is not None:
            name = given.get("name") or subject
            yield Reference(text_in(name), text_in(subject), version_in(version))


def referenced(
    schema: RegisteredSchema,
    ask: Callable[[Reference], RegisteredSchema],
    *,
    characters_max: int,
) -> list[tuple[Reference, RegisteredSchema]]:
    """Return all schemas that a schema refers to, each after the schemas that it refers to.

    `characters_max`: limit of the length of all their texts. Raises `InvalidDataError`.
    """
    found: list[tuple[Reference, RegisteredSchema]] = []
    seen: set[tuple[str, int]] = set()
    characters = 0
    stack: list[tuple[Reference | None, RegisteredSchema]] = [(None, schema)]
    rests = [iter(schema.references)]
    while stack:
        one = next((each for each in rests[-1] if each[1:] not in seen), None)
        if one is None:
            rests.pop()
            reference, inner = stack.pop()
            if reference is not None:
                found.append((reference, inner))
            continue
        seen.add((one.subject, one.version))
        if len(seen) > REFERENCES_MAX:
            raise InvalidDataError(f"a schema refers to more than {REFERENCES_MAX:,} others")
        inner = ask(one)
        characters += len(inner.text)
        if characters > characters_max:
            raise InvalidDataError(
                f"a schema refers to others with more than {characters_max:,} characters"
            )
        stack.append((one, inner))
        rests.append(iter(inner.references))
    return found
