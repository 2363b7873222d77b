"""The APIs of configs: those of topics, and of all other resources."""

from typing import Any

from bucketlog.log_format.wire.messages.list_config_resources import LIST_CONFIG_RESOURCES
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.authorization.needs import NeedsCluster
from bucketlog.stateless_broker.handlers.broker_configs import BrokerConfigs
from bucketlog.stateless_broker.handlers.config_resources import (
    ConfigResourcesHandler,
    deny_list_resources,
)
from bucketlog.stateless_broker.handlers.configs import ConfigsHandler
from bucketlog.stateless_broker.handlers.other_configs import OtherConfigs, ResourceLimits
from bucketlog.stateless_broker.handlers.security_changes import SecurityChanges
from bucketlog.stateless_broker.handlers.topic_changes import TopicChanges
from bucketlog.stateless_broker.network.apis import Api
from bucketlog.stateless_broker.network.request_order import State, reads


def configs_handler(broker: BrokerParts, changes: TopicChanges) -> ConfigsHandler:
    settings, log, membership = broker.settings, broker.log, broker.cluster.membership

    def listeners() -> list[str]:
        return [
            f"{each.name}://{each.host}:{each.port}" for each in membership.me.address.listeners
        ]

    others = OtherConfigs(
        view=log.view,
        changes=SecurityChanges(log.intake, change_ms_max=settings.config_change_ms_max),
        brokers=BrokerConfigs(
            settings,
            node_id=membership.me.node_id,
            listeners=listeners,
            topic_defaults=log.topic_defaults,
        ),
        topic_defaults=log.topic_defaults,
        limits=ResourceLimits(
            settings.config_resources_max, settings.config_resource_name_bytes_max
        ),
        now_ms=broker.now_ms,
    )
    return ConfigsHandler(
        view=log.view,
        changes=changes,
        others=others,
        topic_defaults=log.topic_defaults,
        change_ms_max=settings.config_change_ms_max,
        turns=broker.turns,
    )


def list_resources_api(broker: BrokerParts) -> Api[Any, Any]:
    membership = broker.cluster.membership
    handler = ConfigResourcesHandler(
        view=broker.log.view,
        brokers=lambda: [each.node_id for each in membership.members],
        turns=broker.turns,
    )
    return Api(
        LIST_CONFIG_RESOURCES,
        handler.list,
        NeedsCluster((AclOperation.DESCRIBE_CONFIGS,), deny_list_resources),
        reads(State.TOPICS | State.CONFIGS),
        large_answers=True,
    )
