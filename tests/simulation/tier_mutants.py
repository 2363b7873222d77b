"""Rules about tiers and log starts, broken."""

from tests.simulation.source_changes import Change, Mutant, one

TIER_MUTANTS: dict[str, Mutant] = {
    "split-compared": one(
        "a split counts where it begins at the tier's end",
        "bucketlog.metadata.tier:Tier.swap",
        "if swap.start != self.end or swap.end <= swap.start:",
        "if False:",
    ),
    "rewriting-compared": one(
        "a rewriting counts only where the rows that it replaces are still there",
        "bucketlog.metadata.tier:Tier.swap",
        "if at is None or swap.start < gone[0].start or swap.end > gone[-1].end:\n"
        "            return None\n"
        "        self.rows[at : at + len(gone)] = swap.added",
        "if at is None:\n"
        "            at = self.row_at(swap.start)\n"
        "        self.rows[at : at + len(gone)] = swap.added",
    ),
    "tier-key": one(
        "entries about tiers depend on one another",
        "reserve.lua",
        "control_answers[i] = enter(field, groups[field])",
        "control_answers[i] = enter(field .. ticket, nobodys(''))",
    ),
    "job-over": one(
        "no swap counts of a job that is over",
        "bucketlog.metadata.fold:LogState._apply_tier_fact",
        "if Ticket(*fact.planned) >= self.swept_below:",
        "if True:",
    ),
    "orphans-later": one(
        "what is nobody's is deleted when its job is over",
        "bucketlog.tiered_storage.tier_deletion:plan_tiers",
        "if planned < ended:",
        "if True:",
    ),
    "left-later": Mutant(
        "what left a tier is deleted below a floor",
        [
            Change(
                "bucketlog.tiered_storage.tier_deletion:plan_tiers",
                "if newer.swept_below <= row.ticket < floor",
                "if newer.swept_below <= row.ticket",
            ),
            Change(
                "bucketlog.tiered_storage.tier_deletion:plan_tiers",
                "for row in older.left if",
                "for row in newer.left if",
            ),
            Change(
                "bucketlog.tiered_storage.tier_deletion:plan_tiers",
                "named = older.named | newer.named",
                "named = newer.named",
            ),
            Change(
                "bucketlog.tiered_storage.tier_deletion:plan_tiers",
                "if left.ticket >= floor:",
                "if False:",
            ),
        ],
    ),
    "left-again": one(
        "an object that leaves with its manifest waits from then on",
        "bucketlog.tiered_storage.tier_deletion:plan_tiers",
        "if left.ticket >= floor:",
        "if False:",
    ),
    "rows-leave": one(
        "batches that are in the tier have no rows in a view",
        "bucketlog.metadata.view:View._begin",
        "log.begin_at(self._state.partitions[partition].batches_from)",
        "pass",
    ),
    "split-from-the-end": one(
        "a split begins at the tier's end, which may be in a gap",
        "bucketlog.tiered_storage.tier_plan:plan_split",
        "log.tier.end,",
        "log.base_offsets[0],",
    ),
    "trim-below": one(
        "a manifest lets go of what ends at or below the log start alone",
        "bucketlog.tiered_storage.tier_plan:plan_trim",
        "gone = bisect_right(listed, log_start, key=lambda row: row.end)",
        "gone = bisect_right(listed, log_start, key=lambda row: row.start)",
    ),
    "log-start-upwards": Mutant(
        "a log start never goes back",
        [
            Change(
                "bucketlog.metadata.fold:LogState._apply_tier_fact",
                "if state is not None and start.log_start > state.log_start:",
                "if state is not None:",
            ),
            Change(
                "bucketlog.stateless_broker.produce.log_starts:move_log_starts",
                "if log is None or start <= view.log_start(partition):",
                "if log is None:",
            ),
        ],
    ),
    "retention-stops": one(
        "retention stops at the first that stays",
        "bucketlog.tiered_storage.retention:plan_retention",
        "by_size = by_size and part.size_bytes <= excess",
        "by_size = by_size and excess > 0",
    ),
    "tier-cut": Mutant(
        "a reader of the bucket alone reads no batch from log segments that the tier has",
        [
            Change(
                "bucketlog.tiered_storage.log_cut:_joined",
                "tier.batches_from, key=",
                "tier.log_start, key=",
            ),
            Change(
                "bucketlog.tiered_storage.log_cut:_joined",
                "if batches and batches[0].row.base_offset < tier.end:",
                "if False:",
            ),
        ],
    ),
}
