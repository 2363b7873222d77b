"""`topics.yaml`: which topics there shall be, checked strictly.

Invariant: every key is known and appears once, and every complaint names its line. Scalars are
taken as they are written: `on`, `010` and `1:30` are not surprises. Aliases are refused: a small
file with them may mean an enormous one.
"""

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from bucketlog.client.retention import retention_ms
from bucketlog.log_format.errors import ConfigurationError

FILE_BYTES_MAX = 4 * 1024 * 1024
NESTED_MAX = 100
"""Limit of the depth of nested lists and dicts."""
RETENTION = "retention.ms"
_NULL_TAG = "tag:yaml.org,2002:null"
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


def _line(mark: "Any | None") -> int:
    """Of a mark of PyYAML's, which counts from 0."""
    return mark.line + 1 if mark is not None else 1


class _Document:
    """YAML as dicts, lists and texts, and the line of each of them by its path."""

    def __init__(self, source: str, text: str) -> None:
        self._source = source
        self.lines: dict[tuple[str | int, ...], int] = {}
        try:
            depth = 0
            for event in yaml.parse(text, Loader=yaml.SafeLoader):
                if isinstance(event, yaml.AliasEvent):
                    raise self.error(_line(event.start_mark), "aliases (*name) are not taken")
                if isinstance(event, yaml.CollectionStartEvent):
                    depth += 1
                elif isinstance(event, yaml.CollectionEndEvent):
                    depth -= 1
                if depth > NESTED_MAX:
                    raise self.error(
                        _line(event.start_mark), f"nested more than {NESTED_MAX} levels deep"
                    )
            node = yaml.compose(text, Loader=yaml.SafeLoader)
            self.data = None if node is None else self._value(node, ())
        except yaml.YAMLError as error:
            said = getattr(error, "problem", None) or str(error).splitlines()[0]
            line = _line(getattr(error, "problem_mark", None))
            raise self.error(line, f"no YAML: {said}") from error

    def _value(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        self.lines.setdefault(path, _line(node.start_mark))
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*path, at)) for at, item in enumerate(node.value)]
        if not isinstance(node, yaml.MappingNode):
            return None if node.tag == _NULL_TAG else node.value
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = _line(key.start_mark)
            if not isinstance(key, yaml.ScalarNode):
                raise self.error(line, "a key must be a word")
            if key.value in found:
                raise self.error(line, f"{key.value!r} appears twice")
            self.lines[*path, key.value] = line
            found[key.value] = self._value(value, (*path, key.value))
        return found

    def line(self, path: tuple[str | int, ...]) -> int:
        """Of that, or of the nearest thing around it that is there."""
        while path not in self.lines:
            path = path[:-1]
            if not path:
                return self.lines.get((), 1)
        return self.lines[path]

    def error(self, line: int, message: str) -> ConfigurationError:
        return ConfigurationError(f"{self._source}, line {line}: {message}", remedy=_REMEDY)


def read_topics(source: str, data: bytes) -> list[WantedTopic]:
    """`source` is what complaints call the file. Raises `ConfigurationError`."""
    if len(data) > FILE_BYTES_MAX:
        raise ConfigurationError(
            f"{source} has more than {FILE_BYTES_MAX} bytes", remedy="split it into several files"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{source}, line {line}: no UTF-8", remedy=_REMEDY) from None
    document = _Document(source, text)
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
