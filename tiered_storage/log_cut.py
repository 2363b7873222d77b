"""The part of the log that a reader of the bucket alone may believe. Pure.

Such a reader lists all chains twice; the second listing begins after the first has ended. Between
and during the listings brokers write on, so neither listing is a picture of one moment. Invariant:
what `cut_log` keeps is closed (everything that a kept segment builds on is kept, too). What
`readable` returns never changes afterwards: later readers see the same records at the same offsets,
and more after them, as long as the topic's own policy (log start, key compaction) keeps them.

The cut. `cut` is the highest ticket among segments that pass 1 found committed. Committed segments
of pass 2 up to `cut` are kept, and none after it. Why the kept segments are closed:

- Say that a kept segment X builds on a fact in Y: its topic was created there, partitions added, or
  the name freed. The sequencer answers `wait` while Y is pending at another writer, so Y's object
  was committed before X was reserved (or Y is before X in the same chain: then Y is kept).
- Were Y not in pass 2, it would have been committed after pass 2 began, and X reserved later still.
  The segment M that carries `cut` was committed, hence reserved, before pass 2 began. Tickets of an
  epoch are handed out in order, so X would have a ticket above M's, and not be kept. If X is of an
  earlier epoch than M, X cannot be committed that late: M's epoch began after all earlier writers'
  seals.

So the fold of the kept segments never meets a topic that it does not know, although segments with
lower tickets may still be in flight: those touch no key that a kept fact or batch depends on. The
low ticket, which gives the exact prefix that a checkpoint needs, would be too strict here. It would
leave out the newest segments of a log at rest.

Gaps. Within a partition offsets ascend with tickets, so the cut removes only the end of the log. A
gap before a batch is a void reservation, which stays, or a segment in flight, which will appear.
A stamp of a segment committed in pass 1 says that everything below the stamp was visible or void
before pass 2 began. A gap is crossed only if such a stamp reaches its end; otherwise reading stops
there. Stamps of segments that are not committed may come from a sequencer that was rolled back.
They do not count, and neither do stamps that only pass 2 saw.

Checkpoints. A reader that begins with a checkpoint reads the tails alone. Everything below the
checkpoint's ticket is in the checkpoint, so the argument above also holds for what X builds on
there. The checkpoint's high watermarks count as stamps, since nothing open is below its ticket.

Tiers (docs/format/tier.md). The fold of the kept segments says where a partition's log and tier
begin and end. Batches that end at or before the later of log start and tier's end are not read from
log segments, wherever else they are: in a tail whose swap came after the checkpoint, in both, or in
none, because their segments are in no checkpoint and deleted. Why that is right:

- The writer of an entry that swaps, or moves a log start, names an offset. Before it reserved the
  entry, it saw that everything below this offset is visible or void. A kept entry X was reserved
  before the segment M that carries the cut was, hence before pass 2 began. So everything that X
  builds on is kept, by the argument above, and a gap below its offset is void. The offset counts as
  a stamp, though only pass 2 may have seen X. The content of the tier's objects was fixed when X
  was reserved. A gap that begins at the tier's end or later is crossed only by the rules above.
- Only swaps of kept entries count. A later swap replaces objects by others with the same batches,
  or moves batches out of log segments. A reader that does not know of it finds the old objects: an
  object that left a tier, or is in no checkpoint any more, is deleted only a safety age later. A
  reader that takes longer finds that an object is gone. That is an error, never a shorter log: the
  reader begins again.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.log_format.checkpoint import Checkpoint, StoredBatch
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import (
    PartitionTier,
    SegmentId,
    SegmentIndex,
    Ticket,
    TierRow,
    TopicIdPartition,
    WriterId,
)
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.chains import Chain
from bucketlog.tiered_storage.segment import is_seal

_RESTORE = "restore it from a version or a copy of the bucket; nothing may delete objects of a log"


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """A closed part of the log: what `checkpoint` covers, and the `segments` after it in ticket
    order, all at or below `cut` (None: there is none yet). `hw_stamps` are the highest of pass 1,
    by partition."""

    checkpoint: Checkpoint | None
    cut: Ticket | None
    segments: tuple[SegmentIndex, ...]
    hw_stamps: Mapping[TopicIdPartition, int]

    @property
    def is_empty(self) -> bool:
        return self.checkpoint is None and self.cut is None


@dataclass(frozen=True, slots=True)
class ReadablePartition:
    """The readable records of a partition, from `log_start` on: first those in the tier's `rows`,
    then those of `batches`, which are in log segments. Both are in offset order. The first of
    either may begin below the log start.

    `end_offset` is the end of the last batch, or 0 if there was none. `withheld` counts committed
    batches behind a gap that may still be filled, and `withheld_records` counts their records.
    `data_keys` are those of the topic, if it is encrypted; the fold has them.
    """

    partition: TopicIdPartition
    log_start: int
    rows: tuple[TierRow, ...]
    batches: tuple[StoredBatch, ...]
    end_offset: int
    withheld: int
    withheld_records: int
    data_keys: tuple[WrappedKey, ...] = ()


def wanted_footers(chains: Mapping[WriterId, Chain]) -> list[SegmentId]:
    """The segments whose footers `cut_log` needs: the committed, and the first past each hole."""
    wanted = []
    for chain in chains.values():
        wanted += [keys.parse_segment(info.key) for info in chain.committed]
        beyond = _past_hole(chain)
        if beyond is not None:
            wanted.append(beyond)
    return wanted


def _past_hole(chain: Chain) -> SegmentId | None:
    if chain.sealed or not chain.void or is_seal(chain.void[0].size_bytes):
        return None
    return keys.parse_segment(chain.void[0].key)


def cut_log(
    first: Mapping[WriterId, Chain],
    second: Mapping[WriterId, Chain],
    footers: Mapping[SegmentId, SegmentIndex],
    checkpoint: Checkpoint | None = None,
) -> LogSnapshot:
    """Keep of pass 2 what pass 1 vouches for. `footers` has those of `wanted_footers(second)`; both
    passes list what is after `checkpoint`.

    Raises `CorruptObjectError` if an object that must exist is gone, `InvalidDataError` if two
    segments have one ticket.
    """
    for writer, chain in first.items():
        _check_still_there(chain, second.get(writer))
    vouching = [
        footers[SegmentId(chain.writer, seq)]
        for chain in first.values()
        for seq in range(chain.start, chain.end)
    ]
    low = max((Ticket(index.ticket.epoch, index.low_ticket) for index in vouching), default=None)
    for chain in second.values():
        beyond = _past_hole(chain)
        if beyond is not None and low is not None and footers[beyond].ticket < low:
            raise CorruptObjectError(
                keys.segment(SegmentId(chain.writer, chain.end)),
                0,
                f"it is missing, though segment {beyond.seq} after it was visible",
                remedy=_RESTORE,
            )
    cut = max((index.ticket for index in vouching), default=None)
    committed = (
        footers[SegmentId(chain.writer, seq)]
        for chain in second.values()
        for seq in range(chain.start, chain.end)
    )
    kept = sorted(
        (index for index in committed if cut is not None and index.ticket <= cut),
        key=lambda index: index.ticket,
    )
    _check_tickets(kept)
    if checkpoint is not None and kept and kept[0].ticket < checkpoint.ticket:
        raise CorruptObjectError(
            keys.checkpoint(checkpoint.ticket),
            0,
            f"it lacks {keys.segment(kept[0].segment)!r}, which is below its ticket",
            remedy="delete it: it is written anew from the log",
        )
    return LogSnapshot(checkpoint, cut, tuple(kept), _highest_stamps(vouching))


def _check_still_there(before: Chain, now: Chain | None) -> None:
    """Check that objects of pass 1 are also in pass 2. An object before a seal of pass 1 has been
    there since. Raises `CorruptObjectError`."""
    least = before.end
    for info in before.void:
        if is_seal(info.size_bytes) and not before.sealed:
            least = max(least, keys.parse_segment(info.key).seq)
    end = now.end if now is not None else before.start
    if end < least:
        raise CorruptObjectError(
            keys.segment(SegmentId(before.writer, end)), 0, "it is missing", remedy=_RESTORE
        )


def _check_tickets(ordered: Iterable[SegmentIndex]) -> None:
    last: SegmentIndex | None = None
    for index in ordered:
        if last is not None and last.ticket == index.ticket:
            raise InvalidDataError(
                f"segments {tuple(last.segment)} and {tuple(index.segment)} have one ticket",
                remedy="two clusters wrote to one prefix: give each its own",
            )
        last = index


def _highest_stamps(vouching: Iterable[SegmentIndex]) -> dict[TopicIdPartition, int]:
    stamps: dict[TopicIdPartition, int] = {}
    for index in vouching:
        for part in index.partitions:
            stamps[part.partition] = max(stamps.get(part.partition, 0), part.hw_stamp)
    return stamps


class _ReadableBatches(NamedTuple):
    """The readable batches of a partition after the checkpoint; `end` is that of the last batch."""

    batches: list[StoredBatch]
    end: int
    withheld: list[StoredBatch]


def readable(
    snapshot: LogSnapshot, tiers: Mapping[TopicIdPartition, PartitionTier]
) -> dict[TopicIdPartition, ReadablePartition]:
    """Return the readable part of each partition in `tiers`. The tiers are those of the snapshot's
    fold (`metadata.partition_tiers`).

    Raises `InvalidDataError` where offsets of such a partition overlap.
    """
    tails = _walk_tails(snapshot, tiers)
    return {
        partition: _joined(snapshot.checkpoint, partition, tier, tails.get(partition))
        for partition, tier in tiers.items()
    }


def _joined(
    checkpoint: Checkpoint | None,
    partition: TopicIdPartition,
    tier: PartitionTier,
    tail: _ReadableBatches | None,
) -> ReadablePartition:
    batches = list(checkpoint.batches(partition)) if checkpoint is not None else []
    end = _high_watermark(checkpoint, partition)
    withheld: list[StoredBatch] = []
    if tail is not None:
        batches += tail.batches
        end, withheld = tail.end, tail.withheld
    del batches[: bisect_right(batches, tier.batches_from, key=lambda each: each.row.next_offset)]
    if batches and batches[0].row.base_offset < tier.end:
        raise InvalidDataError(
            f"the tier of {partition} ends at {tier.end}, inside of a batch of segment "
            f"{tuple(batches[0].segment)}"
        )
    return ReadablePartition(
        partition,
        tier.log_start,
        tier.rows,
        tuple(batches),
        max(end, tier.end),
        len(withheld),
        sum(batch.row.record_count for batch in withheld),
    )


def _high_watermark(checkpoint: Checkpoint | None, partition: TopicIdPartition) -> int:
    covered = checkpoint.partitions.get(partition) if checkpoint is not None else None
    return covered.high_watermark if covered is not None else 0


def _walk_tails(
    snapshot: LogSnapshot, tiers: Mapping[TopicIdPartition, PartitionTier]
) -> dict[TopicIdPartition, _ReadableBatches]:
    """Return the readable batches of those partitions in `tiers` that have batches after the
    checkpoint."""
    stored: dict[TopicIdPartition, list[StoredBatch]] = {}
    for index in snapshot.segments:
        for part in index.partitions:
            if part.batches and part.partition in tiers:
                stored.setdefault(part.partition, []).extend(
                    StoredBatch(index.segment, index.ticket, row) for row in part.batches
                )
    return {
        partition: _walk(
            partition,
            batches,
            _high_watermark(snapshot.checkpoint, partition),
            max(snapshot.hw_stamps.get(partition, 0), tiers[partition].batches_from),
        )
        for partition, batches in stored.items()
    }


def _walk(
    partition: TopicIdPartition, batches: list[StoredBatch], end: int, stamp: int
) -> _ReadableBatches:
    """Walk through `batches` from offset `end` on, in ticket order, which is offset order."""
    count = 0
    for batch in batches:
        base = batch.row.base_offset
        if base < end:
            raise InvalidDataError(
                f"segment {tuple(batch.segment)} gives offset {base} of {partition} again",
                remedy="two clusters wrote to one prefix: give each its own",
            )
        if base > end and base > stamp:
            break
        end = batch.row.next_offset
        count += 1
    return _ReadableBatches(batches[:count], end, batches[count:])
