"""The folded state as the sequencer's hashes: what an activation loads. Pure.

The records are those of `lua/settle.lua` and `lua/reserve.lua`: everything is visible (-1), nothing
is open.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import ormsgpack

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.transactions import PartitionTransactions
from bucketlog.metadata.committed_offset import offset_weight
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.producers import ProducedBatch
from bucketlog.metadata.transactions import TransactionalId

VISIBLE = -1
ENDED = -1
"""The serial of a batch whose transaction has ended."""
NEVER_MS = 2**52
"""The deadline of a transaction with two-phase commit is its start plus this time."""


def _pack(record: Any) -> bytes:
    return ormsgpack.packb(record, default=tuple)


def _field(partition: TopicIdPartition) -> str:
    return f"{partition.topic_id.hex()}:{partition.partition}"


def _age_ms(batch: ProducedBatch, now_ms: int) -> int:
    return max(0, now_ms - batch.appended_ms)


def staged_records(state: LogState, now_ms: int) -> tuple[dict[str, bytes], ...]:
    """Fields and values of `topics`, `partitions`, `producers`, `txns` and `txn_parts`.

    `now_ms` is the server's time. A producer's batch keeps its age, measured by the earlier of the
    log's clock and the server's. Neither a wrong clock nor an outage expires producers early."""
    topics = {
        topic.name: _pack([[VISIBLE, topic.topic_id.hex(), topic.partitions, False]])
        for topic in state.topics.values()
    }
    partitions = {
        _field(partition): _pack(
            {
                "next": entry.next_offset,
                "visible_end": entry.next_offset,
                "log_start": entry.log_start,
                "open": "",
            }
        )
        for partition, entry in state.partitions.items()
    }
    log_ms = min(now_ms, state.clock.now_ms)
    serials = _serials(state)
    producers = {
        f"{producer_id}:{_field(partition)}": _pack(
            [
                [
                    *(VISIBLE, *batch[:-1], now_ms - _age_ms(batch, log_ms)),
                    *_serial(entry.transactions, serials, producer_id, batch),
                ]
                for batch in batches
            ]
        )
        for partition, entry in state.partitions.items()
        for producer_id, batches in entry.producers.items()
    }
    txns = {
        _txn_field(each): _pack(_txn_record(state, each, owner, now_ms))
        for each, owner in state.transactions.ids.items()
    }
    txn_parts = {
        _txn_field(each): "".join(map(partial(_part, state), sorted(parts))).encode()
        for each, owner in state.transactions.ids.items()
        if (parts := state.transactions.parts.get(owner.transaction[0]))
    }
    total = sum(_name_bytes(state, each, owner) for each, owner in state.transactions.ids.items())
    if total:
        txn_parts["total"] = b"%d" % total
    return topics, partitions, producers, txns, txn_parts


def _serials(state: LogState) -> dict[int, int]:
    """Return, by producer id, the serial of the open transaction, or else of the next one."""
    return {
        producer_id: owner.serial
        for owner in state.transactions.ids.values()
        for producer_id in (owner.producer_id, owner.transaction[0])
    }


def _serial(
    transactions: PartitionTransactions,
    serials: Mapping[int, int],
    producer_id: int,
    batch: ProducedBatch,
) -> tuple[int, ...]:
    """The serial of the batch's transaction, or `ENDED`; empty if the producer has no transactional
    id."""
    serial = serials.get(producer_id)
    if serial is None:
        return ()
    opened = transactions.open.get(producer_id)
    is_open = opened is not None and batch.base_offset >= opened.first_offset
    return (serial if is_open else ENDED,)


def _name_bytes(state: LogState, transactional_id: str, owner: TransactionalId) -> int:
    parts = state.transactions.parts.get(owner.transaction[0], ())
    groups = state.transactions.pending.get(transactional_id, {})
    listed = sum(len(_part(state, part)) for part in parts)
    return listed + sum(len(group.encode()) for group in groups)


def _part(state: LogState, partition: TopicIdPartition) -> str:
    return f"{state.topics[partition.topic_id].name}/{_field(partition)};"


def staged_deadlines(state: LogState, now_ms: int) -> dict[str, int]:
    """The members of `txn_deadlines`, with deadlines in ms. Each open transaction gets its whole
    timeout again. A transaction with two-phase commit gets a deadline that never comes."""
    return {
        _txn_field(each): now_ms + (NEVER_MS if owner.two_phase else owner.timeout_ms)
        for each, owner in state.transactions.ids.items()
        if _is_ongoing(state, each, owner)
    }


def _txn_field(transactional_id: str) -> str:
    return f"i:{transactional_id}"


def _is_ongoing(state: LogState, transactional_id: str, owner: TransactionalId) -> bool:
    transactions, (producer_id, _) = state.transactions, owner.transaction
    if owner.is_kept:
        return True
    return transactional_id in transactions.pending or producer_id in transactions.parts


def _producer(producer_id: int) -> str:
    return str(producer_id) if producer_id >= 0 else ""


def _txn_record(
    state: LogState, transactional_id: str, owner: TransactionalId, now_ms: int
) -> dict[str, Any]:
    """Return the record as in `lua/transaction_records.lua`. `forgiving`: perhaps only the last
    sequencer knew the partitions that a version 1 client had added to its transaction."""
    pending = state.transactions.pending.get(transactional_id, {})
    is_ongoing = _is_ongoing(state, transactional_id, owner)
    return {
        "producer": _producer(owner.producer_id),
        "epoch": owner.producer_epoch,
        "last_producer": _producer(owner.last_producer_id),
        "last_epoch": owner.last_producer_epoch,
        "outcome": owner.outcome,
        "by": owner.by,
        "serial": owner.serial,
        "version": owner.version,
        "timeout": owner.timeout_ms,
        "two_phase": owner.two_phase,
        "updated": min(owner.updated_ms, now_ms),
        "txn_producer": _producer(owner.txn_producer_id),
        "txn_epoch": owner.txn_producer_epoch,
        "next": False,
        "ongoing": is_ongoing,
        "since": now_ms if is_ongoing else 0,
        "forgiving": True,
        "part_count": len(state.transactions.parts.get(owner.transaction[0], ())),
        "name_bytes": _name_bytes(state, transactional_id, owner),
        "groups": list(pending),
        "offset_rows": sum(
            offset_weight(row.metadata) for rows in pending.values() for row in rows.values()
        ),
        "offsets": "",
    }
