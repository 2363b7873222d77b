"""The APIs that describe brokers, leaders and replicas, and those that would move them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from bucketlog.log_format.wire.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
)
from bucketlog.log_format.wire.messages.describe_cluster import DESCRIBE_CLUSTER
from bucketlog.log_format.wire.messages.describe_log_dirs import DESCRIBE_LOG_DIRS
from bucketlog.log_format.wire.messages.describe_quorum import DESCRIBE_QUORUM
from bucketlog.log_format.wire.messages.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS
from bucketlog.log_format.wire.messages.elect_leaders import ELECT_LEADERS
from bucketlog.log_format.wire.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
)
from bucketlog.log_format.wire.messages.offset_for_leader_epoch import OFFSET_FOR_LEADER_EPOCH
from bucketlog.log_format.wire.messages.update_features import UPDATE_FEATURES
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.assembly.telemetry_apis import telemetry_apis
from bucketlog.stateless_broker.authorization.needs import BY_RESOURCE, NeedsCluster
from bucketlog.stateless_broker.handlers import audited_changes as audited
from bucketlog.stateless_broker.handlers.cluster import ClusterHandler
from bucketlog.stateless_broker.handlers.features import FeaturesHandler, deny_update
from bucketlog.stateless_broker.handlers.leader_epochs import LeaderEpochsHandler
from bucketlog.stateless_broker.handlers.log_dirs import LogDirsHandler, deny_log_dirs
from bucketlog.stateless_broker.handlers.quorum import deny_quorum, describe_quorum
from bucketlog.stateless_broker.handlers.reassignments import (
    ReassignmentsHandler,
    deny_alter,
    deny_elect,
    deny_list,
)
from bucketlog.stateless_broker.handlers.topic_partitions import TopicPartitionsHandler
from bucketlog.stateless_broker.network.apis import Api
from bucketlog.stateless_broker.network.request_order import UNORDERED, State, reads

DESCRIBE, ALTER = (AclOperation.DESCRIBE,), (AclOperation.ALTER,)


def topology_apis(
    broker: BrokerParts, catch_up: Callable[[], Awaitable[bool]], levels: Mapping[str, int]
) -> list[Api[Any, Any]]:
    """`levels`: the levels of the served features, by name."""
    view, membership, turns = broker.log.view, broker.cluster.membership, broker.turns
    moves = ReassignmentsHandler(view=view, membership=membership, turns=turns)
    epochs = LeaderEpochsHandler(view=view, catch_up=catch_up, turns=turns)
    pages = TopicPartitionsHandler(view=view, membership=membership, turns=turns)
    log_dirs = LogDirsHandler(
        view=view, membership=membership, log_dir=broker.settings.bucket_url, turns=turns
    )
    features = FeaturesHandler(levels, membership)
    return [
        Api(
            DESCRIBE_CLUSTER,
            ClusterHandler(membership).describe,
            BY_RESOURCE,
            UNORDERED,
            large_answers=True,
        ),
        Api(DESCRIBE_QUORUM, describe_quorum, NeedsCluster(DESCRIBE, deny_quorum), UNORDERED),
        Api(
            UPDATE_FEATURES,
            features.update,
            NeedsCluster(ALTER, deny_update),
            UNORDERED,
            audit=audited.updated_features,
        ),
        Api(DESCRIBE_TOPIC_PARTITIONS, pages, BY_RESOURCE, reads(State.TOPICS), large_answers=True),
        Api(
            OFFSET_FOR_LEADER_EPOCH,
            epochs,
            BY_RESOURCE,
            reads(State.TOPICS | State.RECORDS),
            large_answers=True,
        ),
        Api(
            DESCRIBE_LOG_DIRS,
            log_dirs,
            NeedsCluster(DESCRIBE, deny_log_dirs),
            reads(State.TOPICS | State.RECORDS),
            large_answers=True,
        ),
        Api(
            ELECT_LEADERS,
            moves.elect,
            NeedsCluster(ALTER, deny_elect),
            reads(State.TOPICS),
            audit=audited.elected_leaders,
        ),
        Api(
            ALTER_PARTITION_REASSIGNMENTS,
            moves.alter,
            NeedsCluster(ALTER, deny_alter),
            reads(State.TOPICS),
            audit=audited.reassigned_partitions,
        ),
        Api(
            LIST_PARTITION_REASSIGNMENTS,
            moves.list,
            NeedsCluster(DESCRIBE, deny_list),
            reads(State.TOPICS),
            large_answers=True,
        ),
        *telemetry_apis(broker),
    ]
