"""Checkpoints and the fold: makes the next checkpoint, and finds errors in a checkpoint. Pure.

Invariant: folding the segments after a checkpoint onto `restored` gives the fold of the whole log,
except for forgotten producers. Those wrote last before a time that the checkpoint names
(`LogState.producers_since_ms`).
"""

from collections.abc import Iterable, Mapping, Sequence

from bucketlog.log_format.checkpoint import (
    BatchColumns,
    Checkpoint,
    CoveredPartition,
    CoveredWriter,
    Place,
)
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import (
    BatchIndex,
    SegmentIndex,
    Ticket,
    TopicIdPartition,
    WriterId,
)
from bucketlog.metadata.checkpoint_state import decode_state, encode_state, state_version
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.producers import IdleLimit, is_idle, same_producers


def restored(
    checkpoint: Checkpoint | None, *, keep_producers: bool = True, keep_groups: bool = True
) -> LogState:
    """The state to fold on from; without a checkpoint that of an empty log. Raises
    `InvalidDataError`."""
    if checkpoint is None:
        return LogState(keep_producers=keep_producers, keep_groups=keep_groups)
    state = decode_state(
        checkpoint.state,
        version=checkpoint.version,
        created_ms=checkpoint.created_ms,
        keep_producers=keep_producers,
        keep_groups=keep_groups,
    )
    if not checkpoint.partitions.keys() <= state.partitions.keys():
        raise InvalidDataError(
            f"the checkpoint of {tuple(checkpoint.ticket)} has batches of partitions that its "
            "state lacks",
            remedy="delete it: it is written anew from the log",
        )
    return state


def extended(
    base: Checkpoint | None,
    covered: Sequence[SegmentIndex],
    ticket: Ticket,
    writers: Iterable[CoveredWriter],
    *,
    created_ms: int,
    idle: IdleLimit | None = None,
) -> Checkpoint:
    """The checkpoint at `ticket`, made from the last checkpoint and the committed segments since.

    `covered` are these segments, sorted by ticket and all below `ticket`. `writers` are their
    writers and those of the ticket's epoch, with their ends. `idle` says which producers to
    forget; None: none. Raises `InvalidDataError`.
    """
    lowest = Ticket(0, 0) if base is None else base.ticket
    state = restored(base)
    known = {row.writer: row for row in base.writers} if base is not None else {}
    known |= {row.writer: row for row in writers}
    order = {writer: at for at, writer in enumerate(known)}
    grown: dict[TopicIdPartition, list[tuple[BatchIndex, Place]]] = {}
    for index in covered:
        if not lowest <= index.ticket < ticket:
            raise InvalidDataError(
                f"{index.segment} with ticket {tuple(index.ticket)} is not between the "
                f"checkpoints of {tuple(lowest)} and {tuple(ticket)}",
                remedy="delete the checkpoints: they are written anew from the log",
            )
        lowest = Ticket(index.ticket.epoch, index.ticket.number + 1)
        state.apply(index)
        place = order[index.segment.writer], index.segment.seq, index.ticket.number
        for part in index.partitions:
            grown.setdefault(part.partition, []).extend((row, place) for row in part.batches)
    if idle is not None:
        state.forget_producers(idle.since_ms(state.clock))
    partitions = _grown_partitions(base, grown, state)
    used = {at for part in partitions.values() for at in set(part.batches.columns[-3])}
    rows = [row for row in known.values() if row.epoch == ticket.epoch or order[row.writer] in used]
    return Checkpoint(
        ticket,
        created_ms,
        (0 if base is None else base.segments) + len(covered),
        tuple(rows),
        _renumbered(partitions, order, rows),
        encode_state(state),
        state_version(state),
    )


def _grown_partitions(
    base: Checkpoint | None,
    grown: Mapping[TopicIdPartition, Sequence[tuple[BatchIndex, Place]]],
    state: LogState,
) -> dict[TopicIdPartition, CoveredPartition]:
    before = base.partitions if base is not None else {}
    found = {}
    for partition, entry in state.partitions.items():
        old = before.get(partition)
        batches = old.batches if old is not None else BatchColumns()
        if partition in grown:
            batches = batches.grown(grown[partition])
        batches = batches.without_below(entry.batches_from)
        if entry.next_offset or batches:
            found[partition] = CoveredPartition(entry.next_offset, batches)
    return found


def _renumbered(
    partitions: Mapping[TopicIdPartition, CoveredPartition],
    order: Mapping[WriterId, int],
    rows: Sequence[CoveredWriter],
) -> dict[TopicIdPartition, CoveredPartition]:
    """Batches name their writers by rows of a list that has just lost some."""
    moved = {order[row.writer]: at for at, row in enumerate(rows)}
    if all(before == after for before, after in moved.items()):
        return dict(partitions)
    return {
        partition: CoveredPartition(
            part.high_watermark, part.batches.with_writers(moved.__getitem__)
        )
        for partition, part in partitions.items()
    }


def contradiction(
    checkpoint: Checkpoint, below: Sequence[SegmentIndex], base: Checkpoint | None = None
) -> str | None:
    """Return what the checkpoint says wrongly; None if it is right. `below` are all committed
    segments below its ticket (and after an earlier checkpoint, `base`), sorted by ticket. Raises
    `InvalidDataError` if they, or a checkpoint, do not fold."""
    before = base.writers if base is not None else ()
    ends = {row.writer: row.end for row in before if row.end}
    epochs = {row.writer: row.epoch for row in before}
    for index in below:
        ends[index.segment.writer] = index.segment.seq + 1
        epochs[index.segment.writer] = index.ticket.epoch
    writers = [CoveredWriter(writer, epochs[writer], end, False) for writer, end in ends.items()]
    made = extended(base, below, checkpoint.ticket, writers, created_ms=0)
    said = {row.writer: row.end for row in checkpoint.writers if row.end}
    state, expected = restored(checkpoint), restored(made)
    if checkpoint.segments != made.segments:
        return f"it covers {checkpoint.segments} segments, {made.segments} are below its ticket"
    if any(said.get(row.writer, 0) != row.end for row in made.writers):
        return "its positions are not where its ticket is in the chains"
    if any(ends.get(writer) != end for writer, end in said.items()):
        return "it has positions in chains that do not reach there"
    for name in (
        "topics",
        "groups",
        "dropped",
        "swept_below",
        "scram_credentials",
        "acls",
        "data_keys",
        "delegation_tokens",
        "resource_configs",
    ):
        if getattr(state, name) != getattr(expected, name):
            return f"its {name} are not those of the log"
    wrong = partitions_contradiction(state, expected)
    if wrong is not None:
        return wrong
    for partition in checkpoint.partitions.keys() | made.partitions.keys():
        if list(checkpoint.batches(partition)) != list(made.batches(partition)):
            return f"its batches of partition {partition.partition} of topic " + (
                f"{partition.topic_id.hex()} are not those of the log"
            )
        marks = (each.partitions[partition].high_watermark for each in (checkpoint, made))
        if len(set(marks)) > 1:
            return f"its high watermark of partition {partition.partition} is not the log's"
    return None


def partitions_contradiction(state: LogState, expected: LogState) -> str | None:
    """An error in the partitions of a checkpoint's `state`, or None. `expected` is the fold of the
    log below the checkpoint, which may have forgotten fewer or other producers."""
    parts, wanted = state.partitions, expected.partitions
    if parts.keys() != wanted.keys() or any(
        (part.next_offset, part.log_start, part.tier)
        != (wanted[key].next_offset, wanted[key].log_start, wanted[key].tier)
        for key, part in parts.items()
    ):
        return "its partitions are not those of the log"
    if state.transactions != expected.transactions or any(
        part.transactions != wanted[key].transactions for key, part in parts.items()
    ):
        return "its transactions are not those of the log"
    times_from_ms = max(state.times_from_ms, expected.times_from_ms)
    if state.clock != expected.clock and not times_from_ms:
        return "its clock is not that of the log"
    if state.producers_since_ms > max(expected.producers_since_ms, expected.clock.now_ms):
        return "it forgets producers up to a time that the log had not reached"
    for key, part in parts.items():
        if any(is_idle(rows, state.producers_since_ms) for rows in part.producers.values()):
            return "it keeps producers from before the time up to which it forgets them"
        if not same_producers(
            part.producers,
            wanted[key].producers,
            since_ms=max(state.producers_since_ms, expected.producers_since_ms),
            times_from_ms=times_from_ms,
        ):
            return f"its producers of partition {key.partition} of topic " + (
                f"{key.topic_id.hex()} are not those of the log"
            )
    return None
