"""Which handler serves which API, at which versions."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from bucketlog.model import WallClock
from metadata.sequencer.client import Sequencer
from metadata.view import View
from stateless_broker.consumer_groups import ConsumerGroups
from stateless_broker.epochs.end import EpochEnd
from stateless_broker.fetch.feed import Watchers
from stateless_broker.fetch.read_ahead import ReadAhead
from stateless_broker.fetch.reading import RangeReader
from stateless_broker.fetch.tier_objects import TierObjects
from stateless_broker.fetch.tier_reading import TierReader
from stateless_broker.fetch.tier_times import TierTimes
from stateless_broker.handlers.configs import ConfigsHandler
from stateless_broker.handlers.coordination import CoordinationHandler
from stateless_broker.handlers.delete_records import DeleteRecordsHandler
from stateless_broker.handlers.fetch import FetchHandler, FetchLimits
from stateless_broker.handlers.groups import GroupsHandler
from stateless_broker.handlers.list_offsets import ListOffsetsHandler
from stateless_broker.handlers.metadata import MetadataHandler
from stateless_broker.handlers.offsets import OffsetsHandler
from stateless_broker.handlers.produce import ProduceHandler, ProduceLimits
from stateless_broker.handlers.topics import TopicsHandler
from stateless_broker.health import Health
from stateless_broker.membership import Membership
from stateless_broker.network.dispatch import Api, Dispatcher
from stateless_broker.produce.intake import Intake
from stateless_broker.settings import BrokerSettings
from stateless_broker.supervisor import Supervisor
from stateless_broker.topic_changes import TopicChanges


@dataclass(frozen=True, slots=True)
class Parts:
    """What handlers are made of, within the epoch that ends with `end`."""

    settings: BrokerSettings
    view: View
    reader: RangeReader
    sequencer: Sequencer
    intake: Intake
    groups: ConsumerGroups
    membership: Membership
    watchers: Watchers
    supervisor: Supervisor
    health: Health
    end: EpochEnd
    now_ms: WallClock
    new_uuid: Callable[[], UUID]


def make_dispatcher(parts: Parts) -> Dispatcher:
    settings, view, catch_up = parts.settings, parts.view, parts.groups.catch_up
    reader = parts.reader
    tier_objects = TierObjects(reader, bytes_max=settings.tier_index_bytes_max)
    changes = TopicChanges(
        view=view,
        committer=parts.intake,
        new_topic_id=parts.new_uuid,
        partitions_default=settings.num_partitions,
        partitions_max=settings.partitions_max,
        cluster_partitions_max=settings.cluster_partitions_max,
    )
    metadata = MetadataHandler(
        view=view,
        membership=parts.membership,
        changes=changes,
        auto_create_topics=settings.auto_create_topics,
        spawn=lambda work, name: parts.supervisor.spawn(work, name, on_failure=lambda _: None),
    )
    topics = TopicsHandler(view=view, changes=changes, topic_defaults=settings.topic_defaults)
    configs = ConfigsHandler(
        view=view,
        changes=changes,
        broker_configs=_broker_configs(settings, parts.membership.me.node_id),
        topic_defaults=settings.topic_defaults,
        change_ms_max=settings.config_change_ms_max,
    )
    list_offsets = ListOffsetsHandler(
        view=view, reader=reader, tier=TierTimes(reader, tier_objects), catch_up=catch_up
    )
    delete_records = DeleteRecordsHandler(view=view, committer=parts.intake, catch_up=catch_up)
    coordination = CoordinationHandler(
        membership=parts.membership,
        sequencer=parts.sequencer,
        end=parts.end,
        wait_ms=settings.redis_timeout_ms,
    )
    return Dispatcher(
        apis=[
            Api(2, 1, 8, list_offsets, large_answers=True),
            Api(3, 0, 12, metadata, large_answers=True),
            Api(10, 0, 6, coordination.find_coordinator, large_answers=True),
            Api(19, 2, 7, topics.create_topics),
            Api(20, 1, 6, topics.delete_topics),
            Api(21, 0, 2, delete_records),
            Api(22, 0, 5, coordination.init_producer_id),
            Api(32, 1, 4, configs.describe_configs),
            Api(33, 0, 2, configs.alter_configs),
            Api(37, 0, 3, topics.create_partitions),
            Api(44, 0, 1, configs.incremental_alter_configs),
            *_group_apis(parts),
        ],
        produce_handler=_produce_handler(parts),
        fetch_handler=_fetch_handler(parts, tier_objects),
        supervisor=parts.supervisor,
        request_items_max=settings.request_items_max,
    )


def _produce_handler(parts: Parts) -> ProduceHandler:
    settings = parts.settings
    return ProduceHandler(
        view=parts.view,
        commit=parts.intake.add,
        given_up=parts.intake.given_up,
        has_handed_over=lambda: parts.membership.has_handed_over,
        limits=ProduceLimits(
            settings.batch_records_max,
            settings.produce_timeout_ms_max,
            settings.request_items_max,
        ),
        now_ms=parts.now_ms,
    )


def _fetch_handler(parts: Parts, tier_objects: TierObjects) -> FetchHandler:
    settings, reader = parts.settings, parts.reader
    return FetchHandler(
        view=parts.view,
        reader=reader,
        read_ahead=ReadAhead(reader, bytes_ahead=settings.read_ahead_bytes),
        tier=TierReader(
            reader,
            tier_objects,
            bytes_ahead=settings.read_ahead_bytes,
            places_max=settings.fetch_places_max,
        ),
        watchers=parts.watchers,
        catch_up=parts.groups.catch_up_for_certain,
        has_handed_over=lambda: parts.membership.has_handed_over,
        limits=FetchLimits(settings.fetch_bytes_max, settings.fetch_wait_ms_max),
    )


def _group_apis(parts: Parts) -> list[Api]:
    coordinator, kept = parts.groups.coordinator, parts.groups.offsets
    groups = GroupsHandler(coordinator=coordinator, offsets=kept, view=parts.view)
    offsets = OffsetsHandler(
        offsets=kept,
        view=parts.view,
        metadata_bytes_max=parts.settings.offset_metadata_bytes_max,
    )
    return [
        Api(8, 2, 10, offsets.commit),
        Api(9, 1, 10, offsets.fetch, large_answers=True),
        Api(11, 0, 9, groups.join, waits=True),
        Api(12, 0, 4, groups.heartbeat),
        Api(13, 0, 5, groups.leave),
        Api(14, 0, 5, groups.sync, waits=True),
        Api(15, 0, 6, groups.describe, large_answers=True),
        Api(16, 0, 5, groups.list, large_answers=True),
        Api(42, 0, 2, groups.delete),
        Api(47, 0, 0, offsets.delete),
    ]


def _broker_configs(settings: BrokerSettings, node_id: int) -> dict[str, str]:
    """Kafka's names for what this broker has of them."""
    return {
        "auto.create.topics.enable": str(settings.auto_create_topics).lower(),
        "broker.id": str(node_id),
        "broker.rack": settings.zone,
        "default.replication.factor": "1",
        "fetch.max.bytes": str(settings.fetch_bytes_max),
        "log.retention.bytes": str(settings.log_retention_bytes),
        "log.retention.check.interval.ms": str(settings.log_retention_check_interval_ms),
        "log.retention.ms": str(settings.log_retention_ms),
        "num.partitions": str(settings.num_partitions),
        "socket.request.max.bytes": str(settings.request_bytes_max),
    }
