"""The output of `bucketlog schema`: rows of subjects and schemas, and notes on stderr."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bucketlog.schema_registry.subjects import Subjects, is_name
from bucketlog.terminal import note

if TYPE_CHECKING:
    from bucketlog.schema_registry.registered_schema import Reference, RegisteredSchema

NOTES_MAX = 20
"""Most lines about the uses, or about the references, of one schema."""


def subject_rows(
    subjects: Subjects, names: Iterable[str], *, deleted: bool
) -> Iterator[dict[str, Any]]:
    for name in names:
        if not is_name(name):
            yield {"subject": name, "versions": [], "type": None, "id": None}
            continue
        live = subjects.versions(name)
        gone = set(subjects.versions(name, deleted=True)).difference(live) if deleted else set()
        there = live or sorted(gone)
        if not there:
            continue  # it was deleted meanwhile
        latest = subjects.find(name, there[-1], deleted=deleted)
        yield {
            "subject": name,
            "versions": live,
            "type": latest and latest.type,
            "id": latest and latest.schema_id,
            **({"deleted": sorted(gone)} if deleted else {}),
        }


def ranges(versions: Sequence[int]) -> str:
    """Write versions as ranges, such as `1-3, 5`."""
    spans: list[list[int]] = []
    for one in versions:
        if spans and spans[-1][1] == one - 1:
            spans[-1][1] = one
        else:
            spans.append([one, one])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans) or "none"


def schema_row(
    schema: "RegisteredSchema",
    number: int | None,
    inner: "Sequence[tuple[Reference, RegisteredSchema]]",
    *,
    is_resolved: bool,
) -> dict[str, Any]:
    references = [one._asdict() for one in schema.references]
    if is_resolved:
        references = [
            {**one._asdict(), "type": each.type, "schema": each.text} for one, each in inner
        ]
    return {
        "subject": schema.subject,
        "version": schema.version,
        "id": number,
        "type": schema.type,
        "schema": schema.text,
        "references": references,
    }


def note_schema(
    schema: "RegisteredSchema", number: int | None, uses: Sequence[tuple[str, int]]
) -> None:
    place = "" if schema.subject is None else f"{schema.subject}: version {schema.version}, "
    note(f"{place}id {number}, {schema.type}")
    note_some([f"subject {name} has it as version {version}" for name, version in uses])
    note_some([f"refers to {written(reference)}" for reference in schema.references])


def note_some(lines: Sequence[str]) -> None:
    note(*lines[:NOTES_MAX])
    if len(lines) > NOTES_MAX:
        note(f"and {len(lines) - NOTES_MAX:,} more")


def written(reference: "Reference") -> str:
    """Write a reference in the form that --reference takes."""
    return f"{reference.name}={reference.subject}:{reference.version}"
