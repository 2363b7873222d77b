"""The table of routes: the handler and the versions of each API."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from bucketlog.consumers.consumer_heartbeats import ConsumerHeartbeats
from bucketlog.log_format.wire.messages.alter_configs import ALTER_CONFIGS
from bucketlog.log_format.wire.messages.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from bucketlog.log_format.wire.messages.consumer_group_heartbeat import CONSUMER_GROUP_HEARTBEAT
from bucketlog.log_format.wire.messages.create_partitions import CREATE_PARTITIONS
from bucketlog.log_format.wire.messages.create_topics import CREATE_TOPICS
from bucketlog.log_format.wire.messages.delete_groups import DELETE_GROUPS
from bucketlog.log_format.wire.messages.delete_records import DELETE_RECORDS
from bucketlog.log_format.wire.messages.delete_topics import DELETE_TOPICS
from bucketlog.log_format.wire.messages.describe_configs import DESCRIBE_CONFIGS
from bucketlog.log_format.wire.messages.describe_groups import DESCRIBE_GROUPS
from bucketlog.log_format.wire.messages.find_coordinator import FIND_COORDINATOR
from bucketlog.log_format.wire.messages.heartbeat import HEARTBEAT
from bucketlog.log_format.wire.messages.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from bucketlog.log_format.wire.messages.init_producer_id import INIT_PRODUCER_ID
from bucketlog.log_format.wire.messages.join_group import JOIN_GROUP
from bucketlog.log_format.wire.messages.leave_group import LEAVE_GROUP
from bucketlog.log_format.wire.messages.list_groups import LIST_GROUPS
from bucketlog.log_format.wire.messages.list_offsets import LIST_OFFSETS
from bucketlog.log_format.wire.messages.metadata import METADATA
from bucketlog.log_format.wire.messages.offset_commit import OFFSET_COMMIT
from bucketlog.log_format.wire.messages.offset_delete import OFFSET_DELETE
from bucketlog.log_format.wire.messages.offset_fetch import OFFSET_FETCH
from bucketlog.log_format.wire.messages.sync_group import SYNC_GROUP
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.assembly.config_apis import configs_handler, list_resources_api
from bucketlog.stateless_broker.assembly.consumer_groups import ConsumerGroups
from bucketlog.stateless_broker.assembly.security_apis import security_apis
from bucketlog.stateless_broker.assembly.share_groups import ShareGroupParts
from bucketlog.stateless_broker.assembly.topology_apis import topology_apis
from bucketlog.stateless_broker.assembly.transaction_parts import TransactionParts
from bucketlog.stateless_broker.authorization.needs import BY_RESOURCE
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.fetch.read_ahead import ReadAhead
from bucketlog.stateless_broker.fetch.tier_objects import TierObjects
from bucketlog.stateless_broker.fetch.tier_reading import TierReader
from bucketlog.stateless_broker.fetch.tier_times import TierTimes
from bucketlog.stateless_broker.handlers import audited_changes as audited
from bucketlog.stateless_broker.handlers.configs import ConfigsHandler
from bucketlog.stateless_broker.handlers.consumer_groups import ConsumerGroupsHandler
from bucketlog.stateless_broker.handlers.coordination import CoordinationHandler
from bucketlog.stateless_broker.handlers.delete_records import DeleteRecordsHandler
from bucketlog.stateless_broker.handlers.fetch import FetchHandler
from bucketlog.stateless_broker.handlers.fetch_lookup import FetchLookup
from bucketlog.stateless_broker.handlers.fetch_waiting import FetchWaiting
from bucketlog.stateless_broker.handlers.groups import GroupsHandler
from bucketlog.stateless_broker.handlers.list_offsets import ListOffsetsHandler
from bucketlog.stateless_broker.handlers.metadata import MetadataHandler
from bucketlog.stateless_broker.handlers.offsets import OffsetsHandler
from bucketlog.stateless_broker.handlers.open_produce import SlicedWork
from bucketlog.stateless_broker.handlers.partition_quota import PartitionQuota
from bucketlog.stateless_broker.handlers.partition_reads import (
    BatchSources,
    FetchLimits,
    PartitionReads,
)
from bucketlog.stateless_broker.handlers.produce import ProduceHandler, ProduceLimits
from bucketlog.stateless_broker.handlers.topic_changes import TopicChanges
from bucketlog.stateless_broker.handlers.topics import TopicsHandler
from bucketlog.stateless_broker.handlers.transactions import TransactionsHandler
from bucketlog.stateless_broker.network.apis import Api, Routes
from bucketlog.stateless_broker.network.features import served_features
from bucketlog.stateless_broker.network.request_order import UNORDERED, Ordering, State, reads
from bucketlog.stateless_broker.settings.fetch import FetchSettings

LOG = State.TOPICS | State.RECORDS


def make_routes(
    broker: BrokerParts,
    groups: ConsumerGroups,
    shares: ShareGroupParts,
    end: EpochEnd,
    log: TransactionParts,
) -> Routes:
    """The handlers of the epoch that ends with `end`."""
    settings, view = broker.settings, broker.log.view
    reader, catch_up = broker.storage.reader, groups.catch_up_for_certain
    membership, supervisor = broker.cluster.membership, broker.supervision.supervisor
    tier_objects = TierObjects(reader, bytes_max=settings.tier_index_bytes_max)
    changes = _topic_changes(broker)
    metadata = MetadataHandler(
        view=view,
        membership=membership,
        changes=changes,
        auto_create_topics=settings.auto_create_topics,
        cache_bytes_max=settings.metadata_cache_bytes_max,
        turns=broker.turns,
        spawn=lambda work, name: supervisor.spawn(work, name, on_failure=lambda _: None),
    )
    topics = TopicsHandler(
        view=view,
        changes=changes,
        membership=membership,
        topic_defaults=broker.log.topic_defaults,
        turns=broker.turns,
    )
    configs = configs_handler(broker, changes)
    list_offsets = ListOffsetsHandler(
        view=view,
        reader=reader,
        tier=TierTimes(reader, tier_objects),
        keys=broker.log.keys,
        catch_up=catch_up,
        turns=broker.turns,
    )
    transactions = log.handler(end) if settings.transactions else None
    partition_reads, produce = _partition_reads(broker, tier_objects), _produce_handler(broker)
    features = served_features(transactions=settings.transactions)
    return Routes(
        authorizer=broker.log.authorizer,
        apis=[
            *_read_apis(list_offsets, metadata, configs),
            _delete_records_api(broker, catch_up),
            *_coordination_apis(_coordination_handler(broker, end, log, transactions)),
            *_change_apis(broker, topics, configs),
            *security_apis(broker, catch_up),
            *topology_apis(broker, catch_up, features),
            *_group_apis(broker, groups, shares),
            *shares.apis(partition_reads, list_offsets),
            *(log.apis(transactions) if transactions is not None else ()),
        ],
        produce=produce,
        produce_plain=produce.take_plain,
        fetch=_fetch_handler(broker, groups, partition_reads),
        features=features,
        quotas=broker.log.quotas,
    )


def _delete_records_api(
    broker: BrokerParts, catch_up: Callable[[], Awaitable[bool]]
) -> Api[Any, Any]:
    log = broker.log
    handler = DeleteRecordsHandler(
        view=log.view,
        committer=log.intake,
        topic_defaults=log.topic_defaults,
        catch_up=catch_up,
        change_ms_max=broker.settings.config_change_ms_max,
    )
    order = Ordering(LOG, State.RECORDS)
    return Api(DELETE_RECORDS, handler, BY_RESOURCE, order, audit=audited.deleted_records)


def _topic_changes(broker: BrokerParts) -> TopicChanges:
    settings = broker.settings
    return TopicChanges(
        view=broker.log.view,
        committer=broker.log.intake,
        new_topic_id=broker.new_uuid,
        partitions_default=settings.num_partitions,
        partitions_max=settings.partitions_max,
        cluster_partitions_max=settings.cluster_partitions_max,
        quota=PartitionQuota(settings.partition_changes_per_s, _loop_s),
        topic_defaults=broker.log.topic_defaults,
    )


def _read_apis(
    list_offsets: ListOffsetsHandler, metadata: MetadataHandler, configs: ConfigsHandler
) -> list[Api[Any, Any]]:
    """Return the APIs that read topics, their configs and their records."""
    return [
        Api(LIST_OFFSETS, list_offsets, BY_RESOURCE, reads(LOG), large_answers=True),
        Api(METADATA, metadata, BY_RESOURCE, reads(State.TOPICS), large_answers=True),
        Api(
            DESCRIBE_CONFIGS,
            configs.describe_configs,
            BY_RESOURCE,
            reads(State.TOPICS | State.CONFIGS),
            large_answers=True,
        ),
    ]


def _coordination_apis(coordination: CoordinationHandler) -> list[Api[Any, Any]]:
    find, init = coordination.find_coordinator, coordination.init_producer_id
    order = Ordering(State.TRANSACTIONS, State.TRANSACTIONS)
    return [
        Api(FIND_COORDINATOR, find, BY_RESOURCE, UNORDERED, large_answers=True),
        Api(INIT_PRODUCER_ID, init, BY_RESOURCE, order),
    ]


def _coordination_handler(
    broker: BrokerParts,
    end: EpochEnd,
    log: TransactionParts,
    transactions: TransactionsHandler | None,
) -> CoordinationHandler:
    return CoordinationHandler(
        membership=broker.cluster.membership,
        producer_ids=log.producer_ids,
        end=end,
        wait_ms=broker.settings.redis_timeout_ms,
        turns=broker.turns,
        transactions=transactions,
    )


def _change_apis(
    broker: BrokerParts, topics: TopicsHandler, configs: ConfigsHandler
) -> list[Api[Any, Any]]:
    """Return the APIs that change topics and configs, and list the resources that have configs."""
    return [
        list_resources_api(broker),
        Api(
            CREATE_TOPICS,
            topics.create_topics,
            BY_RESOURCE,
            Ordering(State.TOPICS, State.TOPICS | State.CONFIGS),
            audit=audited.created_topics,
        ),
        Api(
            DELETE_TOPICS,
            topics.delete_topics,
            BY_RESOURCE,
            Ordering(LOG, LOG | State.OFFSETS),
            audit=audited.deleted_topics,
        ),
        Api(
            CREATE_PARTITIONS,
            topics.create_partitions,
            BY_RESOURCE,
            Ordering(State.TOPICS, State.TOPICS),
            audit=audited.created_partitions,
        ),
        Api(
            ALTER_CONFIGS,
            configs.alter_configs,
            BY_RESOURCE,
            Ordering(State.TOPICS | State.CONFIGS, State.CONFIGS),
            audit=audited.altered_configs,
        ),
        Api(
            INCREMENTAL_ALTER_CONFIGS,
            configs.incremental_alter_configs,
            BY_RESOURCE,
            Ordering(State.TOPICS | State.CONFIGS, State.CONFIGS),
            audit=audited.altered_some_configs,
        ),
    ]


def _produce_handler(broker: BrokerParts) -> ProduceHandler:
    settings, supervisor = broker.settings, broker.supervision.supervisor
    return ProduceHandler(
        view=broker.log.view,
        validation=broker.validation,
        intake=broker.log.intake,
        membership=broker.cluster.membership,
        limits=ProduceLimits(
            settings.batch_decompressed_bytes_max,
            settings.produce_timeout_ms_max,
            settings.transactions,
            settings.transactional_id_bytes_max,
        ),
        topic_defaults=broker.log.topic_defaults,
        now_ms=broker.now_ms,
        sliced=SlicedWork(
            broker.turns,
            lambda work, answer: supervisor.spawn(
                work,
                "a large Produce",
                on_failure=lambda error: answer.close(f"Produce failed: {error!r}"),
            ),
        ),
    )


def _partition_reads(broker: BrokerParts, tier_objects: TierObjects) -> PartitionReads:
    settings, reader = broker.settings, broker.storage.reader
    return PartitionReads(
        view=broker.log.view,
        sources=BatchSources(
            reader,
            ReadAhead(reader, bytes_ahead=settings.read_ahead_bytes),
            TierReader(
                reader,
                tier_objects,
                bytes_ahead=settings.read_ahead_bytes,
                places_max=settings.fetch_places_max,
            ),
        ),
        keys=broker.log.keys,
        limits=_fetch_limits(settings),
        turns=broker.turns,
    )


def _fetch_limits(settings: FetchSettings) -> FetchLimits:
    return FetchLimits(
        settings.fetch_bytes_max, settings.fetch_wait_ms_max, settings.fetch_read_ms_max
    )


def _fetch_handler(
    broker: BrokerParts, groups: ConsumerGroups, reads: PartitionReads
) -> FetchHandler:
    return FetchHandler(
        lookup=FetchLookup(
            view=broker.log.view,
            membership=broker.cluster.membership,
            catch_up=groups.catch_up_for_certain,
            turns=broker.turns,
        ),
        waiting=FetchWaiting(
            reads=reads,
            watchers=broker.log.watchers,
            limits=_fetch_limits(broker.settings),
            turns=broker.turns,
        ),
        reads=reads,
        sessions=broker.log.sessions,
        turns=broker.turns,
    )


def _group_apis(
    broker: BrokerParts, consumer_groups: ConsumerGroups, shares: ShareGroupParts
) -> list[Api[Any, Any]]:
    coordinator, kept = consumer_groups.coordinator, consumer_groups.offsets
    view, turns = broker.log.view, broker.turns
    groups = GroupsHandler(
        coordinator=coordinator, offsets=kept, view=view, turns=turns, shares=shares.offsets
    )
    modern = ConsumerGroupsHandler(
        coordinator=coordinator,
        heartbeats=ConsumerHeartbeats(coordinator),
        view=broker.log.view,
        turns=broker.turns,
    )
    offsets = OffsetsHandler(
        offsets=kept,
        view=broker.log.view,
        metadata_bytes_max=broker.settings.offset_metadata_bytes_max,
        turns=broker.turns,
    )
    return [
        Api(
            OFFSET_COMMIT,
            offsets.commit,
            BY_RESOURCE,
            Ordering(State.TOPICS | State.GROUPS, State.GROUPS | State.OFFSETS),
        ),
        Api(
            OFFSET_FETCH,
            offsets.fetch,
            BY_RESOURCE,
            reads(State.GROUPS | State.OFFSETS),
            large_answers=True,
        ),
        Api(JOIN_GROUP, groups.join, BY_RESOURCE, UNORDERED, waits=True),
        Api(HEARTBEAT, groups.heartbeat, BY_RESOURCE, UNORDERED),
        Api(LEAVE_GROUP, groups.leave, BY_RESOURCE, Ordering(State.OFFSETS, State.GROUPS)),
        Api(
            CONSUMER_GROUP_HEARTBEAT,
            modern.heartbeat,
            BY_RESOURCE,
            Ordering(State.TOPICS | State.OFFSETS, State.GROUPS),
        ),
        Api(
            CONSUMER_GROUP_DESCRIBE,
            modern.describe,
            BY_RESOURCE,
            reads(State.TOPICS | State.GROUPS),
            large_answers=True,
        ),
        Api(SYNC_GROUP, groups.sync, BY_RESOURCE, UNORDERED, waits=True),
        Api(DESCRIBE_GROUPS, groups.describe, BY_RESOURCE, reads(State.GROUPS), large_answers=True),
        Api(LIST_GROUPS, groups.list, BY_RESOURCE, reads(State.GROUPS), large_answers=True),
        Api(
            DELETE_GROUPS,
            groups.delete,
            BY_RESOURCE,
            Ordering(State.GROUPS | State.OFFSETS, State.GROUPS | State.OFFSETS),
            audit=audited.deleted_groups,
        ),
        Api(
            OFFSET_DELETE,
            offsets.delete,
            BY_RESOURCE,
            Ordering(State.GROUPS | State.OFFSETS, State.GROUPS | State.OFFSETS),
            audit=audited.deleted_offsets,
        ),
    ]


def _loop_s() -> float:
    return asyncio.get_running_loop().time()
