"""Deleting objects that tiers no longer hold: a part of the duty of deletion.

`tiered_storage.tier_deletion` decides what may be deleted. Invariant: objects are deleted before
the entry says so, and again if that entry was not written. A manifest is deleted after the objects
that it lists.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import ObjectNotFoundError
from bucketlog.log_format.model import Ticket
from bucketlog.log_reader.tier_holdings import dropped_manifests, holdings_of, named_manifests
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.facts import TiersSwept
from bucketlog.metadata.sequencer.requests import WantedTierEntry
from bucketlog.stateless_broker.duties.manifests import Manifests
from bucketlog.stateless_broker.produce.tier_committer import TierCommitter
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, ObjectInfo, listed
from bucketlog.tiered_storage.deletion import GarbageKind
from bucketlog.tiered_storage.tier_deletion import TierHoldings, plan_tiers

Delete = Callable[[GarbageKind, Sequence[str]], Awaitable[None]]
"""A kind of objects, and keys."""


class TierSweeper:
    def __init__(self, bucket: Bucket, manifests: Manifests, committer: TierCommitter) -> None:
        self._bucket = bucket
        self._manifests = manifests
        self._committer = committer
        self._done: tuple[Ticket, Ticket] | None = None
        """The floor and the newer checkpoint of the last sweep that was carried out: another one
        by the same would do the same."""

    async def sweep(
        self, floor: Ticket, older: Checkpoint, newer: Checkpoint, delete: Delete
    ) -> None:
        """Delete what may be deleted. `floor` is old enough, and at or below `older`. Raises
        `BucketError`, `CorruptObjectError`, `InvalidDataError`, `SequencerError`."""
        if (floor, newer.ticket) == self._done:
            return
        before, after = [await self._holdings(checkpoint) for checkpoint in (older, newer)]
        there: list[ObjectInfo] = []
        for kind in (keys.SEGMENTS, keys.MANIFESTS):
            there += await listed(self._bucket, kind)
        plan = plan_tiers(floor, before, after, there)
        for kind, going in plan.by_kind():
            await delete(kind, going)
        if plan.over:
            await self._committer.commit_fact(
                TiersSwept(below=(floor.epoch, floor.number)), WantedTierEntry()
            )
        self._done = floor, newer.ticket

    async def _holdings(self, checkpoint: Checkpoint) -> TierHoldings:
        state = await asyncio.to_thread(
            restored, checkpoint, keep_producers=False, keep_groups=False
        )
        listed = {there: await self._manifests.listed(there) for there in named_manifests(state)}
        for there in dropped_manifests(state):
            try:
                listed[there] = await self._manifests.listed(there)
            except ObjectNotFoundError:
                continue  # it went after all that it listed
        return holdings_of(state, listed)
