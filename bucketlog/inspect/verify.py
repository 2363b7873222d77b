"""`bucketlog segment verify`: is every byte of the log what was once written, and does it fit?

Checked: each object under `log/` (header, every batch's CRC and footer row, footer, trailer, seal),
that it is under its own key, that its writer is registered, that chains have no hole which a
later object proves to be a loss (below a floor: that what a checkpoint has a batch in is there),
that no two segments have one ticket, that no two batches of a partition share an offset, that
transaction markers agree with the facts of their segments, that the facts fold, and that each
checkpoint says what the segments below its ticket come to; where all that holds, also the tiers
that the facts come to (`verify_tier`). Damage never ends the check: all is listed.

A log that is being written is checked as it stood when it was listed. An object past a hole that
nothing proves to be a loss is a PUT in flight, or the end of a broker that crashed; the next
epoch seals there. It is counted, not reported.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from pydantic import ValidationError

from bucketlog.inspect.verify_covered import (
    chains_after,
    check_covered,
    check_registered,
    covered_ends,
    find_base,
)
from bucketlog.inspect.verify_report import Damage, VerifyReport
from bucketlog.inspect.verify_tier import LoggedBatch, check_tiers
from bucketlog.inspect.verify_transactions import TransactionEnds, check_markers
from bucketlog.log_format.batch import read_header
from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import (
    CorruptObjectError,
    InvalidDataError,
    ObjectNotFoundError,
)
from bucketlog.log_format.model import SegmentId, SegmentIndex, Ticket, TopicIdPartition, WriterId
from bucketlog.log_reader.isolation import transactions_of
from bucketlog.metadata.checkpoint import contradiction, restored
from bucketlog.metadata.fold import LogState
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo, SyncBucket
from bucketlog.tiered_storage.chains import Chain, read_chains
from bucketlog.tiered_storage.checkpoint import check_stored_bytes, decode_checkpoint
from bucketlog.tiered_storage.floors import highest_floor
from bucketlog.tiered_storage.identity import ClusterIdentity, NoLogError
from bucketlog.tiered_storage.segment import MIN_SEGMENT_LENGTH, check_segment, decode_seal, is_seal

REQUESTS_IN_FLIGHT = 8
_LOST = "a segment is missing here"


def verify_log(
    bucket: SyncBucket,
    *,
    place: str = "this bucket",
    requests_in_flight: int = REQUESTS_IN_FLIGHT,
    on_listed: Callable[[int], Callable[[], None]] = lambda count: lambda: None,
) -> VerifyReport:
    """Check the whole log. `on_listed` gets the number of objects, and returns what is then called
    once for each; then the same for objects of tiers, if there are any. Raises `NoLogError`, which
    names `place`, where there is no log, and the bucket's errors."""
    report = VerifyReport()
    _check_identity(bucket, place, report)
    floor = highest_floor(bucket.list(keys.FLOORS))
    checkpoints = sorted(bucket.list(keys.CHECKPOINTS))  # first: what they cover is listed then
    base = find_base(bucket, checkpoints, floor, report) if floor is not None else None
    objects = _list_log(bucket, report)
    registered = _registered(bucket, report)
    on_checked = on_listed(len(objects))
    indexes: dict[SegmentId, SegmentIndex] = {}
    crcs: dict[SegmentId, array[int]] = {}
    with ThreadPoolExecutor(requests_in_flight) as pool:
        for info, found in zip(
            objects, pool.map(lambda info: _check_object(bucket, info), objects), strict=True
        ):
            report.size_bytes += info.size_bytes
            if isinstance(found, Damage):
                report.damage.append(found)
            elif found is None:
                report.seals += 1
            else:
                report.segments += 1
                index, crcs[found.footer.segment] = found
                indexes[index.segment] = index
            on_checked()
    whole = [info for info in objects if not _is_too_short(info)]
    check_registered(whole, indexes, registered, base, report)
    chains = read_chains(whole) if base is None else chains_after(base, whole, registered)
    _check_holes(chains, indexes, report)
    committed = _committed(chains, indexes)
    if base is not None:
        check_covered(base, indexes, report)
    state = _check_order(committed, base, report)
    _check_checkpoints(bucket, checkpoints, chains, committed, base, report)
    if state is not None:
        before = transactions_of(restored(base))
        ends = TransactionEnds(before, committed)
        logged: dict[TopicIdPartition, list[LoggedBatch]] = {}
        _log(logged, _below(base, indexes), crcs, ends, is_after=False)
        _log(logged, committed, crcs, ends, is_after=True)
        check_tiers(bucket, state, logged, report, on_listed)
    report.damage.sort(key=lambda damage: (damage.key, damage.position))
    return report


def _check_identity(bucket: SyncBucket, place: str, report: VerifyReport) -> None:
    try:
        ClusterIdentity.model_validate_json(bytes(bucket.get(keys.CLUSTER).data))
    except ValidationError as error:
        report.found(keys.CLUSTER, 0, f"no cluster identity: {error.errors()[0]['msg']}")
    except ObjectNotFoundError:
        if not any(bucket.list(keys.LOG)):
            raise NoLogError(place) from None
        report.found(keys.CLUSTER, 0, "it is missing")


def _list_log(bucket: SyncBucket, report: VerifyReport) -> list[ObjectInfo]:
    objects = []
    for info in bucket.list(keys.LOG):
        try:
            keys.parse_segment(info.key)
        except InvalidDataError as error:
            report.found(info.key, 0, error.message)
        else:
            objects.append(info)
    return sorted(objects)


def _registered(bucket: SyncBucket, report: VerifyReport) -> dict[WriterId, int]:
    """Each writer's epoch."""
    writers: dict[WriterId, int] = {}
    for info in bucket.list(keys.WRITERS):
        try:
            epoch, writer = keys.parse_writer_registration(info.key)
            if writers.setdefault(writer, epoch) != epoch:
                first = keys.writer_registration(writers[writer], writer)
                report.found(info.key, 0, f"{first!r} registers the same writer")
        except InvalidDataError as error:
            report.found(info.key, 0, error.message)
    return writers


def _is_too_short(info: ObjectInfo) -> bool:
    return not is_seal(info.size_bytes) and info.size_bytes < MIN_SEGMENT_LENGTH


class _VerifiedSegment(NamedTuple):
    """A segment, and the CRCs of its batches in the order of its index."""

    footer: SegmentIndex
    crcs: "array[int]"


def _check_object(bucket: SyncBucket, info: ObjectInfo) -> _VerifiedSegment | Damage | None:
    """Check an object. Returns None for a sound seal."""
    try:
        data = bucket.get(info.key).data
        sound = None
        if is_seal(len(data)):
            named = decode_seal(info.key, data).segment
        else:
            index = check_segment(info.key, data)
            check_markers(info.key, index, data)
            rows = (row for part in index.partitions for row in part.batches)
            sound = _VerifiedSegment(
                index, array("I", (read_header(data, row.position).crc for row in rows))
            )
            named = index.segment
        if named != keys.parse_segment(info.key):
            return Damage(info.key, 0, f"it says that it is {keys.segment(named)!r}")
        return sound
    except CorruptObjectError as error:
        return Damage(info.key, error.position, error.reason)
    except InvalidDataError as error:
        return Damage(info.key, 0, error.message)
    except ObjectNotFoundError:
        return Damage(info.key, 0, "it was listed and is gone")


def _below(
    base: Checkpoint | None, indexes: Mapping[SegmentId, SegmentIndex]
) -> list[SegmentIndex]:
    """Segments that the checkpoint covers and that are still there, in ticket order."""
    ends = {row.writer: row.end for row in base.writers} if base is not None else {}
    covered = (each for name, each in indexes.items() if name.seq < ends.get(name.writer, 0))
    return sorted(covered, key=lambda index: index.ticket)


def _log(
    found: dict[TopicIdPartition, list[LoggedBatch]],
    ordered: Iterable[SegmentIndex],
    crcs: Mapping[SegmentId, "array[int]"],
    ends: TransactionEnds,
    *,
    is_after: bool,
) -> None:
    for index in ordered:
        rows = ((part.partition, row) for part in index.partitions for row in part.batches)
        for (partition, row), crc in zip(rows, crcs[index.segment], strict=True):
            found.setdefault(partition, []).append(
                LoggedBatch(
                    row.base_offset,
                    row.next_offset,
                    row.length,
                    crc,
                    index.segment,
                    row.position,
                    ends.in_tier(partition, row, is_after=is_after),
                )
            )


def _check_holes(
    chains: Mapping[WriterId, Chain],
    indexes: Mapping[SegmentId, SegmentIndex],
    report: VerifyReport,
) -> None:
    """A hole is a loss where a seal is beyond it (seals come after the last segment), or a
    segment that some committed segment's low ticket says was visible."""
    low = max(
        (Ticket(index.ticket.epoch, index.low_ticket) for index in _committed(chains, indexes)),
        default=Ticket(0, 0),
    )
    for chain in chains.values():
        if chain.sealed:
            report.void += len(chain.void)
            continue
        beyond = [indexes.get(keys.parse_segment(info.key)) for info in chain.void]
        if any(is_seal(info.size_bytes) for info in chain.void) or any(
            index is not None and index.ticket < low for index in beyond
        ):
            for start, end in _holes(chain):
                reason = f"{end - start} segments are missing from here"
                reason = _LOST if end - start == 1 else reason
                report.found(keys.segment(SegmentId(chain.writer, start)), 0, reason)
        else:
            report.unfinished += len(chain.void)


def _holes(chain: Chain) -> Iterator[tuple[int, int]]:
    """The missing seqs below the last object, as ranges: the number in a name may be of any
    size."""
    start = chain.end
    for info in chain.void:
        seq = keys.parse_segment(info.key).seq
        if start < seq:
            yield start, seq
        start = seq + 1


def _committed(
    chains: Mapping[WriterId, Chain], indexes: Mapping[SegmentId, SegmentIndex]
) -> list[SegmentIndex]:
    """The sound ones, in ticket order."""
    names = (
        SegmentId(chain.writer, seq)
        for chain in chains.values()
        for seq in range(chain.start, chain.end)
    )
    return sorted(
        (indexes[name] for name in names if name in indexes), key=lambda index: index.ticket
    )


def _check_order(
    committed: Iterable[SegmentIndex], base: Checkpoint | None, report: VerifyReport
) -> LogState | None:
    """Tickets, offsets, facts: what these come to. Where something is lost or damaged, the facts
    are not folded: what they build on may be what is gone."""
    sound = not report.damage
    state = restored(base) if sound else LogState()
    last: SegmentIndex | None = None
    ends = covered_ends(base)
    for index in committed:
        key = keys.segment(index.segment)
        if last is not None and index.ticket == last.ticket:
            report.found(key, 0, f"{keys.segment(last.segment)!r} has the same ticket")
        last = index
        _check_offsets(index, ends, report)
        if sound and not report.damage:
            try:
                state.apply(index)
            except InvalidDataError as error:
                report.found(key, 0, str(error))
    report.topics = len(state.topics)
    report.partitions = len(ends)
    return state if not report.damage else None


def _check_offsets(
    index: SegmentIndex, ends: dict[TopicIdPartition, tuple[int, SegmentId]], report: VerifyReport
) -> None:
    for part in index.partitions:
        for row in part.batches:
            end, owner = ends.get(part.partition, (0, index.segment))
            report.batches += 1
            report.records += row.record_count
            if row.base_offset < end:
                report.found(
                    keys.segment(index.segment),
                    row.position,
                    f"offset {row.base_offset} of partition {part.partition.partition} of topic "
                    f"{part.partition.topic_id.hex()} was given by {keys.segment(owner)!r} already",
                )
            ends[part.partition] = (max(end, row.next_offset), index.segment)


def _check_checkpoints(
    bucket: SyncBucket,
    checkpoints: Iterable[ObjectInfo],
    chains: Mapping[WriterId, Chain],
    committed: Sequence[SegmentIndex],
    base: Checkpoint | None,
    report: VerifyReport,
) -> None:
    """Each must decode; where the log is sound, it is also compared with the log."""
    sound = not report.damage
    lowest = base.ticket if base is not None else Ticket(0, 0)
    for info in checkpoints:
        try:
            ticket = keys.parse_checkpoint(info.key)
            check_stored_bytes(info)
            checkpoint = decode_checkpoint(info.key, bucket.get(info.key).data)
            report.checkpoints += 1
            report.size_bytes += info.size_bytes
            if sound and ticket > lowest:
                below = [index for index in committed if index.ticket < ticket]
                wrong = contradiction(checkpoint, below, base)
                wrong = wrong or _wrongly_closed(checkpoint, chains, lowest.epoch)
                if wrong is not None:
                    report.found(info.key, 0, wrong)
        except ObjectNotFoundError:  # two newer ones were written meanwhile
            continue
        except CorruptObjectError as error:
            report.found(info.key, error.position, error.reason)
        except InvalidDataError as error:
            report.found(info.key, 0, error.message)


def _wrongly_closed(
    checkpoint: Checkpoint, chains: Mapping[WriterId, Chain], lowest_epoch: int
) -> str | None:
    for row in checkpoint.writers:
        chain = chains.get(row.writer)
        if row.epoch < lowest_epoch or not row.closed:
            continue
        if chain is None or not chain.sealed or chain.end != row.end:
            return f"it says that {keys.chain(row.writer)!r} ends at {row.end}"
    return None
