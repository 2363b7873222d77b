"""The duty of deleting what two checkpoints cover: one broker at a time, slowly.

`tiered_storage.deletion` decides what may be deleted, below a floor that is as old as the safety
age. Invariant: both checkpoints are read back from the bucket and sound in the very round that lays
a floor or deletes. A round may end anywhere. A later round finds what is left, since registrations
are deleted last.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.log_format.model import SegmentId, WriterId
from bucketlog.metadata.checkpoint import restored
from bucketlog.stateless_broker.duties.rounds import DutyContext, run_rounds
from bucketlog.stateless_broker.duties.sweeping import TierSweeper
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, listed
from bucketlog.tiered_storage.deletion import GarbageKind, plan_chain, plan_floors
from bucketlog.tiered_storage.floors import (
    FLOOR_SPAN,
    Floor,
    Ranges,
    below,
    decode_floor,
    encode_floor,
)
from bucketlog.tiered_storage.segment import body_crc32c
from bucketlog.tiered_storage.tails import registered_epochs

logger = logging.getLogger(__name__)

ROUNDS_PER_AGE = 24
"""The safety age has this many rounds, and this many floors."""
KEYS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class DeletionSettings:
    """Settings of deletion. `safety_age_ms` 0: nothing is ever deleted. At most `keys_per_s`
    objects are deleted in a second."""

    safety_age_ms: int
    keys_per_s: int

    @property
    def interval_ms(self) -> int:
        return max(1, self.safety_age_ms // ROUNDS_PER_AGE)


class _ListedChain(NamedTuple):
    """A chain that was listed up to `end` (None: to its end), and the readable part of it. As long
    as that is the same, the listed part is not listed again."""

    end: int | None
    readable: Ranges


class Deleter:
    def __init__(
        self,
        *,
        bucket: Bucket,
        committed: CommittedLog,
        context: DutyContext,
        sweeper: TierSweeper,
        settings: DeletionSettings,
    ) -> None:
        self._bucket = bucket
        self._committed = committed
        self._context = context
        self._counts = context.counts
        self._sweeper = sweeper
        self._settings = settings
        self._done: dict[WriterId, _ListedChain] = {}
        self._round: Counter[GarbageKind] = Counter()
        """The garbage that the current round has deleted, by kind."""

    async def run(self) -> None:
        """Run the duty's rounds until the epoch ends."""
        await run_rounds(
            BrokerPart.DELETION,
            self.round,
            interval_ms=self._settings.interval_ms,
            context=self._context,
        )

    async def round(self) -> int:
        """Lay a floor if it is time, and delete what may be deleted. Returns how many objects were
        deleted. Raises `BucketError`, `CorruptObjectError`, `InvalidDataError`,
        `SequencerError`."""
        found = await self._committed.checkpoints(2)
        if len(found) < 2:
            return 0
        newer, older = found
        written = await self._bucket.head(keys.checkpoint(newer.ticket))
        if written is None:  # two newer ones are there
            return 0
        plan = plan_floors(
            older.ticket,
            await listed(self._bucket, keys.FLOORS),
            now_ms=written.modified_ms,
            safety_age_ms=self._settings.safety_age_ms,
            interval_ms=self._settings.interval_ms,
        )
        if plan.write is not None:
            for checkpoint in found:
                await asyncio.to_thread(restored, checkpoint)  # what is relied on now decodes
            data = encode_floor(await asyncio.to_thread(Floor.of, older, newer))
            await self._bucket.create(keys.floor(plan.write), [data], crc32c=body_crc32c([data]))
        if plan.use is None:
            return 0
        key = keys.floor(plan.use)
        floor = decode_floor(key, (await self._bucket.get(key, FLOOR_SPAN)).data)
        self._round.clear()
        try:
            await self._delete(GarbageKind.FLOORS, plan.drop)
            sealed_before_ms = written.modified_ms - self._settings.safety_age_ms
            registered = registered_epochs(await listed(self._bucket, keys.WRITERS))
            for writer, epoch in registered.items():
                if epoch <= floor.ticket.epoch:
                    await self._thin_out(writer, epoch, floor, sealed_before_ms)
            await self._sweeper.sweep(floor.ticket, older, newer, self._delete)
        finally:
            for kind, count in self._round.items():
                logger.info("deleted below %s: %d %s", key, count, kind)
        return self._round.total()

    async def _thin_out(
        self, writer: WriterId, epoch: int, floor: Floor, sealed_before_ms: int
    ) -> None:
        kept = floor.readable_of(writer)
        end = floor.positions.get(writer, 0) if epoch == floor.ticket.epoch else None
        start = self._begin_at(writer, kept, end)
        if start is None:
            return
        plan = plan_chain(
            writer,
            epoch,
            await listed(
                self._bucket,
                keys.chain(writer),
                start_after=keys.before(SegmentId(writer, start)),
            ),
            floor=floor,
            sealed_before_ms=sealed_before_ms,
        )
        for kind, going in plan.by_kind():
            await self._delete(kind, going)
        if plan.over:
            registration = keys.writer_registration(epoch, writer)
            await self._delete(GarbageKind.REGISTRATIONS, [registration])
        listed_part = kept if end is None else below(kept, end)
        self._done[writer] = _ListedChain(end, listed_part)

    def _begin_at(self, writer: WriterId, kept: Ranges, end: int | None) -> int | None:
        """Return the seq from which to list the chain; None: no more of it can have become
        deletable."""
        done = self._done.get(writer)
        if done is None or (end is None and done.end is not None):
            return 0
        if done.end is None:
            return None if kept == done.readable else 0
        return done.end if below(kept, done.end) == done.readable else 0

    async def _delete(self, kind: GarbageKind, wanted: Sequence[str]) -> None:
        rate = self._settings.keys_per_s
        at_once = min(KEYS_AT_ONCE, rate)
        for start in range(0, len(wanted), at_once):
            some = wanted[start : start + at_once]
            await self._bucket.delete(some)
            self._counts.count_deleted(kind, len(some))
            self._round[kind] += len(some)
            await asyncio.sleep(len(some) / rate)
