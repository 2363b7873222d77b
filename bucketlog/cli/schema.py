"""`bucketlog schema`: list, show, register, check, compatibility, delete.

Invariant: text from a registry is hostile, and reaches the output only through
`bucketlog.terminal`.
"""

from enum import StrEnum
from typing import Annotated

import typer

from bucketlog.cli.options import DryRun, OutputFormat, Yes
from bucketlog.cli.registry_flags import with_registry
from bucketlog.cli.schema_deletion import DeletionRow, apply_deletion, deletion_of
from bucketlog.cli.schema_display import (
    note_schema,
    note_some,
    ranges,
    schema_row,
    subject_rows,
    written,
)
from bucketlog.cli.schema_file import OfType, References, SchemaFile, given_schema, parse_version
from bucketlog.log_format.errors import ConfigurationError, SchemaRegistryError
from bucketlog.schema_registry.subjects import LATEST, Subjects, Version
from bucketlog.terminal import (
    EXIT_FAILED,
    Output,
    confirm,
    counted,
    indented_json,
    note,
    print_rows,
    progress,
    say,
    say_text,
)

app = typer.Typer(
    help="List, show, register, check and delete the schemas of a registry.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
LIST_COLUMNS = ("subject", "versions", "type", "id")
REGISTERED_COLUMNS = ("subject", "version", "id", "type")
SUBJECTS_MAX = 10_000
MESSAGES_MAX = 50
MESSAGE_CHARACTERS_MAX = 2000


class Level(StrEnum):
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"


Subject = Annotated[str, typer.Argument(metavar="SUBJECT")]


@app.command("list")
@with_registry
def list_subjects(
    subjects: Subjects,
    prefix: Annotated[
        str, typer.Option("--prefix", metavar="TEXT", help="List only subjects with this prefix.")
    ] = "",
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Also list deleted subjects and versions.")
    ] = False,
    subjects_max: Annotated[
        int,
        typer.Option("--subjects-max", metavar="N", min=0, help="Largest number of subjects."),
    ] = SUBJECTS_MAX,
    output: OutputFormat = Output.TABLE,
) -> None:
    """List the subjects of a registry with their versions, and the latest version's type and id.

    A deleted version keeps its id until it is deleted permanently."""
    every = subjects.names(prefix, deleted=deleted)
    names = every[:subjects_max]
    with progress("Subjects", len(names), is_shown=output is Output.TABLE) as bar:
        rows = list(subject_rows(subjects, bar.over(names), deleted=deleted))
    columns = (*LIST_COLUMNS, "deleted") if deleted else LIST_COLUMNS
    if output is Output.TABLE:
        rows = [
            {**row, **{each: ranges(row.get(each, ())) for each in ("versions", "deleted")}}
            for row in rows
        ]
    print_rows(rows, columns, output)
    if more := len(every) - len(names):
        note(f"{counted(more, 'further subject')} not shown: raise --subjects-max or give --prefix")


@app.command("show")
@with_registry
def show(
    subjects: Subjects,
    subject: Annotated[str | None, typer.Argument(metavar="[SUBJECT]")] = None,
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="N", help="Version, or latest. Default: latest."),
    ] = None,
    schema_id: Annotated[
        int | None,
        typer.Option(
            "--id",
            envvar="BUCKETLOG_SCHEMA_SHOW_ID",
            metavar="N",
            min=0,
            help="Number (id) of the schema in the registry, instead of SUBJECT.",
        ),
    ] = None,
    references: Annotated[
        bool, typer.Option("--references", help="Also show all schemas that the schema refers to.")
    ] = False,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show the text of a schema, by its subject or its id.

    Data about the schema goes to stderr, so a pipe or a file gets only the text."""
    if (subject is None) == (schema_id is None):
        raise ConfigurationError(
            "a schema is named by SUBJECT or by --id", remedy="give SUBJECT or --id N, not both"
        )
    if schema_id is not None and version is not None:
        raise ConfigurationError("--id with --version", remedy="leave one out")
    uses: list[tuple[str, int]] = []
    if subject is not None:
        found = subjects.schema(subject, _version(version) or LATEST)
    else:
        assert schema_id is not None
        found, uses = subjects.schema_of_id(schema_id), subjects.uses(schema_id)
    inner = subjects.referenced(found) if references else []
    number = schema_id if found.schema_id is None else found.schema_id
    if output is not Output.TABLE:
        row = schema_row(found, number, inner, is_resolved=references)
        if schema_id is not None:
            row["subjects"] = [{"subject": name, "version": one} for name, one in uses]
        print_rows([row], (), Output.JSONL)
        return
    note_schema(found, number, uses)
    say_text(indented_json(found.text))
    for reference, schema in inner:
        say("", f"{written(reference)} ({schema.type}):")
        say_text(indented_json(schema.text))


def _version(text: str | None) -> Version | None:
    if text is None or text == LATEST:
        return None if text is None else LATEST
    number = parse_version(text)
    if number is None:
        raise ConfigurationError(f"--version {text}", remedy="give a number from 1, or latest")
    return number


@app.command("register")
@with_registry
def register(
    subjects: Subjects,
    subject: Subject,
    file: SchemaFile,
    type_name: OfType = None,
    reference: References = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Register the schema of a file as the next version of a subject.

    If the subject already has the schema, nothing changes."""
    given = given_schema(file, type_name, reference)
    before = subjects.lookup(subject, given)
    schema_id = subjects.register(subject, given) if before is None else before.schema_id
    found = before or subjects.lookup(subject, given)
    version = None if found is None else found.version
    row = {
        "subject": subject,
        "version": version,
        "id": schema_id,
        "type": given.type,
        "is_new": before is None,
    }
    print_rows([row], REGISTERED_COLUMNS, output)
    if before is not None:
        note(f"subject {subject} already has this schema: nothing is registered")
        return
    note(f"subject {subject}: the schema is registered")
    if schema_id is not None:
        others = [use for use in subjects.uses(schema_id) if use[0] != subject]
        note_some([f"id {schema_id} is also subject {name}, version {one}" for name, one in others])


@app.command("check")
@with_registry
def check(
    subjects: Subjects,
    subject: Subject,
    file: SchemaFile,
    type_name: OfType = None,
    reference: References = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Check whether a subject accepts the schema of a file as its next version.

    The exit code is 1 if the subject's compatibility level forbids the schema."""
    given = given_schema(file, type_name, reference)
    if not subjects.versions(subject):
        raise SchemaRegistryError(
            f"the schema registry has no subject {subject!r}",
            remedy="`bucketlog schema list` shows the subjects; any first schema is compatible",
        )
    found = subjects.check(subject, given)
    level, _ = _level(subjects, subject)
    messages = [_cut(text) for text in found.messages[:MESSAGES_MAX]]
    if output is Output.TABLE:
        verb = "is" if found.is_compatible else "is not"
        say(f"the schema {verb} compatible with subject {subject} ({level or 'unknown level'})")
        for text in messages:
            say(f"- {text}")
        if not found.is_compatible and not messages:
            note("the registry gives no reason")
    else:
        row = {
            "subject": subject,
            "level": level,
            "is_compatible": found.is_compatible,
            "messages": messages,
        }
        print_rows([row], (), Output.JSONL)
    if more := len(found.messages) - len(messages):
        note(f"{counted(more, 'further message')} not shown")
    if not found.is_compatible:
        raise typer.Exit(EXIT_FAILED)


def _cut(text: str) -> str:
    if len(text) <= MESSAGE_CHARACTERS_MAX:
        return text
    return f"{text[:MESSAGE_CHARACTERS_MAX]}…"


@app.command("compatibility")
@with_registry
def compatibility(
    subjects: Subjects,
    subject: Annotated[
        str | None,
        typer.Argument(metavar="[SUBJECT]", help="Subject; default: the whole registry."),
    ] = None,
    new: Annotated[
        Level | None,
        typer.Option(
            "--set",
            envvar="BUCKETLOG_SCHEMA_COMPATIBILITY_SET",
            case_sensitive=False,
            help="Set the level of the subject or of the registry.",
        ),
    ] = None,
    unset: Annotated[
        bool,
        typer.Option(
            "--unset",
            help="Remove the level: the registry's level, or the registry's default, applies.",
        ),
    ] = False,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show or change the compatibility level of a subject or of the registry."""
    if new is not None and unset:
        raise ConfigurationError("--set with --unset", remedy="leave one out")
    shown = () if subject is None else ("subject",)
    before, source = _level(subjects, subject)
    if new is None and not unset:
        row = {"subject": subject, "compatibility": before, "source": source}
        print_rows([row], (*shown, "compatibility", "source"), output)
        return
    if new is None:
        subjects.unset_level(subject)
    else:
        subjects.set_level(new.value, subject)
    after, source = _level(subjects, subject)
    if new is not None and after != new.value:
        raise SchemaRegistryError(
            f"the registry did not keep level {new.value}: the level is {after}",
            remedy="register a first schema of the subject: some registries need it",
        )
    row = {"subject": subject, "before": before, "after": after, "source": source}
    print_rows([row], (*shown, "before", "after", "source"), output)


def _level(subjects: Subjects, subject: str | None) -> tuple[str | None, str]:
    """Return the level that applies, and whether the subject or the registry has it."""
    own = None if subject is None else subjects.level(subject)
    return (subjects.level(), "registry") if own is None else (own, "subject")


@app.command("delete")
@with_registry
def delete(
    subjects: Subjects,
    subject: Subject,
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="N", help="Version, or latest. Default: all versions."),
    ] = None,
    permanent: Annotated[
        bool,
        typer.Option(
            "--permanent",
            help="Also remove the ids: nobody can read records with these schemas again.",
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Delete a subject or one of its versions, after showing them and asking.

    Without --permanent, the ids stay, so records with these schemas can still be read."""
    plan = deletion_of(subjects, subject, _version(version), permanent=permanent)
    rows = [row._asdict() for row in plan.rows]
    if output is Output.TABLE:
        for row in rows:
            row["referenced_by"] = ", ".join(map(str, row["referenced_by"])) or "none"
    print_rows(rows, DeletionRow._fields, output)
    what = f"{counted(len(rows), 'version')} of subject {subject}"
    how = " permanently" if permanent else ""
    if dry_run:
        note(f"{what} would be deleted{how}")
        return
    if not yes:
        confirm(f"Delete {what}{how}?")
    apply_deletion(subjects, plan)
    note(f"{what} {'is' if len(rows) == 1 else 'are'} deleted{how}")
