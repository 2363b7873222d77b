"""`topics.yaml`: which topics there shall be, checked strictly.

Invariant: every key is known and appears once, and every error names its line.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from bucketlog.cli.yaml_document import FILE_BYTES_MAX, YamlDocument
from bucketlog.client.retention import retention_ms
from bucketlog.log_format.errors import ConfigurationError

RETENTION = "retention.ms"
_REMEDY = "docs/cli.md shows what the file may hold"


def _retention_ms(text: object) -> int:
    """As pydantic wants a validator to fail: with a `ValueError`."""
    try:
        return retention_ms(str(text))
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


class WantedTopic(BaseModel):
    """What is None or not among the configs is left as it is, or to the broker."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(min_length=1)]
    partitions: Annotated[int, Field(ge=1)] | None = None
    retention: Annotated[int, BeforeValidator(_retention_ms)] | None = None
    configs: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_retention_once(self) -> "WantedTopic":
        if self.retention is not None and RETENTION in self.configs:
            raise ValueError(f"retention and {RETENTION} say the same: leave one out")
        return self

    def all_configs(self) -> dict[str, str]:
        own = {} if self.retention is None else {RETENTION: str(self.retention)}
        return {**own, **self.configs}


class TopicsFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    topics: list[WantedTopic]


def read_topics(source: str, data: bytes) -> list[WantedTopic]:
    """`source` is the name of the file in errors. Raises `ConfigurationError`."""
    document = YamlDocument(source, data, _REMEDY)
    if document.data is None:
        raise document.error(1, "the file is empty: it begins with `topics:`")
    try:
        topics = TopicsFile.model_validate(document.data).topics
    except ValidationError as error:
        first = error.errors()[0]
        raise document.error(document.line(first["loc"]), _field_error(first)) from error
    names: dict[str, int] = {}
    for at, topic in enumerate(topics):
        line = document.line(("topics", at, "name"))
        if (before := names.setdefault(topic.name, line)) != line:
            raise document.error(line, f"topic {topic.name!r} is already in line {before}")
    return topics


def _field_error(error: Any) -> str:
    where = ".".join(map(str, (part for part in error["loc"] if isinstance(part, str))))
    match error["type"]:
        case "extra_forbidden":
            known = TopicsFile if len(error["loc"]) == 1 else WantedTopic
            return f"unknown key {error['loc'][-1]!r}: there are {', '.join(known.model_fields)}"
        case "missing":
            return f"{error['loc'][-1]!r} is missing"
        case "string_type" if error["loc"][-1:] != ("name",):
            return f"{where}: give it a value, or leave it out"
    return f"{where}: {error['msg'].removeprefix('Value error, ')}".removeprefix(": ")


def read_topics_file(path: Path) -> list[WantedTopic]:
    with path.open("rb") as file:
        return read_topics(str(path), file.read(FILE_BYTES_MAX + 1))
