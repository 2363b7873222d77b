"""Deleting what tiers hold no more: a part of the duty of deletion.

What may go is decided in `tiered_storage.tier_deletion`. Invariant: objects are deleted before the
entry says so, and again where that entry was not written; a manifest goes after what it lists.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from bucketlog.checkpoint import Checkpoint
from bucketlog.errors import ObjectNotFoundError
from bucketlog.model import Ticket, TierObject
from metadata.checkpoint import restored
from metadata.facts import TiersSwept
from metadata.sequencer.requests import ControlStatus, WantedTierEntry
from metadata.tier import object_of
from stateless_broker.duties.manifests import Manifests
from tiered_storage import keys
from tiered_storage.bucket import Bucket, ObjectInfo, listed
from tiered_storage.tier_deletion import LeftTier, TierHoldings, plan_tiers

logger = logging.getLogger(__name__)

Delete = Callable[[str, Sequence[str]], Awaitable[None]]
"""A kind of objects, and keys."""


class FactCommitter(Protocol):
    async def commit_fact(self, fact: TiersSwept, wanted: WantedTierEntry) -> ControlStatus: ...


class TierSweeper:
    def __init__(self, bucket: Bucket, manifests: Manifests, committer: FactCommitter) -> None:
        self._bucket = bucket
        self._manifests = manifests
        self._committer = committer

    async def sweep(
        self, floor: Ticket, older: Checkpoint, newer: Checkpoint, delete: Delete
    ) -> None:
        """`floor` is old enough, and at or below `older`. Raises `BucketError`,
        `CorruptObjectError`, `InvalidDataError`, `SequencerError`."""
        before, after = [await self._holdings(checkpoint) for checkpoint in (older, newer)]
        there: list[ObjectInfo] = []
        for kind in (keys.SEGMENTS, keys.MANIFESTS):
            there += await listed(self._bucket, kind)
        plan = plan_tiers(floor, before, after, there)
        await delete("tier objects", plan.left)
        await delete("orphans", plan.orphans)
        if plan.orphans:
            logger.info("%d objects were nobody's and are deleted", len(plan.orphans))
        if plan.over:
            await self._committer.commit_fact(
                TiersSwept(below=(floor.epoch, floor.number)), WantedTierEntry()
            )

    async def _holdings(self, checkpoint: Checkpoint) -> TierHoldings:
        state = await asyncio.to_thread(
            restored, checkpoint, keep_producers=False, keep_groups=False
        )
        named = set()
        for partition, entry in state.partitions.items():
            for row in entry.tier.rows:
                there = object_of(partition, row)
                named.add(keys.tier_object(there))
                if row.manifest:
                    named.update(map(keys.tier_object, await self._listed_by(there)))
        left = [
            LeftTier(ticket, there, await self._left_with(there) if contents else ())
            for ticket, there, contents in state.dropped
        ]
        return TierHoldings(frozenset(named), left, state.swept_below)

    async def _left_with(self, there: TierObject) -> tuple[TierObject, ...]:
        """A manifest that is gone went after all that it listed."""
        try:
            return await self._listed_by(there)
        except ObjectNotFoundError:
            return ()

    async def _listed_by(self, there: TierObject) -> tuple[TierObject, ...]:
        rows = await self._manifests.listed(there)
        return tuple(object_of(there.partition, row) for row in rows)
