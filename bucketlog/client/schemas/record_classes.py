"""Classes that are records: pydantic models and dataclasses, with their fields as they are sent.

A field goes by its alias, where it has one, as in JSON; what else validation takes for it
(`validation_alias=AliasChoices(...)`) are the names that it had before.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from pydantic import AliasChoices, AliasPath, BaseModel, RootModel
from pydantic.fields import FieldInfo

from bucketlog.log_format.errors import ConfigurationError

MISSING = object()
"""No default that is the same each time."""


class RecordField(NamedTuple):
    attribute: str
    wire: str
    aliases: tuple[str, ...]
    annotation: Any
    metadata: tuple[Any, ...]
    default: Any
    required: bool


def is_record(declared: Any) -> bool:
    return isinstance(declared, type) and (
        (issubclass(declared, BaseModel) and not issubclass(declared, RootModel))
        or dataclasses.is_dataclass(declared)
    )


def members_of(cls: type) -> tuple[RecordField, ...]:
    """Raises `ConfigurationError`."""
    return _members_of(cls)


@cache
def _members_of(cls: Hashable) -> tuple[RecordField, ...]:
    assert isinstance(cls, type)
    fields: Mapping[str, FieldInfo] | None = getattr(cls, "__pydantic_fields__", None)
    return tuple(_of_dataclass(cls) if fields is None else _of_fields(cls, fields))


def _of_fields(cls: type, fields: Mapping[str, FieldInfo]) -> Iterator[RecordField]:
    config: Mapping[str, Any] = getattr(cls, "model_config", None) or getattr(
        cls, "__pydantic_config__", {}
    )
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    for name, info in fields.items():
        wire = info.serialization_alias or info.alias or name
        accepted = _accepted(cls, name, info)
        if by_name or not accepted:
            accepted = [*accepted, name]
        if wire not in accepted:
            raise ConfigurationError(
                f"{cls.__name__}.{name} is written as {wire!r} and not read by that name",
                remedy=f"add {wire!r} to its validation_alias, as AliasChoices({wire!r}, ...)",
            )
        default = info.default
        if info.default_factory is not None:
            default = _made_twice(info)
        yield RecordField(
            name,
            wire,
            tuple(other for other in dict.fromkeys(accepted) if other != wire),
            info.annotation,
            tuple(info.metadata),
            MISSING if info.is_required() else default,
            info.is_required(),
        )


def _accepted(cls: type, name: str, info: FieldInfo) -> list[str]:
    match info.validation_alias:
        case None:
            return []
        case str(alias):
            return [alias]
        case AliasChoices(choices=choices) if all(isinstance(one, str) for one in choices):
            return [str(one) for one in choices]
        case AliasPath() | AliasChoices():
            raise ConfigurationError(
                f"{cls.__name__}.{name} is read from a path", remedy="use names as aliases"
            )


def _made_twice(info: FieldInfo) -> Any:
    """What the factory makes, if it makes the same each time; else no schema can state it."""
    if info.default_factory_takes_validated_data:
        return MISSING
    return _same(lambda: info.get_default(call_default_factory=True, validated_data={}))


def _same(make: Callable[[], Any]) -> Any:
    first = make()
    return first if first == make() else MISSING


def _of_dataclass(cls: type) -> Iterator[RecordField]:
    hints = get_type_hints(cls, include_extras=True)
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        required = field.default is dataclasses.MISSING
        default: Any = MISSING if required else field.default
        if field.default_factory is not dataclasses.MISSING:
            required, default = False, _same(field.default_factory)
        yield RecordField(field.name, field.name, (), hints[field.name], (), default, required)
