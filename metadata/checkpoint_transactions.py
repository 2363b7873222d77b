"""The transactions in a checkpoint's state, for versions 4 and 5. Pure.

This part follows the state of version 3 (docs/format/checkpoint.md). A checkpoint has it only if
the log has transactions that must be known. Version 5 also has the pairs of kept transactions.
"""

import struct
from collections.abc import Callable, Mapping

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.transactions import (
    AbortedTransaction,
    OpenTransaction,
    PartitionTransactions,
)
from bucketlog.metadata.checkpoint_bytes import COUNT, OFFSET, StateReader, offset_rows, text_bytes
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.transactions import OUTCOMES, TransactionalId

_HEAD = struct.Struct(">IIIII")
_ID = struct.Struct(">qhqhBBQBqBq")
_OPEN = struct.Struct(">IIqhq")
_ABORTED = struct.Struct(">IIqqq")
_KEPT = struct.Struct(">Iqh")
_ENDED_BY = ("", "client", "server", "init")


def has_transactions(state: LogState) -> bool:
    """Return whether the state has anything about transactions that must still be known."""
    return (
        bool(state.transactions.ids)
        or bool(state.transactions.pending)
        or any(part.transactions for part in state.partitions.values())
    )


def has_kept_transactions(state: LogState) -> bool:
    """Return whether an init has kept a transaction that is still open."""
    return any(owner.is_kept for owner in state.transactions.ids.values())


def encode_transactions(state: LogState, rows: Mapping[TopicId, int]) -> list[bytes]:
    """Encode transactions. `rows` are the numbers of the topics in the state."""
    transactions = state.transactions
    pending = [
        (each, group, offsets)
        for each, groups in transactions.pending.items()
        for group, offsets in groups.items()
    ]
    opened, aborted = [], []
    for partition, part in state.partitions.items():
        place = rows[partition.topic_id], partition.partition
        for producer_id, (epoch, first) in part.transactions.open.items():
            opened.append(_OPEN.pack(*place, producer_id, epoch, first))
        aborted += [_ABORTED.pack(*place, *each) for each in part.transactions.aborted()]
    pieces = [
        _HEAD.pack(
            len(transactions.ids),
            len(pending),
            sum(len(offsets) for _, _, offsets in pending),
            len(opened),
            len(aborted),
        )
    ]
    for each, owner in transactions.ids.items():
        pieces.append(text_bytes(each))
        pieces.append(
            _ID.pack(
                *owner[:4],
                OUTCOMES.index(owner.outcome),
                _ENDED_BY.index(owner.by),
                *owner[6:11],
            )
        )
    numbers = {each: number for number, each in enumerate(transactions.ids)}
    for each, group, offsets in pending:
        pieces += [COUNT.pack(numbers[each]), text_bytes(group), *offset_rows(offsets, rows)]
    return pieces + opened + aborted


def encode_kept(state: LogState) -> list[bytes]:
    """The kept transactions, which follow `encode_transactions` in version 5."""
    kept = [
        _KEPT.pack(number, *owner.transaction)
        for number, owner in enumerate(state.transactions.ids.values())
        if owner.is_kept
    ]
    return [COUNT.pack(len(kept)), *kept]


def decode_transactions(
    reader: StateReader,
    state: LogState,
    partition_at: Callable[[int, int], TopicIdPartition],
    *,
    keep_groups: bool,
) -> None:
    """Decode into `state`, whose topics and partitions are decoded. Raises `InvalidDataError`."""
    ids, pending, offsets, opened, aborted = reader.take(_HEAD)
    reader.expect(ids, _ID)
    for _ in range(ids):
        each = reader.text()
        if each in state.transactions.ids:
            raise reader.wrong(f"transactional id {each!r} occurs twice")
        state.transactions.ids[each] = _take_id(reader)
    named = list(state.transactions.ids)
    reader.expect(pending, COUNT)
    reader.expect(offsets, OFFSET)
    for _ in range(pending):
        (number,) = reader.take(COUNT)
        group, rows = reader.text(), reader.offsets(partition_at)
        offsets -= len(rows)
        if number >= len(named) or group in state.transactions.pending.get(named[number], {}):
            raise reader.wrong("pending offsets have no transactional id")
        if keep_groups:
            state.transactions.load_pending(named[number], group, rows)
            state.offsets.note_loaded(group, rows)
    if offsets:
        raise reader.wrong("its pending offsets do not agree with their number")
    _take_partitions(reader, state, partition_at, opened, aborted)


def decode_kept(reader: StateReader, state: LogState) -> None:
    """Decode kept transactions into `state`, which already has its transactional ids. Raises
    `InvalidDataError`."""
    ids = state.transactions.ids
    named = list(ids)
    (count,) = reader.take(COUNT)
    reader.expect(count, _KEPT)
    for _ in range(count):
        number, producer_id, epoch = reader.take(_KEPT)
        if number >= len(named) or ids[named[number]].is_kept or min(producer_id, epoch) < 0:
            raise reader.wrong("a kept transaction has no transactional id")
        owner = ids[named[number]]
        ids[named[number]] = owner._replace(txn_producer_id=producer_id, txn_producer_epoch=epoch)


def _take_id(reader: StateReader) -> TransactionalId:
    row = reader.take(_ID)
    producer_id, producer_epoch, last_id, last_epoch, outcome, by, serial, *rest = row
    version, timeout_ms, two_phase, updated_ms = rest
    if outcome >= len(OUTCOMES) or by >= len(_ENDED_BY) or two_phase > 1:
        raise reader.wrong("a transactional id has an unknown outcome")
    return TransactionalId(
        producer_id,
        producer_epoch,
        last_id,
        last_epoch,
        OUTCOMES[outcome],
        _ENDED_BY[by],
        serial,
        version,
        timeout_ms,
        bool(two_phase),
        updated_ms,
    )


def _take_partitions(
    reader: StateReader,
    state: LogState,
    partition_at: Callable[[int, int], TopicIdPartition],
    opened: int,
    aborted: int,
) -> None:
    reader.expect(opened, _OPEN)
    found: dict[TopicIdPartition, tuple[dict[int, OpenTransaction], list[AbortedTransaction]]] = {}
    for _ in range(opened):
        row, number, producer_id, epoch, first = reader.take(_OPEN)
        here, _ = found.setdefault(partition_at(row, number), ({}, []))
        if producer_id in here:
            raise reader.wrong(f"producer {producer_id} has two open transactions of a partition")
        here[producer_id] = OpenTransaction(epoch, first)
    reader.expect(aborted, _ABORTED)
    for _ in range(aborted):
        row, number, *ended = reader.take(_ABORTED)
        _, there = found.setdefault(partition_at(row, number), ({}, []))
        there.append(AbortedTransaction(*ended))
    for partition, (open_here, aborted_here) in found.items():
        part = state.partitions[partition]
        last = [each.first_offset for each in open_here.values()]
        last += [each.marker_offset for each in aborted_here]
        try:
            part.transactions = PartitionTransactions.of(open_here, aborted_here)
        except ValueError as error:
            raise reader.wrong(str(error)) from None
        if max(last) >= part.next_offset:
            raise reader.wrong("a transaction is beyond the end of its partition")
        for producer_id in open_here:
            state.transactions.parts.setdefault(producer_id, set()).add(partition)
