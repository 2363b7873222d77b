"""Compose this broker's part in consumer groups: the coordinator and committed offsets.

Invariant: this broker coordinates a group only while it is the first for the group among the live
brokers, and while the others can see that it lives. It resigns groups that another broker may have
taken. All parts belong to one epoch. After the epoch's end, members find their coordinator anew,
and rejoin.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.consumers.coordinator import GroupCoordinator
from bucketlog.consumers.group_forms import GroupForms
from bucketlog.consumers.group_limit import GroupLimit
from bucketlog.consumers.group_memory import GroupMemory
from bucketlog.consumers.group_settings import GroupSettings
from bucketlog.consumers.group_store import BoundedStore
from bucketlog.consumers.modern_settings import ModernSettings
from bucketlog.consumers.offsets import GroupOffsets, OffsetSettings
from bucketlog.consumers.transactional_commits import (
    TransactionalCommits,
    TransactionOffsetCommitter,
)
from bucketlog.metadata.config_facts import ConfiguredKind
from bucketlog.metadata.resource_configs import ResourceName
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.assembly.known_topics import ViewTopics
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.fetch.feed import ViewFeed
from bucketlog.stateless_broker.fetch.shared_catch_up import SharedCatchUp
from bucketlog.stateless_broker.produce.commit import Committer
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.consumer_groups import OffsetCommitAck

MINUTE_MS = 60_000
STORE_CALLS_IN_FLIGHT = 4
"""Limit of the calls in flight to the group store, because a broker has few connections to Redis.
Each call takes well below a millisecond."""


class ConsumerGroups:
    def __init__(
        self,
        broker: BrokerParts,
        *,
        end: EpochEnd,
        feed: ViewFeed,
        is_newest: Callable[[], Awaitable[bool]],
        committer: Committer,
        epoch_began_ms: int,
    ) -> None:
        settings, view = broker.settings, broker.log.view
        self._membership = membership = broker.cluster.membership
        self._end = end
        self._leaving = False

        async def catch_up_for_certain() -> bool:
            wait_ms = settings.view_wait_ms_max
            try:
                async with asyncio.timeout(wait_ms / 1000):
                    return await feed.catch_up(wait_ms) and await is_newest()
            except TimeoutError:
                return False

        def spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
            # what fails is told to those who wait for it, and resigned
            return broker.supervision.supervisor.spawn(work, name, on_failure=lambda _: None)

        self._spawn = spawn
        self._request_ms = settings.transaction_request_ms_max
        store = BoundedStore(
            broker.cluster.sequencer,
            limit=_group_limit(settings, view),
            calls_in_flight=STORE_CALLS_IN_FLIGHT,
            wait_ms=settings.redis_timeout_ms,
        )
        self.catch_up = SharedCatchUp(lambda: feed.catch_up(settings.view_wait_ms_max), spawn)
        self.catch_up_for_certain = SharedCatchUp(catch_up_for_certain, spawn)
        """The same as `catch_up`, but the result is also False if a later epoch may be active that
        this broker's Redis does not know. The view does not show what became visible in that
        epoch."""
        self.memory = GroupMemory(settings.coordinated_groups_bytes_max, _monotonic_ms)
        self.coordinator = GroupCoordinator(
            epoch=end.epoch,
            incarnation=membership.incarnation,
            store=store,
            owns=self.owns,
            has_offsets=view.has_offsets,
            forms=_group_forms(broker),
            memory=self.memory,
            now_ms=_monotonic_ms,
            wall_ms=membership.now_ms,
            spawn=spawn,
            on_store_lost=lambda error: end.end(str(error)),
        )
        self.offsets = GroupOffsets(
            coordinator=self.coordinator,
            view=view,
            log=committer,
            position=lambda: store.position(end.epoch),
            catch_up=self.catch_up_for_certain,
            settings=_offset_settings(settings),
            known_since_ms=epoch_began_ms,
            now_ms=_monotonic_ms,
            wall_ms=membership.now_ms,
            own_ms=broker.now_ms,
            spawn=spawn,
        )

    def transactional_commits(self, log: TransactionOffsetCommitter) -> TransactionalCommits:
        """The commits of this broker's groups in transactions."""
        return TransactionalCommits(
            coordinator=self.coordinator,
            rows=self.offsets.rows,
            log=log,
            timeout_ms=self._request_ms,
            now_ms=_monotonic_ms,
            wall_ms=self._membership.now_ms,
            spawn=self._spawn,
        )

    def start(self, spawn: Callable[[Coroutine[Any, Any, None], str], object]) -> None:
        self._end.on_end(self._membership.on_change(self.coordinator.check_ownership))
        self._end.on_end(self.coordinator.resign_all)
        spawn(self.coordinator.run(), "the groups' timer")
        spawn(self.offsets.run(), "the offsets' expiry")

    def leave(self) -> None:
        """Send clients to the next coordinator, because the broker leaves."""
        self._leaving = True
        self.coordinator.resign_all()

    def has_group(self, group_id: str) -> bool:
        """Return whether a consumer group of this name exists, as far as this broker knows."""
        held = self.coordinator.find(group_id)
        return held is not None and self.coordinator.exists(held)

    def owns(self, group_id: str) -> ErrorCode:
        """Return `none` if this broker is the coordinator of the group, else the error for
        clients."""
        if self._end.reason is not None:
            return ErrorCode.coordinator_not_available
        mine = self._membership.coordinator_of(group_id) == self._membership.me
        if mine and self._membership.is_session_live and not self._leaving:
            return ErrorCode.none
        return ErrorCode.not_coordinator


def group_settings(settings: BrokerSettings) -> GroupSettings:
    return GroupSettings(
        session_timeout_ms_min=settings.group_session_timeout_ms_min,
        session_timeout_ms_max=settings.group_session_timeout_ms_max,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        new_member_join_timeout_ms=settings.group_new_member_join_timeout_ms,
        rebalance_timeout_ms_min=settings.group_rebalance_timeout_ms_min,
        members_max=settings.group_members_max,
        pending_members_max=settings.group_pending_members_max,
        protocols_max=settings.group_protocols_max,
        member_metadata_bytes_max=settings.group_member_metadata_bytes_max,
        group_bytes_max=settings.group_bytes_max,
        id_bytes_max=settings.group_id_bytes_max,
        subscribed_topics_max=settings.group_subscribed_topics_max,
    )


def modern_settings(settings: BrokerSettings) -> ModernSettings:
    return ModernSettings(
        group_settings(settings),
        session_timeout_ms=settings.group_consumer_session_timeout_ms,
        heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
        members_max=settings.group_consumer_members_max,
        assignment_interval_ms=settings.group_consumer_assignment_interval_ms,
        migration_policy=settings.group_consumer_migration_policy,
        regexes_max=settings.group_consumer_regexes_max,
        regex_bytes_max=settings.group_consumer_regex_bytes_max,
        regex_memory_bytes_max=settings.group_consumer_regex_memory_bytes_max,
        regex_refresh_interval_ms=settings.group_consumer_regex_refresh_interval_ms,
    )


def _group_forms(broker: BrokerParts) -> GroupForms:
    view = broker.log.view
    return GroupForms(
        modern_settings(broker.settings),
        ViewTopics(view),
        lambda: str(broker.new_uuid()),
        lambda group: view.resource_configs.of(ResourceName(ConfiguredKind.GROUP, group)),
    )


def _group_limit(settings: BrokerSettings, view: View) -> GroupLimit:
    return GroupLimit(
        settings.groups_max,
        has_offsets=view.has_offsets,
        groups_with_offsets=view.group_count,
        now_ms=_monotonic_ms,
    )


def _monotonic_ms() -> int:
    return int(asyncio.get_running_loop().time() * 1000)


def _offset_settings(settings: BrokerSettings) -> OffsetSettings:
    return OffsetSettings(
        retention_ms=settings.offsets_retention_minutes * MINUTE_MS,
        retention_ms_max=settings.offset_retention_ms_max,
        check_interval_ms=settings.offsets_retention_check_interval_ms,
        commit_timeout_ms=settings.offset_commit_timeout_ms,
        rows_in_flight=settings.offset_rows_in_flight,
        offsets_max=settings.offsets_max,
        ack_when_reserved=settings.offset_commit_ack is OffsetCommitAck.REDIS,
    )
