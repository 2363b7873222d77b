"""Which handler serves which API, at which versions."""

import asyncio
from typing import Any

from bucketlog.log_format.wire.messages.alter_configs import ALTER_CONFIGS
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
from bucketlog.stateless_broker.assembly.consumer_groups import ConsumerGroups
from bucketlog.stateless_broker.assembly.security_apis import security_apis
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
from bucketlog.stateless_broker.handlers.coordination import CoordinationHandler
from bucketlog.stateless_broker.handlers.delete_records import DeleteRecordsHandler
from bucketlog.stateless_broker.handlers.fetch import BatchSources, FetchHandler, FetchLimits
from bucketlog.stateless_broker.handlers.groups import GroupsHandler
from bucketlog.stateless_broker.handlers.list_offsets import ListOffsetsHandler
from bucketlog.stateless_broker.handlers.metadata import MetadataHandler
from bucketlog.stateless_broker.handlers.offsets import OffsetsHandler
from bucketlog.stateless_broker.handlers.open_produce import SlicedWork
from bucketlog.stateless_broker.handlers.partition_quota import PartitionQuota
from bucketlog.stateless_broker.handlers.produce import ProduceHandler, ProduceLimits
from bucketlog.stateless_broker.handlers.topic_changes import TopicChanges
from bucketlog.stateless_broker.handlers.topics import TopicsHandler
from bucketlog.stateless_broker.handlers.transactions import TransactionsHandler
from bucketlog.stateless_broker.network.apis import Api, Routes
from bucketlog.stateless_broker.settings import BrokerSettings


def make_routes(
    broker: BrokerParts, groups: ConsumerGroups, end: EpochEnd, log: TransactionParts
) -> Routes:
    """The handlers of the epoch that ends with `end`."""
    settings, view, intake = broker.settings, broker.log.view, broker.log.intake
    reader, catch_up = broker.storage.reader, groups.catch_up_for_certain
    membership, supervisor = broker.cluster.membership, broker.supervision.supervisor
    tier_objects = TierObjects(reader, bytes_max=settings.tier_index_bytes_max)
    changes = TopicChanges(
        view=view,
        committer=intake,
        new_topic_id=broker.new_uuid,
        partitions_default=settings.num_partitions,
        partitions_max=settings.partitions_max,
        cluster_partitions_max=settings.cluster_partitions_max,
        quota=PartitionQuota(settings.partition_changes_per_s, _loop_s),
    )
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
        view=view, changes=changes, topic_defaults=settings.topic_defaults, turns=broker.turns
    )
    configs = _configs_handler(broker, changes)
    list_offsets = ListOffsetsHandler(
        view=view,
        reader=reader,
        tier=TierTimes(reader, tier_objects),
        catch_up=catch_up,
        turns=broker.turns,
    )
    delete_records = DeleteRecordsHandler(
        view=view,
        committer=intake,
        topic_defaults=settings.topic_defaults,
        catch_up=catch_up,
    )
    transactions = log.handler(end) if settings.transactions else None
    coordination = _coordination_handler(broker, end, log, transactions)
    return Routes(
        authorizer=broker.log.authorizer,
        apis=[
            Api(LIST_OFFSETS, list_offsets, BY_RESOURCE, large_answers=True),
            Api(METADATA, metadata, BY_RESOURCE, large_answers=True),
            Api(FIND_COORDINATOR, coordination.find_coordinator, BY_RESOURCE, large_answers=True),
            Api(DELETE_RECORDS, delete_records, BY_RESOURCE, audit=audited.deleted_records),
            Api(INIT_PRODUCER_ID, coordination.init_producer_id, BY_RESOURCE),
            Api(DESCRIBE_CONFIGS, configs.describe_configs, BY_RESOURCE, large_answers=True),
            *_change_apis(topics, configs),
            *security_apis(broker, catch_up),
            *topology_apis(broker, catch_up),
            *_group_apis(broker, groups),
            *(log.apis(transactions) if transactions is not None else ()),
        ],
        produce=_produce_handler(broker, end),
        fetch=_fetch_handler(broker, groups, tier_objects),
        transaction_version=2 if settings.transactions else None,
        quotas=broker.log.quotas,
    )


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


def _change_apis(topics: TopicsHandler, configs: ConfigsHandler) -> list[Api[Any, Any]]:
    """What changes topics and their configs."""
    return [
        Api(CREATE_TOPICS, topics.create_topics, BY_RESOURCE, audit=audited.created_topics),
        Api(DELETE_TOPICS, topics.delete_topics, BY_RESOURCE, audit=audited.deleted_topics),
        Api(
            CREATE_PARTITIONS,
            topics.create_partitions,
            BY_RESOURCE,
            audit=audited.created_partitions,
        ),
        Api(ALTER_CONFIGS, configs.alter_configs, BY_RESOURCE, audit=audited.altered_configs),
        Api(
            INCREMENTAL_ALTER_CONFIGS,
            configs.incremental_alter_configs,
            BY_RESOURCE,
            audit=audited.altered_some_configs,
        ),
    ]


def _configs_handler(broker: BrokerParts, changes: TopicChanges) -> ConfigsHandler:
    settings = broker.settings
    return ConfigsHandler(
        view=broker.log.view,
        changes=changes,
        broker_configs=_broker_configs(settings, broker.cluster.membership.me.node_id),
        topic_defaults=settings.topic_defaults,
        change_ms_max=settings.config_change_ms_max,
        turns=broker.turns,
    )


def _produce_handler(broker: BrokerParts, end: EpochEnd) -> ProduceHandler:
    settings, supervisor = broker.settings, broker.supervision.supervisor
    handler = ProduceHandler(
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
        topic_defaults=settings.topic_defaults,
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
    end.on_end(broker.cluster.membership.on_change(handler.roles_moved))
    return handler


def _fetch_handler(
    broker: BrokerParts, groups: ConsumerGroups, tier_objects: TierObjects
) -> FetchHandler:
    settings, reader = broker.settings, broker.storage.reader
    return FetchHandler(
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
        watchers=broker.log.watchers,
        catch_up=groups.catch_up_for_certain,
        membership=broker.cluster.membership,
        limits=FetchLimits(
            settings.fetch_bytes_max, settings.fetch_wait_ms_max, settings.fetch_read_ms_max
        ),
        turns=broker.turns,
    )


def _group_apis(broker: BrokerParts, consumer_groups: ConsumerGroups) -> list[Api[Any, Any]]:
    coordinator, kept = consumer_groups.coordinator, consumer_groups.offsets
    groups = GroupsHandler(
        coordinator=coordinator, offsets=kept, view=broker.log.view, turns=broker.turns
    )
    offsets = OffsetsHandler(
        offsets=kept,
        view=broker.log.view,
        metadata_bytes_max=broker.settings.offset_metadata_bytes_max,
        turns=broker.turns,
    )
    return [
        Api(OFFSET_COMMIT, offsets.commit, BY_RESOURCE),
        Api(OFFSET_FETCH, offsets.fetch, BY_RESOURCE, large_answers=True),
        Api(JOIN_GROUP, groups.join, BY_RESOURCE, waits=True),
        Api(HEARTBEAT, groups.heartbeat, BY_RESOURCE),
        Api(LEAVE_GROUP, groups.leave, BY_RESOURCE),
        Api(SYNC_GROUP, groups.sync, BY_RESOURCE, waits=True),
        Api(DESCRIBE_GROUPS, groups.describe, BY_RESOURCE, large_answers=True),
        Api(LIST_GROUPS, groups.list, BY_RESOURCE, large_answers=True),
        Api(DELETE_GROUPS, groups.delete, BY_RESOURCE, audit=audited.deleted_groups),
        Api(OFFSET_DELETE, offsets.delete, BY_RESOURCE, audit=audited.deleted_offsets),
    ]


def _broker_configs(settings: BrokerSettings, node_id: int) -> dict[str, str]:
    """Kafka's names for what this broker has of them."""
    return {
        "auto.create.topics.enable": str(settings.auto_create_topics).lower(),
        "broker.id": str(node_id),
        "broker.rack": settings.zone,
        "default.replication.factor": "1",
        "fetch.max.bytes": str(settings.fetch_bytes_max),
        "log.message.timestamp.after.max.ms": str(settings.log_message_timestamp_after_max_ms),
        "log.message.timestamp.before.max.ms": str(settings.log_message_timestamp_before_max_ms),
        "log.retention.bytes": str(settings.log_retention_bytes),
        "log.retention.check.interval.ms": str(settings.log_retention_check_interval_ms),
        "log.retention.ms": str(settings.log_retention_ms),
        "num.partitions": str(settings.num_partitions),
        "socket.request.max.bytes": str(settings.request_bytes_max),
    }


def _loop_s() -> float:
    return asyncio.get_running_loop().time()
