"""What has become of tiers in a run: the figures that show that it happened at all."""

from collections.abc import Sequence
from copy import deepcopy

from bucketlog.log_format.model import SegmentIndex, Ticket, TierRow, TopicId, TopicIdPartition
from bucketlog.metadata.facts import (
    LogStartsMoved,
    SwapPayload,
    TiersSwapped,
    TiersSwept,
    decode_fact,
)
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.tier import Swap, Tier
from bucketlog.tiered_storage import keys
from tests.simulation.world import World

IN_VAIN_MOST = 5
"""Splits of a partition, one after the other: each broker may have one on its way, or two."""


class TierFigures:
    """Of a whole log, segment by segment in ticket order."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._events = world.trace.events
        self._state = LogState(keep_producers=False, keep_groups=False)
        self._named: set[str] = set()
        """Names of objects that ever stood in a tier."""
        self._in_vain: dict[TopicIdPartition, int] = {}
        """Splits that did not count, since the last that did."""

    def count(self, log: Sequence[SegmentIndex]) -> None:
        for index in log:
            self._count_entries(index)
            self._state.apply(index)
        self._count_deleted()

    def _count_entries(self, index: SegmentIndex) -> None:
        tiers: dict[TopicIdPartition, Tier] = {}
        for fact in map(decode_fact, index.facts):
            if isinstance(fact, TiersSwapped):
                is_over = Ticket(*fact.planned) < self._state.swept_below
                for part in fact.swaps:
                    self._count_swap(tiers, part, is_over=is_over)
            elif isinstance(fact, LogStartsMoved):
                self._events["tier: log starts moved"] += len(fact.partitions)
            elif isinstance(fact, TiersSwept):
                self._events["tier: swept"] += 1

    def _count_swap(
        self, tiers: dict[TopicIdPartition, Tier], part: SwapPayload, *, is_over: bool
    ) -> None:
        partition = TopicIdPartition(TopicId(part.topic_id.bytes), part.partition)
        state = self._state.partitions.get(partition)
        if state is None:
            self._events["tier: a swap of a topic that is gone"] += 1
            return
        tier = tiers.setdefault(partition, deepcopy(state.tier))
        added = tuple(TierRow(*row) for row in part.added)
        swap = Swap(part.start, part.end, part.replaced, added, part.cleaned_to)
        if is_over:
            self._events["tier: a swap of a job that was over"] += 1
        elif tier.swap(swap) is None:
            self._events[f"tier: {_kind(swap, part)} that did not count"] += 1
            self._in_vain[partition] = self._in_vain.get(partition, 0) + (not swap.replaced)
            if self._in_vain[partition] > IN_VAIN_MOST:
                self._world.trace.violate("tiers grow", f"no split of {partition} counts any more")
        else:
            self._in_vain[partition] = 0
            self._events[f"tier: {_kind(swap, part)}"] += 1
            self._named.update(row.name for row in added)

    def _count_deleted(self) -> None:
        store = self._world.store
        for key in store.history:
            if key.startswith((keys.SEGMENTS, keys.MANIFESTS)) and key not in store.objects:
                was_named = keys.parse_tier_object(key).name in self._named
                self._events[f"tier: {'object' if was_named else 'orphan'} deleted"] += 1


def _kind(swap: Swap, part: SwapPayload) -> str:
    if swap.cleaned_to >= 0:
        return "keys compacted"
    if not swap.replaced:
        return "split"
    if part.removed:
        return "trim"
    return "manifest" if swap.added[0].manifest else "merge"
