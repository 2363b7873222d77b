"""The duties of a broker within one epoch, put together: what it does for the whole cluster, if it
is its turn."""

from collections.abc import Coroutine, Iterator
from typing import Any

from stateless_broker.duties import checkpointing, deletion, retention
from stateless_broker.duties.checkpointing import Checkpointer, CheckpointSettings
from stateless_broker.duties.deletion import Deleter, DeletionSettings
from stateless_broker.duties.manifests import Manifests
from stateless_broker.duties.retention import Retention
from stateless_broker.duties.sweeping import TierSweeper
from stateless_broker.epochs.broker_parts import BrokerParts
from stateless_broker.fetch.feed import ViewFeed

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

    def wanted(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """By name, those that the settings want; each runs for the epoch's life."""
        if self._settings.checkpoint_interval_ms:
            yield checkpointing.DUTY, self.checkpointer.run()
        if self._settings.deletion_safety_age_ms:
            yield deletion.DUTY, self.deleter.run()
        if self._settings.log_retention_check_interval_ms:
            yield retention.DUTY, self.retention.run()
