"""Moving log starts: by DeleteRecords at once, by retention in rounds.

Invariant: an entry of the log moves a log start before any object is deleted. Nobody moves a log
start beyond the high watermark that this broker shows.
"""

from collections.abc import Mapping
from uuid import UUID

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.facts import LogStartPayload, LogStartsMoved
from bucketlog.metadata.sequencer.requests import WantedTierEntry
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.produce.tier_committer import TierCommitter

PARTITIONS_AN_ENTRY = 1_000


async def move_log_starts(
    starts: Mapping[TopicIdPartition, int],
    *,
    view: View,
    committer: TierCommitter,
    by: str | None = None,
) -> None:
    """Move log starts, and wait until the view shows them. A start that is behind the partition's
    own has no effect. A start beyond its high watermark is a mistake of the caller. `by` is the
    principal that asks; None: retention. Raises `SequencerError`."""
    rows = []
    for partition, start in sorted(starts.items()):
        log = view.log(partition)
        if log is None or start <= view.log_start(partition):
            continue
        if start > log.high_watermark:
            raise ValueError(f"log start {start} of {partition} is beyond {log.high_watermark}")
        rows.append(LogStartPayload(UUID(bytes=partition.topic_id), partition.partition, start))
    for first in range(0, len(rows), PARTITIONS_AN_ENTRY):
        some = tuple(rows[first : first + PARTITIONS_AN_ENTRY])
        await committer.commit_fact(LogStartsMoved(partitions=some, by=by), WantedTierEntry())
