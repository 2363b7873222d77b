"""The configs of brokers, groups and subscriptions to clients' metrics in the fold. Pure.

Invariant: a resource without configs is not here.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bucketlog.metadata.config_facts import ConfigsAltered, ConfiguredKind

_NONE: Mapping[str, str] = {}


class ResourceName(NamedTuple):
    """The name of a resource with configs. `name` is empty for all brokers."""

    kind: ConfiguredKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} {self.name!r}"


ALL_BROKERS = ResourceName(ConfiguredKind.BROKER, "")


class ResourceConfigs:
    """The configs of resources. `version` changes with each change."""

    def __init__(self) -> None:
        self._by_resource: dict[ResourceName, dict[str, str]] = {}
        self.version = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceConfigs) and self._by_resource == other._by_resource

    __hash__ = None  # type: ignore[assignment]  # configs change

    def __len__(self) -> int:
        return len(self._by_resource)

    def __iter__(self) -> Iterator[ResourceName]:
        return iter(self._by_resource)

    def of(self, resource: ResourceName) -> Mapping[str, str]:
        """Return the configs of the resource. Do not keep the result over an await."""
        return self._by_resource.get(resource, _NONE)

    def names(self, kind: ConfiguredKind) -> list[str]:
        return [name for found, name in self._by_resource if found is kind]

    def items(self) -> list[tuple[ResourceName, str, str]]:
        """A row for each config."""
        return [
            (resource, name, value)
            for resource, configs in self._by_resource.items()
            for name, value in configs.items()
        ]

    def apply(self, fact: ConfigsAltered) -> None:
        resource = ResourceName(fact.resource_type, fact.name)
        before = {} if fact.replaces_all else self.of(resource)
        after = {**before, **fact.configs}
        self.put(resource, {name: value for name, value in after.items() if value is not None})

    def put(self, resource: ResourceName, configs: dict[str, str]) -> None:
        self.version += 1
        if configs:
            self._by_resource[resource] = configs
        else:
            self._by_resource.pop(resource, None)
