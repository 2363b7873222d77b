"""Subjects of a schema registry: their versions, compatibility levels and deletion.

Invariants: nothing is cached, so each call asks the registry. Answers are checked, and an answer of
another shape is an error of the registry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import quote, urlencode

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.schema_registry.codec import SchemaType
from bucketlog.schema_registry.registered_schema import (
    Reference,
    RegisteredSchema,
    fields_in,
    id_in,
    items_in,
    referenced,
    schema_in,
    text_in,
    version_in,
)
from bucketlog.schema_registry.registry_connection import RegistryConnection

Version: TypeAlias = int | Literal["latest"]
LATEST: Literal["latest"] = "latest"
LIST_REMEDY = "`bucketlog schema list --deleted` shows all subjects and versions"


@dataclass(frozen=True, slots=True)
class GivenSchema:
    """A schema to register or to check."""

    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()

    def body(self) -> Mapping[str, Any]:
        return {
            "schema": self.text,
            "schemaType": self.type,
            "references": [one._asdict() for one in self.references],
        }


class Compatibility(NamedTuple):
    """The result of a check. `messages`: the registry's reasons; some registries give none."""

    is_compatible: bool
    messages: Sequence[str]


class Subjects:
    """All subjects of a registry. Each method may raise `SchemaRegistryError`."""

    def __init__(self, connection: RegistryConnection) -> None:
        self._connection = connection

    def names(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        """Return the subjects whose names begin with `prefix`, in order. `deleted`: also return
        deleted subjects."""
        flags = {**({"subjectPrefix": prefix} if prefix else {}), **_deleted(deleted)}
        found = self._connection.request(
            "asking for the subjects",
            "get",
            _path("subjects", **flags),
            _texts,
            missing=LIST_REMEDY,
        )
        # some registries ignore the prefix
        return sorted({name for name in found if name.startswith(prefix)})

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject, in order; none if the registry does not have the
        subject. `deleted`: also return deleted versions."""
        found = self._connection.find(
            f"asking for the versions of subject {subject!r}",
            "get",
            _path("subjects", _named(subject), "versions", **_deleted(deleted)),
            _versions,
        )
        return sorted(set(found or ()))

    def schema(
        self, subject: str, version: Version = LATEST, *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return a version of a subject. `deleted`: also return a deleted version."""
        return self._connection.request(
            f"asking for the {version} version of subject {subject!r}"
            if version == LATEST
            else f"asking for version {version} of subject {subject!r}",
            "get",
            _path("subjects", _named(subject), "versions", str(version), **_deleted(deleted)),
            schema_in,
            missing=LIST_REMEDY,
        )

    def find(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredSchema | None:
        """Return a version of a subject, or None if the registry does not have it. Some registries
        do not show the versions of a subject that is deleted as a whole."""
        return self._connection.find(
            f"asking for version {version} of subject {subject!r}",
            "get",
            _path("subjects", _named(subject), "versions", str(version), **_deleted(deleted)),
            schema_in,
        )

    def schema_of_id(self, schema_id: int) -> RegisteredSchema:
        """Return the schema with an id. Raises `InvalidDataError` if there is no such id."""
        return self._connection.request(
            f"asking for schema {schema_id}",
            "get",
            _path("schemas", "ids", str(schema_id)),
            schema_in,
            missing=LIST_REMEDY,
        )

    def uses(self, schema_id: int) -> list[tuple[str, int]]:
        """Return the subjects and versions that have the schema with this id."""
        found = self._connection.find(
            f"asking for the subjects of schema {schema_id}",
            "get",
            _path("schemas", "ids", str(schema_id), "versions"),
            _uses,
        )
        return sorted(set(found or ()))

    def referenced(self, schema: RegisteredSchema) -> list[tuple[Reference, RegisteredSchema]]:
        """Return all schemas that a schema refers to, each after the schemas that it refers to.
        Raises `InvalidDataError` if they are too many or too large."""
        return referenced(
            schema,
            lambda one: self.schema(one.subject, one.version, deleted=True),
            characters_max=self._connection.answer_bytes_max,
        )

    def referring(self, subject: str, version: int) -> list[int]:
        """Return the ids of the schemas that refer to a version of a subject."""
        found = self._connection.find(
            f"asking what refers to version {version} of subject {subject!r}",
            "get",
            _path("subjects", _named(subject), "versions", str(version), "referencedby"),
            _ids,
        )
        return sorted(set(found or ()))

    # Changes ---------------------------------------------------------------------------------

    def lookup(self, subject: str, schema: GivenSchema) -> RegisteredSchema | None:
        """Return the version of a subject that has this schema, or None if there is none."""
        return self._connection.find(
            f"looking for the schema in subject {subject!r}",
            "post",
            _path("subjects", _named(subject)),
            schema_in,
            body=schema.body(),
        )

    def register(self, subject: str, schema: GivenSchema) -> int:
        """Register a schema as the next version of a subject, and return its id. If the subject
        already has the schema, the registry does nothing. Raises `IncompatibleSchemaError`."""
        return self._connection.request(
            f"registering the schema of subject {subject!r}",
            "post",
            _path("subjects", _named(subject), "versions"),
            lambda answer: id_in(fields_in(answer).get("id")),
            body=schema.body(),
            missing=LIST_REMEDY,
        )

    def check(self, subject: str, schema: GivenSchema) -> Compatibility:
        """Return whether the subject's compatibility level allows this schema as the next
        version."""
        return self._connection.request(
            f"checking the schema against subject {subject!r}",
            "post",
            _path("compatibility", "subjects", _named(subject), "versions", verbose="true"),
            _compatibility,
            body=schema.body(),
            missing=LIST_REMEDY,
        )

    def level(self, subject: str | None = None) -> str | None:
        """Return the compatibility level of a subject, or None if the registry's level applies.
        Without a subject, return the registry's level."""
        return self._connection.find(
            f"asking for the compatibility level{_of(subject)}",
            "get",
            _path("config", *_parts(subject)),
            _level,
        )

    def set_level(self, level: str, subject: str | None = None) -> None:
        """Set the compatibility level of a subject or of the registry."""
        self._connection.request(
            f"setting the compatibility level{_of(subject)}",
            "put",
            _path("config", *_parts(subject)),
            fields_in,
            body={"compatibility": level},
            missing=LIST_REMEDY,
        )

    def unset_level(self, subject: str | None = None) -> None:
        """Remove the level of a subject, so that the registry's level applies. Without a subject,
        the registry's default applies."""
        self._connection.find(
            f"removing the compatibility level{_of(subject)}",
            "delete",
            _path("config", *_parts(subject)),
            lambda answer: None,
        )

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> None:
        """Delete a version of a subject, or all its versions. A deleted version keeps its id
        until it is deleted permanently. The registry refuses to delete versions permanently that
        were not deleted before."""
        below = () if version is None else ("versions", str(version))
        self._connection.request(
            f"deleting {f'version {version} of ' if version else ''}subject {subject!r}",
            "delete",
            _path(
                "subjects", _named(subject), *below, **({"permanent": "true"} if permanent else {})
            ),
            lambda answer: None,
            missing=LIST_REMEDY,
        )


def _path(*parts: str, **flags: str) -> str:
    path = "/".join(quote(part, safe="") for part in parts)
    return f"{path}?{urlencode(flags)}" if flags else path


def is_name(subject: str) -> bool:
    """Return True if this name can be one part of a URL's path."""
    try:
        subject.encode()
    except UnicodeEncodeError:
        return False
    return subject not in ("", ".", "..")


def _named(subject: str) -> str:
    if not is_name(subject):
        raise ConfigurationError(
            f"{subject!r} is not the name of a subject", remedy="give a name such as orders-value"
        )
    return subject


def _parts(subject: str | None) -> tuple[str, ...]:
    return () if subject is None else (_named(subject),)


def _of(subject: str | None) -> str:
    return " of the registry" if subject is None else f" of subject {subject!r}"


def _deleted(deleted: bool) -> Mapping[str, str]:
    return {"deleted": "true"} if deleted else {}


def _texts(answer: object) -> list[str]:
    return [text_in(each) for each in items_in(answer)]


def _versions(answer: object) -> list[int]:
    return [version_in(each) for each in items_in(answer)]


def _ids(answer: object) -> list[int]:
    return [id_in(each) for each in items_in(answer)]


def _uses(answer: object) -> list[tuple[str, int]]:
    rows = [fields_in(each) for each in items_in(answer)]
    return [(text_in(row.get("subject")), version_in(row.get("version"))) for row in rows]


def _compatibility(answer: object) -> Compatibility:
    given = fields_in(answer)
    is_compatible = given.get("is_compatible")
    if not isinstance(is_compatible, bool):
        raise ValueError(f"{is_compatible!r} is not a bool")
    return Compatibility(is_compatible, _texts(given.get("messages") or []))


def _level(answer: object) -> str:
    return text_in(fields_in(answer).get("compatibilityLevel"))
