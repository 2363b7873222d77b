"""`tables.yaml`: which tables `bucketlog table run-all` fills, checked strictly.

Invariants: the whole file is valid before anything begins, and every error names its line. No error
has the value of a variable of the environment, which may be a secret.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bucketlog.cli.table_maintain import (
    ORPHAN_AGE,
    ORPHAN_AGE_LEAST,
    SMALL_FILE_BYTES,
    SNAPSHOT_AGE,
    SNAPSHOTS_MAX,
    SNAPSHOTS_MAX_LEAST,
)
from bucketlog.cli.table_shape import DEFAULT_EPOCH_RANGE, ShapeFlags
from bucketlog.cli.yaml_document import YamlDocument
from bucketlog.log_format.durations import parse_duration_ms
from bucketlog.log_format.errors import ConfigurationError

TABLES_MAX = 1_000
_HIDDEN_LEAST = 4
_DURATION_MAX_S = 36_500 * 86_400
_REMEDY = "docs/lake.md shows what the file may hold"
_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{")
_TABLE_NAME = re.compile(r"[^.\s]+(\.[^.\s]+)+")
_FLAG = re.compile(r"--([a-z][a-z-]*)")


def _duration_s(text: object) -> float:
    try:
        found = parse_duration_ms(str(text)) / 1000
    except ConfigurationError as error:
        raise ValueError(str(error)) from None  # pydantic takes a ValueError as a failure
    if found > _DURATION_MAX_S:
        raise ValueError(f"{text} is too long: give at most 36500d")
    return found


def _expanded(text: str, info: ValidationInfo) -> str:
    """Replace `${NAME}` by the variable of the environment. `$${` is the text `${`."""
    environment: Mapping[str, str] = (info.context or {}).get("environment", {})
    used: dict[str, str] = (info.context or {}).get("used", {})

    def replaced(found: re.Match[str]) -> str:
        name = found[1]
        if name is None:
            if found[0] == "$${":
                return "${"
            raise ValueError("${ without a name and }: write ${NAME}, or $${ for the text ${")
        if name not in environment:
            raise ValueError(f"the environment has no variable {name}")
        if not environment[name].isprintable():
            raise ValueError(
                f"the variable {name} has a line break or another character that cannot be shown"
            )
        used[name] = environment[name]
        return environment[name]

    return _VARIABLE.sub(replaced, text)


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _joined(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _table_name(text: str) -> str:
    if not _TABLE_NAME.fullmatch(text):
        raise ValueError("a name such as database.table is expected")
    return text


Duration = Annotated[float, BeforeValidator(_duration_s)]
Expanded = Annotated[str, AfterValidator(_expanded)]
Texts = Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(_listed)]
DatabaseTable = Annotated[str, AfterValidator(_table_name)]


class CatalogSettings(BaseModel):
    """`properties` are those of PyIceberg."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[^.\s]+$")]
    properties: dict[str, Expanded] = Field(default_factory=dict)


class MaintainSettings(BaseModel):
    """The options of `bucketlog table maintain`. Times are in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    every: Annotated[Duration, Field(gt=0)]
    snapshot_age: Duration = _duration_s(SNAPSHOT_AGE)
    orphan_age: Duration = _duration_s(ORPHAN_AGE)
    snapshots_max: Annotated[int, Field(ge=SNAPSHOTS_MAX_LEAST)] = SNAPSHOTS_MAX
    small_file_bytes: Annotated[int, Field(ge=1)] = SMALL_FILE_BYTES

    @field_validator("orphan_age")
    @classmethod
    def _is_old_enough(cls, age_s: float) -> float:
        if age_s < ORPHAN_AGE_LEAST.total_seconds():
            raise ValueError("give at least 1d: a running ingest may still commit younger files")
        return age_s


class TableSettings(BaseModel):
    """Keys of `defaults`, and of each table. They have the names of the options of
    `bucketlog table run`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    value_format: Literal["json", "registry"] = "json"
    registry_url: Expanded | None = None
    registry_auth: Expanded | None = None
    registry_ca_file: Path | None = None
    bad_records: Literal["dead-letter", "fail", "null"] = "dead-letter"
    day_from: str | None = None
    epoch_unit: Texts = Field(default_factory=list)
    epoch_range: str = DEFAULT_EPOCH_RANGE
    partition_by: Annotated[str | None, BeforeValidator(_joined)] = None
    every: Annotated[Duration, Field(gt=0)] = 10.0
    maintain: MaintainSettings | None = None
    max_batch_offsets: Annotated[int, Field(ge=1)] | None = None
    allow_data_loss: bool = False


class WantedTable(TableSettings):
    """A table of the file. `options` are options of the source about the start, such as
    `startingTimestamp`."""

    topics: Annotated[Texts, Field(min_length=1)]
    into: DatabaseTable
    dead_letters: DatabaseTable | None = None
    fields: Annotated[str | None, Field(alias="schema")] = None
    subject: Texts | None = None
    message: str | None = None
    changes: Literal["append", "upsert", "debezium"] = "append"
    key: Texts = Field(default_factory=list)
    options: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits_together(self) -> "WantedTable":
        if self.value_format == "json" and self.fields is None:
            raise ValueError("JSON values need the key schema, such as 'id string, amount double'")
        for name in self.options:
            if not name.lower().startswith("starting"):
                raise ValueError(f"option {name!r} applies to all tables: give it at the top")
        if self.dead_letters is not None and self.bad_records != "dead-letter":
            raise ValueError(f"dead_letters has no use with bad_records: {self.bad_records}")
        return self

    def shape_flags(self, registry: Mapping[str, str | None]) -> ShapeFlags:
        """`registry` has the environment's `registry_url`, `registry_auth` and
        `registry_ca_file`, for keys that are not in the file."""
        ca_file = registry.get("registry_ca_file")
        return ShapeFlags(
            schema=self.fields,
            value_format=self.value_format,
            registry_url=self.registry_url or registry.get("registry_url"),
            registry_auth=self.registry_auth or registry.get("registry_auth"),
            registry_ca_file=self.registry_ca_file or (Path(ca_file) if ca_file else None),
            subject=self.subject,
            message=self.message,
            day_from=self.day_from,
            epoch_unit=self.epoch_unit,
            epoch_range=self.epoch_range,
        )


class TablesFile(BaseModel):
    """`options` are options of the source for all tables, such as `s3.endpoint_url`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bucket: Annotated[Expanded, Field(min_length=1)]
    catalog: CatalogSettings
    options: dict[str, Expanded] = Field(default_factory=dict)
    defaults: TableSettings = Field(default_factory=TableSettings)
    tables: Annotated[list[WantedTable], Field(min_length=1, max_length=TABLES_MAX)]


class ReadTables(NamedTuple):
    """A file that was read, and the document for errors about its parts."""

    wanted: TablesFile
    document: YamlDocument
    variables: Mapping[str, str]
    """The variables of the environment that the file names."""

    def hidden(self, text: str) -> str:
        """Return `text` with `${NAME}` for the values of variables, which may be secrets. Libraries
        quote settings in their errors. Values with fewer than four characters stay."""
        longest_first = sorted(self.variables.items(), key=lambda each: -len(each[1]))
        for name, value in longest_first:
            if len(value) >= _HIDDEN_LEAST:
                text = text.replace(value, f"${{{name}}}")
            text = _without_beginning(text, name, value) if "…" in text else text
        return text

    def error(self, at: int, error: ConfigurationError) -> ConfigurationError:
        """Return an error about the table number `at`, with keys of the file in place of flags."""
        line = self.document.line(("tables", at))
        into = self.wanted.tables[at].into
        message, remedy = (self.hidden(_as_keys(each)) for each in (error.message, error.remedy))
        said = self.document.error(line, f"table {into}: {message}")
        said.remedy = remedy
        return said


def _without_beginning(text: str, name: str, value: str) -> str:
    """Errors end long texts with an ellipsis, which may follow the beginning of `value`."""
    for size in range(min(len(value), len(text)), _HIDDEN_LEAST - 1, -1):
        text = text.replace(f"{value[:size]}…", f"${{{name}}}…")
    return text


def _as_keys(text: str) -> str:
    return _FLAG.sub(lambda found: found[1].replace("-", "_"), text)


def read_tables(source: str, data: bytes, environment: Mapping[str, str]) -> ReadTables:
    """`source` is the name of the file in errors. `environment` has the variables of `${NAME}`.
    Raises `ConfigurationError`."""
    document = YamlDocument(source, data, _REMEDY)
    if document.data is None:
        raise document.error(1, "the file is empty: it begins with `bucket:`")
    used: dict[str, str] = {}
    context = {"environment": environment, "used": used}
    try:
        wanted = TablesFile.model_validate(_with_defaults(document.data), context=context)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise document.error(document.line(first["loc"]), _field_error(first)) from None
    _refuse_names_twice(wanted, document)
    _refuse_names_with_the_catalog(wanted, document)
    return ReadTables(wanted, document, used)


def _with_defaults(data: Any) -> Any:
    """Add the keys of `defaults` to tables that lack them. Data of a wrong form stay unchanged."""
    if not isinstance(data, dict):
        return data
    defaults, tables = data.get("defaults"), data.get("tables")
    if not isinstance(defaults, dict) or not isinstance(tables, list):
        return data
    known = {name: value for name, value in defaults.items() if name in TableSettings.model_fields}
    merged = [{**known, **each} if isinstance(each, dict) else each for each in tables]
    return {**data, "tables": merged}


def _refuse_names_twice(wanted: TablesFile, document: YamlDocument) -> None:
    taken: dict[str, tuple[int, str, int]] = {}
    for at, table in enumerate(wanted.tables):
        names = [("into", table.into)]
        if table.bad_records == "dead-letter":
            names.append(("dead_letters", table.dead_letters or f"{table.into}_dead_letters"))
        for key, name in names:
            place = (at, key, document.line(("tables", at, key)))
            before = taken.setdefault(name.lower(), place)
            if before[0] != at:
                raise document.error(place[2], f"the table {name} is already in line {before[2]}")
            if before != place:
                raise document.error(place[2], f"{name} is the table of the rows as well")


def _refuse_names_with_the_catalog(wanted: TablesFile, document: YamlDocument) -> None:
    """In a name of two parts, the first part is a namespace, which may be named as the catalog."""
    for at, table in enumerate(wanted.tables):
        first, _, rest = table.into.partition(".")
        if first == wanted.catalog.name and "." in rest:
            raise document.error(
                document.line(("tables", at, "into")),
                "into: the name repeats the catalog's name, which is already at the top: write "
                f"{rest}",
            )


_MODELS: Mapping[str, type[BaseModel]] = {
    "catalog": CatalogSettings,
    "defaults": TableSettings,
    "maintain": MaintainSettings,
    "tables": WantedTable,
}


def _known_keys(loc: tuple[str | int, ...]) -> list[str]:
    """Return the keys that may be in the place of the unknown key at `loc`."""
    outer = next((part for part in reversed(loc[:-1]) if isinstance(part, str)), None)
    model = TablesFile if outer is None else _MODELS[outer]
    return [field.alias or name for name, field in model.model_fields.items()]


def _field_error(error: Any) -> str:
    loc = error["loc"]
    where = ".".join(part for part in loc if isinstance(part, str))
    match error["type"]:
        case "extra_forbidden":
            known = _known_keys(loc)
            alike = get_close_matches(loc[-1], known, 1)
            hint = f"did you mean {alike[0]!r}?" if alike else f"there are {', '.join(known)}"
            return f"unknown key {loc[-1]!r}: {hint}"
        case "missing":
            return f"{loc[-1]!r} is missing"
        case "string_type":
            return f"{where}: give it a value, or leave it out"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}".removeprefix(": ")


def ages(settings: MaintainSettings) -> tuple[timedelta, timedelta]:
    """The age of snapshots that expire, and of orphan files that are deleted."""
    return timedelta(seconds=settings.snapshot_age), timedelta(seconds=settings.orphan_age)
