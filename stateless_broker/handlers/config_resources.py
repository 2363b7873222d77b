"""ListConfigResources: which resources have configs, or may have some.

Source: KIP-1142; Kafka 4.3's ConfigAdminManager. Version 0 lists subscriptions to clients' metrics
alone.
"""

from collections.abc import Callable, Iterator

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from bucketlog.metadata.config_facts import ConfiguredKind
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.handlers.other_configs import ConfigKind
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Slices, Turns

TYPES_FROM = 1
NAMES_A_UNIT = 20


class ConfigResourcesHandler:
    """`brokers` gives the ids of the live brokers."""

    def __init__(self, *, view: View, brokers: Callable[[], list[int]], turns: Turns) -> None:
        self._view = view
        self._brokers = brokers
        self._turns = turns

    async def list(
        self, request: Request, message: ListConfigResourcesRequest
    ) -> ListConfigResourcesResponse:
        wanted = set(message.resource_types) or set(ConfigKind)
        if request.header.api_version < TYPES_FROM:
            wanted = {ConfigKind.CLIENT_METRICS}
        if not wanted <= set(ConfigKind):
            return _listed(ErrorCode.unsupported_version, [])
        found = [
            (kind, name) for kind in ConfigKind if kind in wanted for name in self._names(kind)
        ]
        await Slices(self._turns).spend(1 + len(found) // NAMES_A_UNIT)
        return _listed(ErrorCode.none, found)

    def _names(self, kind: ConfigKind) -> Iterator[str]:
        match kind:
            case ConfigKind.TOPIC:
                yield from (topic.name for topic in self._view.topics())
            case ConfigKind.BROKER | ConfigKind.BROKER_LOGGER:
                yield from map(str, self._brokers())
            case _:
                yield from self._view.resource_configs.names(ConfiguredKind(kind))


def _listed(error: ErrorCode, found: "list[tuple[ConfigKind, str]]") -> ListConfigResourcesResponse:
    return {
        "error_code": error,
        "config_resources": [
            {"resource_name": name, "resource_type": kind} for kind, name in found
        ],
    }


def deny_list_resources(message: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    return _listed(ErrorCode.cluster_authorization_failed, [])
