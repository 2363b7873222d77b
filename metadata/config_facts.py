"""The fact about configs of brokers, of groups and of subscriptions to clients' metrics."""

from enum import IntEnum
from typing import Annotated, Literal

from pydantic import Field

from bucketlog.metadata.config_definitions import VALUE_CHARACTERS_MAX
from bucketlog.metadata.fact_model import FactKind, FactModel, Milliseconds

RESOURCE_NAME_CHARS_MAX = 32_767
"""What a string of Kafka's protocol can hold."""


class ConfiguredKind(IntEnum):
    """The kinds of resources whose configs are here; topics have their own facts. As Kafka
    numbers them (ConfiguredKind.Type)."""

    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


ConfigName = Annotated[str, Field(min_length=1, max_length=VALUE_CHARACTERS_MAX)]
ConfigValue = Annotated[str, Field(max_length=VALUE_CHARACTERS_MAX)]


class ConfigsAltered(FactModel):
    """What is set from now on; None for what is not any more. With `replaces_all`, nothing else is
    set. `name`: of a group or a subscription, or a broker's id; empty for all brokers. `by`: the
    principal that asked for it."""

    kind: Literal[FactKind.CONFIGS_ALTERED] = Field(FactKind.CONFIGS_ALTERED, exclude=True)
    resource_type: ConfiguredKind
    name: Annotated[str, Field(max_length=RESOURCE_NAME_CHARS_MAX)]
    configs: dict[ConfigName, ConfigValue | None]
    replaces_all: bool = False
    by: str
    at_ms: Milliseconds
