"""Which parts of pydantic's description of a type change no value that JSON has.

Invariant: a key or setting that is not listed here makes pydantic decode the values, such as one
that a later version of pydantic adds.
"""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

NEUTRAL = {"type", "ref", "metadata", "serialization", "strict", "microseconds_precision"}
_CONFIG = {
    "title",
    "strict",
    "extra_fields_behavior",
    "from_attributes",
    "frozen",
    "hide_input_in_errors",
    "revalidate_instances",
    "allow_inf_nan",
    "populate_by_name",
    "validate_by_name",
    "validate_by_alias",
}
_DEFAULT = NEUTRAL | {
    "schema",
    "default",
    "default_factory",
    "default_factory_takes_data",
    "copy_default",
}
_CLASS = NEUTRAL | {
    "schema",
    "cls",
    "cls_name",
    "config",
    "custom_init",
    "extra_behavior",
    "fields",
    "frozen",
    "generic_origin",
    "post_init",
    "revalidate_instances",
    "root_model",
    "slots",
}
_FIELDS = NEUTRAL | {
    "cls",
    "cls_name",
    "collect_init_only",
    "computed_fields",
    "config",
    "dataclass_name",
    "extra_behavior",
    "fields",
    "from_attributes",
    "model_name",
    "total",
}
_FIELD = NEUTRAL | {
    "schema",
    "frozen",
    "init",
    "kw_only",
    "name",
    "required",
    "serialization_alias",
    "serialization_exclude",
    "serialization_exclude_if",
    "validation_alias",
}


def is_neutral_default(schema: Schema) -> bool:
    return schema.keys() <= _DEFAULT


def is_neutral_class(schema: Schema) -> bool:
    """Of a model or a dataclass: none of its functions sees the values."""
    return (
        schema.keys() <= _CLASS
        and not (schema.get("custom_init") or schema.get("post_init"))
        and _keeps_values(schema)
    )


def are_neutral_fields(schema: Schema) -> bool:
    """The fields of a class, together. A TypedDict has its settings here."""
    return schema.keys() <= _FIELDS and _keeps_values(schema)


def is_neutral_field(member: Schema) -> bool:
    """With `init=False`, a dataclass ignores the value that JSON has."""
    return member.keys() <= _FIELD and bool(member.get("init", True))


def reads_aliases_only(schema: Schema) -> bool:
    """JSON cannot have the field's own name instead of its alias."""
    config = schema.get("config") or {}
    return not (config.get("populate_by_name") or config.get("validate_by_name"))


def _keeps_values(schema: Schema) -> bool:
    config = schema.get("config") or {}
    return (
        config.keys() <= _CONFIG
        and config.get("extra_fields_behavior") != "forbid"
        and schema.get("extra_behavior") != "forbid"
    )
