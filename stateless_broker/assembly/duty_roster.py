"""Composes the duties of a broker within one epoch: the work that it does for the whole cluster,
when it is its turn."""

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.duties.checkpointing import Checkpointer, CheckpointSettings
from bucketlog.stateless_broker.duties.compaction import CompactionLimits, Compactor
from bucketlog.stateless_broker.duties.current_view import CurrentView
from bucketlog.stateless_broker.duties.deletion import Deleter, DeletionSettings
from bucketlog.stateless_broker.duties.key_cleaning import CleaningLimits, KeyCleaner
from bucketlog.stateless_broker.duties.manifests import Manifests
from bucketlog.stateless_broker.duties.pace import Pace
from bucketlog.stateless_broker.duties.producer_expiry import ProducerExpiry
from bucketlog.stateless_broker.duties.renewal import EpochRenewal
from bucketlog.stateless_broker.duties.retention import Retention
from bucketlog.stateless_broker.duties.rounds import DutyContext
from bucketlog.stateless_broker.duties.sweeping import TierSweeper
from bucketlog.stateless_broker.fetch.feed import ViewFeed
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.tiered_storage.tier_plan import CompactionSettings

MANIFESTS_KEPT_MAX = 1_000
"""A few hundred bytes for each segment that one lists."""


class Duties:
    """The duties of a broker. `renew_epoch` ends the epoch, for the given reason, so that this
    broker claims the next."""

    def __init__(
        self,
        broker: BrokerParts,
        *,
        epoch: int,
        feed: ViewFeed,
        renew_epoch: Callable[[str], None],
    ) -> None:
        self._settings = settings = broker.settings
        bucket, committed = broker.storage.bucket, broker.storage.committed
        membership, intake = broker.cluster.membership, broker.log.intake
        manifests = Manifests(bucket, kept_max=MANIFESTS_KEPT_MAX)
        current = _make_current_view(broker, feed)
        context = _make_context(broker)
        clocks = broker.now_ms, membership.now_ms
        self.checkpointer = Checkpointer(
            epoch=epoch,
            bucket=bucket,
            committed=committed,
            current=current,
            context=context,
            settings=_checkpoint_settings(settings),
            clocks=clocks,
        )
        self.deleter = Deleter(
            bucket=bucket,
            committed=committed,
            context=context,
            sweeper=TierSweeper(bucket, manifests, intake),
            settings=DeletionSettings(
                safety_age_ms=settings.deletion_safety_age_ms,
                keys_per_s=settings.deletion_keys_per_s,
            ),
        )
        self.retention = Retention(
            current=current,
            manifests=manifests,
            committer=intake,
            context=context,
            interval_ms=settings.log_retention_check_interval_ms,
            clocks=clocks,
        )
        self.producer_expiry = ProducerExpiry(
            epoch=epoch,
            sequencer=broker.cluster.sequencer,
            context=context,
            idle_ms=settings.producer_id_expiration_ms,
        )
        self.renewal = EpochRenewal(
            epoch=epoch,
            bucket=bucket,
            context=context,
            live_brokers=lambda: len(membership.members),
            renew=renew_epoch,
            closed_writers_max=settings.epoch_closed_writers_max,
        )
        pace = Pace(bytes_per_s=settings.compaction_bytes_per_s)
        self.compactor = Compactor(
            bucket=bucket,
            current=current,
            manifests=manifests,
            cleaning=_make_cleaning(broker, manifests, pace),
            committer=intake,
            context=context,
            pace=pace,
            limits=_compaction_limits(settings),
        )

    def wanted(self) -> Iterator[tuple[BrokerPart, Coroutine[Any, Any, None]]]:
        """The duties that the settings enable, by name. Each runs for the whole epoch."""
        if self._settings.checkpoint_interval_ms:
            yield BrokerPart.CHECKPOINTS, self.checkpointer.run()
        if self._settings.deletion_safety_age_ms:
            yield BrokerPart.DELETION, self.deleter.run()
        if self._settings.log_retention_check_interval_ms:
            yield BrokerPart.RETENTION, self.retention.run()
        if self._settings.producer_id_expiration_check_interval_ms:
            yield (
                BrokerPart.PRODUCERS,
                self.producer_expiry.run(self._settings.producer_id_expiration_check_interval_ms),
            )
        if self._settings.epoch_renewal_check_interval_ms:
            yield (
                BrokerPart.RENEWAL,
                self.renewal.run(self._settings.epoch_renewal_check_interval_ms),
            )
        if self._settings.compaction_check_interval_ms:
            yield BrokerPart.COMPACTION, self.compactor.run()


def _checkpoint_settings(settings: BrokerSettings) -> CheckpointSettings:
    return CheckpointSettings(
        interval_ms=settings.checkpoint_interval_ms,
        segments=settings.checkpoint_segments,
        producer_idle_ms=settings.producer_id_expiration_ms,
        bytes_max=settings.checkpoint_bytes_max,
    )


def _make_current_view(broker: BrokerParts, feed: ViewFeed) -> CurrentView:
    return CurrentView(
        view=broker.log.view,
        catch_up=feed.catch_up,
        newest_ticket=lambda: feed.newest_ticket,
        visible=lambda: feed.visible,
    )


def _make_context(broker: BrokerParts) -> DutyContext:
    return DutyContext(
        place_in_line=broker.cluster.membership.place_in_line,
        health=broker.supervision.health,
        counts=broker.counts.upkeep,
        now_ms=broker.now_ms,
        new_uuid=broker.new_uuid,
        topic_defaults=broker.log.topic_defaults,
    )


def _make_cleaning(broker: BrokerParts, manifests: Manifests, pace: Pace) -> KeyCleaner:
    return KeyCleaner(
        bucket=broker.storage.bucket,
        manifests=manifests,
        context=_make_context(broker),
        seals_at=broker.log.keys.seals_at,
        spend=pace.spend,
        random_bytes=lambda count: broker.new_uuid().bytes[:count],
        limits=CleaningLimits(
            broker.settings.log_cleaner_dedupe_buffer_bytes, broker.settings.partition_segment_bytes
        ),
    )


def _compaction_limits(settings: BrokerSettings) -> CompactionLimits:
    plan = CompactionSettings(
        window_bytes=settings.compaction_window_bytes,
        interval_ms=settings.compaction_interval_ms,
        age_ms_min=settings.compaction_age_ms_min,
        segment_bytes_target=settings.partition_segment_bytes,
        tier_rows_max=settings.tier_rows_max,
    )
    return CompactionLimits(
        settings.compaction_check_interval_ms, plan, settings.compaction_requests_in_flight
    )
