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
from tiered_storage import keys
from tiered_storage.bucket import Bucket, ObjectInfo, listed
from tiered_storage.manifest import decode_manifest
from tiered_storage.tier_deletion import LeftTier, TierHoldings, plan_tiers

logger = logging.getLogger(__name__)

Delete = Callable[[str, Sequence[str]], Awaitable[None]]
"""A kind of objects, and keys."""


class FactCommitter(Protocol):
    async def commit_fact(self, fact: TiersSwept, wanted: WantedTierEntry) -> ControlStatus: ...


class TierSweeper:
    def __init__(self, bucket: Bucket, committer: FactCommitter) -> None:
        self._bucket = bucket
        self._committer = committer
        self._manifests: dict[TierObject, tuple[TierObject, ...]] = {}
        """What those list that the last round met."""

    async def sweep(
        self, floor: Ticket, older: Checkpoint, newer: Checkpoint, delete: Delete
    ) -> None:
        """`floor` is old enough, and at or below `older`. Raises `BucketError`,
        `CorruptObjectError`, `InvalidDataError`, `SequencerError`."""
        met: dict[TierObject, tuple[TierObject, ...]] = {}
        before, after = [await self._holdings(checkpoint, met) for checkpoint in (older, newer)]
        self._manifests = met
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

    async def _holdings(
        self, checkpoint: Checkpoint, met: dict[TierObject, tuple[TierObject, ...]]
    ) -> TierHoldings:
        state = await asyncio.to_thread(
            restored, checkpoint, keep_producers=False, keep_groups=False
        )
        named = set()
        for partition, entry in state.partitions.items():
            for row in entry.tier.rows:
                there = object_of(partition, row)
                named.add(keys.tier_object(there))
                if row.manifest:
                    named.update(map(keys.tier_object, await self._listed_by(there, met)))
        left = [
            LeftTier(ticket, there, await self._left_with(there, met) if contents else ())
            for ticket, there, contents in state.dropped
        ]
        return TierHoldings(frozenset(named), left, state.swept_below)

    async def _left_with(
        self, there: TierObject, met: dict[TierObject, tuple[TierObject, ...]]
    ) -> tuple[TierObject, ...]:
        """A manifest that is gone went after all that it listed."""
        try:
            return await self._listed_by(there, met)
        except ObjectNotFoundError:
            return ()

    async def _listed_by(
        self, there: TierObject, met: dict[TierObject, tuple[TierObject, ...]]
    ) -> tuple[TierObject, ...]:
        found = met.get(there, self._manifests.get(there))
        if found is None:
            body = await self._bucket.get(keys.tier_object(there))
            rows = decode_manifest(there, body.data)
            found = tuple(object_of(there.partition, row) for row in rows)
        met[there] = found
        return found
