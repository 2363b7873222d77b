"""Checkpoints and the fold: state to bytes and back, and the next checkpoint from the last. Pure.

Invariant: folding what comes after a checkpoint onto `restored` gives what folding everything
gives. The bytes of the state are a part of the checkpoint's format (docs/format/checkpoint.md);
the checkpoint's checksum covers them, yet every count is held against the bytes that are there.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

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
    Buffer,
    SegmentIndex,
    Ticket,
    TierObject,
    TierRow,
    TopicId,
    TopicIdPartition,
    WriterId,
)
from bucketlog.metadata.fold import (
    CommittedOffset,
    LogState,
    PartitionState,
    ProducedBatch,
    TopicState,
)
from bucketlog.metadata.tier import DroppedObject, Tier

_HEAD = struct.Struct(">IIIIIQQ")
_TOPIC = struct.Struct(">16sII")
_PARTITION = struct.Struct(">qqqqI")
_TIER_ROW = struct.Struct(">qqBQQqI")
_DROPPED = struct.Struct(">QQ16sIqBB")
_PRODUCED = struct.Struct(">IIqhiiq")
_COUNT = struct.Struct(">I")
_OFFSET = struct.Struct(">IIqiqBq")


def encode_state(state: LogState) -> bytes:
    """Topics with their partitions and tiers, producers, groups, what was dropped. `state` was
    folded with all of them."""
    rows = {topic_id: row for row, topic_id in enumerate(state.topics)}
    produced = [
        _PRODUCED.pack(rows[partition.topic_id], partition.partition, producer_id, *batch)
        for partition, entry in state.partitions.items()
        for producer_id, batches in entry.producers.items()
        for batch in batches
    ]
    offsets = sum(len(committed) for committed in state.groups.values())
    pieces = [
        _HEAD.pack(
            len(state.topics),
            len(produced),
            len(state.groups),
            offsets,
            len(state.dropped),
            *state.swept_below,
        )
    ]
    for topic in state.topics.values():
        pieces.append(_TOPIC.pack(topic.topic_id, topic.partitions, len(topic.configs)))
        pieces.append(_text(topic.name))
        pieces += [_text(text) for item in topic.configs.items() for text in item]
        for number in range(topic.partitions):
            pieces += _partition(state.partitions[TopicIdPartition(topic.topic_id, number)])
    pieces += produced
    for group, committed in state.groups.items():
        pieces.append(_text(group))
        pieces.append(_COUNT.pack(len(committed)))
        for partition, row in committed.items():
            pieces.append(
                _OFFSET.pack(
                    rows[partition.topic_id],
                    partition.partition,
                    row.offset,
                    row.leader_epoch,
                    row.committed_ms,
                    row.expires_ms is not None,
                    row.expires_ms or 0,
                )
            )
            pieces.append(_text(row.metadata))
    for ticket, there, contents in state.dropped:
        topic_id, number = there.partition
        pieces.append(
            _DROPPED.pack(*ticket, topic_id, number, there.start, there.manifest, contents)
        )
        pieces.append(_text(there.name))
    return b"".join(pieces)


def _partition(entry: PartitionState) -> list[bytes]:
    tier = entry.tier
    pieces = [
        _PARTITION.pack(
            entry.log_start, entry.next_offset, tier.end, tier.cleaned_to, len(tier.rows)
        )
    ]
    for row in tier.rows:
        pieces.append(
            _TIER_ROW.pack(
                row.start,
                row.end,
                row.manifest,
                row.size_bytes,
                row.batch_bytes,
                row.max_timestamp_ms,
                row.segments,
            )
        )
        pieces.append(_text(row.name))
    return pieces


def _text(text: str) -> bytes:
    data = text.encode()
    return _COUNT.pack(len(data)) + data


class _Reader:
    """Takes values from the front of the bytes. Raises `InvalidDataError`."""

    def __init__(self, data: Buffer) -> None:
        self._data = memoryview(data)
        self._at = 0

    def take(self, row: struct.Struct) -> tuple[Any, ...]:
        self.expect(1, row)
        self._at += row.size
        return row.unpack_from(self._data, self._at - row.size)

    def text(self) -> str:
        (length,) = self.take(_COUNT)
        if length > len(self._data) - self._at:
            raise self.wrong("it is cut short")
        self._at += length
        try:
            return str(self._data[self._at - length : self._at], "utf-8")
        except UnicodeDecodeError:
            raise self.wrong("a name is not UTF-8") from None

    def expect(self, count: int, row: struct.Struct) -> None:
        """So many rows are still there."""
        if count * row.size > len(self._data) - self._at:
            raise self.wrong("it is cut short")

    def end(self) -> None:
        if self._at != len(self._data):
            raise self.wrong("bytes after its end")

    def wrong(self, reason: str) -> InvalidDataError:
        return InvalidDataError(
            f"the state of a checkpoint does not decode at {self._at}: {reason}"
        )


def decode_state(
    data: Buffer, *, keep_producers: bool = True, keep_groups: bool = True
) -> LogState:
    """Raises `InvalidDataError`."""
    reader = _Reader(data)
    state = LogState(keep_producers=keep_producers, keep_groups=keep_groups)
    topics, produced, groups, offsets, dropped, *swept_below = reader.take(_HEAD)
    reader.expect(topics, _TOPIC)
    listed = [_take_topic(reader, state) for _ in range(topics)]

    def partition_at(row: int, number: int) -> TopicIdPartition:
        if row >= len(listed) or number >= listed[row].partitions:
            raise reader.wrong(f"it has no partition {number} of topic row {row}")
        return TopicIdPartition(listed[row].topic_id, number)

    reader.expect(produced, _PRODUCED)
    for _ in range(produced):
        row, number, producer_id, *batch = reader.take(_PRODUCED)
        partition = partition_at(row, number)
        if keep_producers:
            kept = state.partitions[partition].producers.setdefault(producer_id, [])
            kept.append(ProducedBatch(*batch))
    reader.expect(offsets, _OFFSET)
    for _ in range(groups):
        group, committed = _take_group(reader, partition_at)
        offsets -= len(committed)
        if keep_groups:
            state.groups[group] = committed
    if offsets:
        raise reader.wrong("its groups and their offsets do not agree")
    reader.expect(dropped, _DROPPED)
    state.dropped = [_take_dropped(reader) for _ in range(dropped)]
    state.swept_below = Ticket(*swept_below)
    reader.end()
    return state


def _take_topic(reader: _Reader, state: LogState) -> TopicState:
    topic_id, partitions, configs = reader.take(_TOPIC)
    name = reader.text()
    pairs = []
    for _ in range(configs):
        key = reader.text()
        pairs.append((key, reader.text()))
    topic = TopicState(TopicId(topic_id), name, partitions, dict(pairs))
    if topic_id in state.topics or name in state.names:
        raise reader.wrong(f"topic {name!r} stands in it twice")
    state.topics[topic.topic_id] = topic
    state.names[name] = topic.topic_id
    reader.expect(partitions, _PARTITION)
    for number in range(partitions):
        state.partitions[TopicIdPartition(topic.topic_id, number)] = _take_partition(reader)
    return topic


def _take_partition(reader: _Reader) -> PartitionState:
    log_start, next_offset, end, cleaned_to, rows = reader.take(_PARTITION)
    reader.expect(rows, _TIER_ROW)
    return PartitionState(
        next_offset,
        log_start,
        tier=Tier([_take_tier_row(reader) for _ in range(rows)], end, cleaned_to),
    )


def _take_tier_row(reader: _Reader) -> TierRow:
    start, end, manifest, size_bytes, batch_bytes, max_timestamp_ms, segments = reader.take(
        _TIER_ROW
    )
    return TierRow(
        start,
        end,
        reader.text(),
        bool(manifest),
        size_bytes,
        batch_bytes,
        max_timestamp_ms,
        segments,
    )


def _take_dropped(reader: _Reader) -> DroppedObject:
    epoch, number, topic_id, partition, start, manifest, contents = reader.take(_DROPPED)
    there = TierObject(
        TopicIdPartition(TopicId(topic_id), partition), start, reader.text(), bool(manifest)
    )
    return DroppedObject(Ticket(epoch, number), there, bool(contents))


def _take_group(
    reader: _Reader, partition_at: Callable[[int, int], TopicIdPartition]
) -> tuple[str, dict[TopicIdPartition, CommittedOffset]]:
    group = reader.text()
    (count,) = reader.take(_COUNT)
    reader.expect(count, _OFFSET)
    committed = {}
    for _ in range(count):
        row, number, offset, leader_epoch, at_ms, expires, expires_ms = reader.take(_OFFSET)
        committed[partition_at(row, number)] = CommittedOffset(
            offset, leader_epoch, reader.text(), at_ms, expires_ms if expires else None
        )
    return group, committed


def restored(
    checkpoint: Checkpoint | None, *, keep_producers: bool = True, keep_groups: bool = True
) -> LogState:
    """The state to fold on from; without a checkpoint that of an empty log."""
    if checkpoint is None:
        return LogState(keep_producers=keep_producers, keep_groups=keep_groups)
    return decode_state(checkpoint.state, keep_producers=keep_producers, keep_groups=keep_groups)


def extended(
    base: Checkpoint | None,
    covered: Sequence[SegmentIndex],
    ticket: Ticket,
    writers: Iterable[CoveredWriter],
    *,
    created_ms: int,
) -> Checkpoint:
    """The checkpoint at `ticket`, from the last one and the committed segments since.

    `covered` are sorted by ticket, and all below `ticket`; `writers` are those of them, and those
    of the ticket's epoch, with their ends. Raises `InvalidDataError`.
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
                f"{index.segment} with ticket {tuple(index.ticket)} does not stand between the "
                f"checkpoints of {tuple(lowest)} and {tuple(ticket)}",
                remedy="delete the checkpoints: they are written anew from the log",
            )
        lowest = Ticket(index.ticket.epoch, index.ticket.number + 1)
        state.apply(index)
        place = order[index.segment.writer], index.segment.seq, index.ticket.number
        for part in index.partitions:
            grown.setdefault(part.partition, []).extend((row, place) for row in part.batches)
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
    """What the checkpoint says that is not so. `below` are all committed segments below its ticket
    (and after an earlier one, `base`), sorted by it. Raises `InvalidDataError` where it or they do
    not fold."""
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
    for name in ("topics", "partitions", "groups", "dropped", "swept_below"):
        if getattr(state, name) != getattr(expected, name):
            return f"its {name} are not those of the log"
    for partition in checkpoint.partitions.keys() | made.partitions.keys():
        if list(checkpoint.batches(partition)) != list(made.batches(partition)):
            return f"its batches of partition {partition.partition} of topic " + (
                f"{partition.topic_id.hex()} are not those of the log"
            )
        marks = (each.partitions[partition].high_watermark for each in (checkpoint, made))
        if len(set(marks)) > 1:
            return f"its high watermark of partition {partition.partition} is not the log's"
    return None
