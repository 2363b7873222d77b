"""Compose this broker's part in share groups: the coordinator, share-partitions and APIs.

Invariant: all parts belong to one epoch. After its end, members join again, and the
share-partitions are read from the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from bucketlog.consumers.share.coordinator import ShareCoordinator
from bucketlog.consumers.share.group_rules import configured, starting_age_ms
from bucketlog.consumers.share.leader import ShareLeader
from bucketlog.consumers.share.offsets import ShareOffsets
from bucketlog.consumers.share.sessions import ShareSessions
from bucketlog.consumers.share.settings import ShareMemberLimits, ShareRules
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.messages.alter_share_group_offsets import ALTER_SHARE_GROUP_OFFSETS
from bucketlog.log_format.wire.messages.delete_share_group_offsets import (
    DELETE_SHARE_GROUP_OFFSETS,
)
from bucketlog.log_format.wire.messages.describe_share_group_offsets import (
    DESCRIBE_SHARE_GROUP_OFFSETS,
)
from bucketlog.log_format.wire.messages.share_acknowledge import SHARE_ACKNOWLEDGE
from bucketlog.log_format.wire.messages.share_fetch import SHARE_FETCH
from bucketlog.log_format.wire.messages.share_group_describe import SHARE_GROUP_DESCRIBE
from bucketlog.log_format.wire.messages.share_group_heartbeat import SHARE_GROUP_HEARTBEAT
from bucketlog.metadata.config_facts import ConfiguredKind
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.resource_configs import ResourceName
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.assembly.consumer_groups import ConsumerGroups
from bucketlog.stateless_broker.authorization.needs import BY_RESOURCE
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.handlers import audited_share_changes as audited
from bucketlog.stateless_broker.handlers.list_offsets import ListOffsetsHandler
from bucketlog.stateless_broker.handlers.partition_reads import PartitionReads
from bucketlog.stateless_broker.handlers.share_acknowledgements import ShareAcknowledgements
from bucketlog.stateless_broker.handlers.share_acquiring import ShareFetchLimits, ShareParts
from bucketlog.stateless_broker.handlers.share_fetch import ShareFetchHandler
from bucketlog.stateless_broker.handlers.share_groups import ShareGroupsHandler
from bucketlog.stateless_broker.handlers.share_leaders import ShareLeaders
from bucketlog.stateless_broker.handlers.share_offsets import ShareOffsetsHandler
from bucketlog.stateless_broker.handlers.share_records import ShareReader
from bucketlog.stateless_broker.network.apis import Api
from bucketlog.stateless_broker.network.request_order import UNORDERED, Ordering, State, reads
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.share_groups import ShareIsolation

SESSIONS_CHECK_INTERVAL_S = 0.5


OffsetSince = Callable[[PartitionLog, int], Awaitable[int | None]]
"""The offset of the first record from a time on; None if there is none."""


class ShareGroupParts:
    def __init__(self, broker: BrokerParts, *, groups: ConsumerGroups, end: EpochEnd) -> None:
        settings, view = broker.settings, broker.log.view
        self._broker, self._end = broker, end
        self._membership = membership = broker.cluster.membership
        self.leaders = ShareLeaders(
            view=view, membership=membership, has_ended=lambda: end.reason is not None
        )
        self.coordinator = ShareCoordinator(
            owns=groups.owns,
            stored=lambda: view.share_groups.by_group,
            is_other=groups.has_group,
            topic=view.topic,
            limits=_member_limits(settings),
            configs_of=self._configs_of,
            now_ms=_monotonic_ms,
        )
        self.leader = ShareLeader(
            incarnation=membership.incarnation,
            shares=lambda: view.share_groups,
            log=broker.log.intake,
            owns=self.leaders.owns,
            start_of=self._start_of,
            rules=self.rules,
            catch_up=groups.catch_up_for_certain,
            partitions_max=settings.share_partitions_max,
            write_timeout_ms=settings.share_write_timeout_ms,
            now_ms=_monotonic_ms,
            spawn=self._spawn,
        )
        self.offsets = ShareOffsets(
            coordinator=self.coordinator,
            shares=lambda: view.share_groups,
            log=broker.log.intake,
            catch_up=groups.catch_up_for_certain,
            write_timeout_ms=settings.share_write_timeout_ms,
        )
        self.sessions = ShareSessions(
            sessions_max=settings.share_sessions_max,
            partitions_max=settings.share_session_partitions_max,
        )
        self._records: ShareFetchHandler | None = None
        self.offset_since: OffsetSince | None = None

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        # what fails is told to those who wait for it
        supervisor = self._broker.supervision.supervisor
        return supervisor.spawn(work, name, on_failure=lambda _: None)

    def rules(self, group: str) -> ShareRules:
        """Return the rules for the share-partitions of a group."""
        settings = self._broker.settings
        rules = ShareRules(
            starting_age_ms=starting_age_ms(settings.group_share_auto_offset_reset),
            committed_only=settings.group_share_isolation_level is ShareIsolation.READ_COMMITTED,
            record_locks=settings.group_share_record_locks_max,
            deliveries=settings.group_share_deliveries_max,
            lock_ms=settings.group_share_record_lock_ms,
            may_renew=True,
        )
        return configured(rules, self._configs_of(group))

    def _configs_of(self, group: str) -> Mapping[str, str]:
        configs = self._broker.log.view.resource_configs
        return configs.of(ResourceName(ConfiguredKind.GROUP, group))

    async def _start_of(self, partition: TopicIdPartition, rules: ShareRules) -> int | None:
        view = self._broker.log.view
        log = view.log(partition)
        if log is None:
            return None
        if rules.starting_age_ms is None:
            return view.log_start(partition)
        if not rules.starting_age_ms or self.offset_since is None:
            return log.high_watermark
        since_ms = max(self._membership.now_ms() - rules.starting_age_ms, 0)
        found = await self.offset_since(log, since_ms)
        return log.high_watermark if found is None else found

    def start(self, spawn: Callable[[Coroutine[Any, Any, None], str], object]) -> None:
        end, membership = self._end, self._membership
        end.on_end(membership.on_change(self.coordinator.check_ownership))
        end.on_end(membership.on_change(self.leader.check_ownership))
        end.on_end(self.leave)
        spawn(self.coordinator.run(), "the share groups' sessions")
        spawn(self.leader.run(), "the record locks")
        spawn(self._end_sessions(), "the share sessions of lost connections")

    def leave(self) -> None:
        """Send clients to the next coordinator and leaders, because the broker leaves."""
        self.coordinator.resign_all()
        self.leader.resign_all()

    async def _end_sessions(self) -> None:
        """End the sessions of lost connections, for ever."""
        while True:
            await asyncio.sleep(SESSIONS_CHECK_INTERVAL_S)
            if self._records is not None:
                self._records.close_gone()

    def apis(self, reader: PartitionReads, list_offsets: ListOffsetsHandler) -> list[Api[Any, Any]]:
        self.offset_since = list_offsets.offset_since
        settings, view = self._broker.settings, self._broker.log.view
        groups = ShareGroupsHandler(
            coordinator=self.coordinator,
            view=view,
        )
        parts = ShareParts(
            leader=self.leader,
            leaders=self.leaders,
            sessions=self.sessions,
            reader=ShareReader(view=view, reads=reader, leader=self.leader),
            acknowledgements=ShareAcknowledgements(view=view, leader=self.leader),
            watchers=self._broker.log.watchers,
            rules=self.rules,
            spawn=self._spawn,
        )
        limits = ShareFetchLimits(
            settings.fetch_bytes_max,
            settings.share_fetch_read_bytes_max,
            settings.fetch_wait_ms_max,
        )
        self._records = records = ShareFetchHandler(parts, limits)
        offsets = ShareOffsetsHandler(offsets=self.offsets, view=view)
        groups_and_offsets = State.GROUPS | State.OFFSETS
        changes = Ordering(groups_and_offsets, groups_and_offsets)
        return [
            Api(
                SHARE_GROUP_HEARTBEAT,
                groups.heartbeat,
                BY_RESOURCE,
                Ordering(State.TOPICS, State.GROUPS),
            ),
            Api(
                SHARE_GROUP_DESCRIBE,
                groups.describe,
                BY_RESOURCE,
                reads(State.GROUPS),
                large_answers=True,
            ),
            Api(SHARE_FETCH, records.fetch, BY_RESOURCE, UNORDERED, waits=True),
            Api(
                SHARE_ACKNOWLEDGE,
                records.acknowledge,
                BY_RESOURCE,
                Ordering(State.NOTHING, State.OFFSETS),
            ),
            Api(
                DESCRIBE_SHARE_GROUP_OFFSETS,
                offsets.describe,
                BY_RESOURCE,
                reads(groups_and_offsets),
                large_answers=True,
            ),
            Api(
                ALTER_SHARE_GROUP_OFFSETS,
                offsets.alter,
                BY_RESOURCE,
                changes,
                audit=audited.altered_share_offsets,
            ),
            Api(
                DELETE_SHARE_GROUP_OFFSETS,
                offsets.delete,
                BY_RESOURCE,
                changes,
                audit=audited.deleted_share_offsets,
            ),
        ]


def _member_limits(settings: BrokerSettings) -> ShareMemberLimits:
    return ShareMemberLimits(
        session_timeout_ms=settings.group_share_session_timeout_ms,
        heartbeat_interval_ms=settings.group_share_heartbeat_interval_ms,
        members_max=settings.group_share_members_max,
        members_total_max=settings.group_share_members_total_max,
        topics_max=settings.group_subscribed_topics_max,
        id_bytes_max=settings.group_id_bytes_max,
    )


def _monotonic_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)
