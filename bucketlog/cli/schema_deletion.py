"""The plan of `schema delete`: the versions of a subject to delete, and what refers to them.

Invariant: if a subject has changed since its plan was shown, nothing is deleted.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bucketlog.log_format.errors import SchemaRegistryError
from bucketlog.schema_registry.subjects import LIST_REMEDY

if TYPE_CHECKING:
    from bucketlog.schema_registry.subjects import Subjects, Version


class DeletionRow(NamedTuple):
    """One version to delete. `id` and `type` are None if the registry does not show them.

    `state`: "in use", or "deleted" if only the permanent deletion remains. `referenced_by`: ids of
    schemas.
    """

    subject: str
    version: int
    id: int | None
    type: str | None
    state: str
    referenced_by: Sequence[int]


class Deletion(NamedTuple):
    """The plan of a deletion. `version` is None for all versions."""

    subject: str
    version: int | None
    permanent: bool
    rows: Sequence[DeletionRow]


def deletion_of(
    subjects: "Subjects", subject: str, version: "Version | None", *, permanent: bool
) -> Deletion:
    """Return the plan. Raises `SchemaRegistryError`."""
    live = subjects.versions(subject)
    every = subjects.versions(subject, deleted=True)
    there = sorted({*live, *every}) if permanent else live
    if not there:
        is_deleted = bool(every)
        raise SchemaRegistryError(
            f"all versions of subject {subject!r} are deleted"
            if is_deleted
            else f"the schema registry has no subject {subject!r}",
            remedy="add --permanent to delete them permanently" if is_deleted else LIST_REMEDY,
        )
    number = there[-1] if version == "latest" else version
    if number is not None and number not in there:
        raise SchemaRegistryError(
            f"subject {subject!r} has no version {number}", remedy=LIST_REMEDY
        )
    rows = []
    for one in there if number is None else [number]:
        found = subjects.find(subject, one, deleted=True)
        state = "in use" if one in live else "deleted"
        referring = subjects.referring(subject, one)
        schema_id, kind = (None, None) if found is None else (found.schema_id, found.type)
        rows.append(DeletionRow(subject, one, schema_id, kind, state, referring))
    return Deletion(subject, number, permanent, rows)


def apply_deletion(subjects: "Subjects", plan: Deletion) -> None:
    """Delete the versions of a plan. Raises `SchemaRegistryError`, also if the subject changed."""
    live = subjects.versions(plan.subject)
    planned = [row.version for row in plan.rows if row.state == "in use"]
    now = live if plan.version is None else [one for one in live if one == plan.version]
    if now != planned:
        raise SchemaRegistryError(
            f"subject {plan.subject!r} has changed meanwhile",
            remedy="nothing is deleted: run the command again",
        )
    if planned:
        subjects.delete(plan.subject, plan.version)
    if plan.permanent:
        subjects.delete(plan.subject, plan.version, permanent=True)
