"""The fact about configs of brokers, of groups and of subscriptions to clients' metrics."""

from enum import IntEnum
from typing import Annotated, Literal

from pydantic import Field

from bucketlog.metadata.config_definitions import VALUE_CHARACTERS_MAX
from bucketlog.metadata.fact_model import FactKind, FactModel, Milliseconds

RESOURCE_NAME_CHARS_MAX = 32_767
"""Longest string in Kafka's protocol."""


class ConfiguredKind(IntEnum):
    """The kinds of resources whose configs are here; topics have their own facts. As Kafka
    numbers them (ConfiguredKind.Type)."""

    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


ConfigName = Annotated[str, Field(min_length=1, max_length=VALUE_CHARACTERS_MAX)]
ConfigValue = Annotated[str, Field(max_length=VALUE_CHARACTERS_MAX)]


class ConfigsAltered(FactModel):
    """Configs that are set from now on; a value of None removes a config. With `replaces_all`, no
    other config stays set. `name` is that of a group or a subscription, or a broker's id; empty for
    all brokers. `by` is the principal that asked for the change."""

    kind: Literal[FactKind.CONFIGS_ALTERED] = Field(FactKind.CONFIGS_ALTERED, exclude=True)
    resource_type: ConfiguredKind
    name: Annotated[str, Field(max_length=RESOURCE_NAME_CHARS_MAX)]
    configs: dict[ConfigName, ConfigValue | None]
    replaces_all: bool = False
    by: str
    at_ms: Milliseconds
