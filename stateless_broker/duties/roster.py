"""The duties of a broker within one epoch, put together: what it does for the whole cluster, if it
is its turn."""

from collections.abc import Coroutine, Iterator
from typing import Any

from stateless_broker.duties import checkpointing, compaction, deletion, retention
from stateless_broker.duties.checkpointing import Checkpointer, CheckpointSettings
from stateless_broker.duties.compaction import CompactionLimits, Compactor
from stateless_broker.duties.deletion import Deleter, DeletionSettings
from stateless_broker.duties.key_cleaning import CleaningLimits, KeyCleaning
from stateless_broker.duties.manifests import Manifests
from stateless_broker.duties.pace import Pace
from stateless_broker.duties.retention import Retention
from stateless_broker.duties.sweeping import TierSweeper
from stateless_broker.epochs.broker_parts import BrokerParts
from stateless_broker.fetch.feed import ViewFeed
from tiered_storage.tier_plan import CompactionSettings

MANIFESTS_KEPT_MAX = 1_000
"""A few hundred bytes for each segment that one lists."""


class Duties:
    def __init__(self, broker: BrokerParts, *, epoch: int, feed: ViewFeed) -> None:
        self._settings = settings = broker.settings
        manifests = Manifests(broker.bucket, kept_max=MANIFESTS_KEPT_MAX)
        self.checkpointer = Checkpointer(
            epoch=epoch,
            bucket=broker.bucket,
            committed=broker.committed,
            view=broker.view,
            catch_up=feed.catch_up,
            visible=lambda: feed.visible,
            place_in_line=broker.membership.place_in_line,
            health=broker.health,
            counts=broker.upkeep,
            settings=CheckpointSettings(
                interval_ms=settings.checkpoint_interval_ms, segments=settings.checkpoint_segments
            ),
            now_ms=broker.now_ms,
        )
        self.deleter = Deleter(
            bucket=broker.bucket,
            committed=broker.committed,
            place_in_line=broker.membership.place_in_line,
            health=broker.health,
            counts=broker.upkeep,
            sweeper=TierSweeper(broker.bucket, manifests, broker.intake),
            settings=DeletionSettings(
                safety_age_ms=settings.deletion_safety_age_ms,
                keys_per_s=settings.deletion_keys_per_s,
            ),
        )

        self.retention = Retention(
            view=broker.view,
            manifests=manifests,
            committer=broker.intake,
            catch_up=feed.catch_up,
            place_in_line=broker.membership.place_in_line,
            health=broker.health,
            topic_defaults=settings.topic_defaults,
            interval_ms=settings.log_retention_check_interval_ms,
            clocks=(broker.now_ms, broker.membership.now_ms),
        )

        self.compactor = self._make_compactor(broker, feed, manifests)

    def _make_compactor(
        self, broker: BrokerParts, feed: ViewFeed, manifests: Manifests
    ) -> Compactor:
        settings = broker.settings
        pace = Pace(bytes_per_s=settings.compaction_bytes_per_s)
        plan = CompactionSettings(
            window_bytes=settings.compaction_window_bytes,
            interval_ms=settings.compaction_interval_ms,
            age_ms_min=settings.compaction_age_ms_min,
            segment_bytes_target=settings.partition_segment_bytes,
            tier_rows_max=settings.tier_rows_max,
        )
        cleaning = KeyCleaning(
            bucket=broker.bucket,
            manifests=manifests,
            counts=broker.upkeep,
            spend=pace.spend,
            random_bytes=lambda count: broker.new_uuid().bytes[:count],
            limits=CleaningLimits(
                settings.log_cleaner_dedupe_buffer_bytes, settings.partition_segment_bytes
            ),
            now_ms=broker.now_ms,
        )
        return Compactor(
            bucket=broker.bucket,
            view=broker.view,
            manifests=manifests,
            cleaning=cleaning,
            committer=broker.intake,
            newest_ticket=lambda: feed.newest_ticket,
            catch_up=feed.catch_up,
            place_in_line=broker.membership.place_in_line,
            health=broker.health,
            counts=broker.upkeep,
            pace=pace,
            limits=CompactionLimits(
                settings.compaction_check_interval_ms, plan, settings.compaction_requests_in_flight
            ),
            now_ms=broker.now_ms,
            new_uuid=broker.new_uuid,
        )

    def wanted(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """By name, those that the settings want; each runs for the epoch's life."""
        if self._settings.checkpoint_interval_ms:
            yield checkpointing.DUTY, self.checkpointer.run()
        if self._settings.deletion_safety_age_ms:
            yield deletion.DUTY, self.deleter.run()
        if self._settings.log_retention_check_interval_ms:
            yield retention.DUTY, self.retention.run()
        if self._settings.compaction_check_interval_ms:
            yield compaction.DUTY, self.compactor.run()
