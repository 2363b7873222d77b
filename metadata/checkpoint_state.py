"""The bytes of a checkpoint's state: the folded state, encoded and decoded. Pure.

The bytes are a part of the checkpoint's format (docs/format/checkpoint.md). The checkpoint's
checksum covers them, but the decoder still compares every count with the available bytes before it
allocates memory. Invariant: batches of version 2, which have no time, get the time when the
checkpoint was created.
"""

import struct

from bucketlog.log_format.checkpoint import (
    CHECKPOINT_VERSION,
    CONFIGS_VERSION,
    DATA_KEYS_VERSION,
    KEPT_TRANSACTIONS_VERSION,
    SECURITY_VERSION,
    SHARES_VERSION,
    TOKENS_VERSION,
    TRANSACTIONS_VERSION,
)
from bucketlog.log_format.model import (
    Buffer,
    Ticket,
    TierObject,
    TierRow,
    TopicId,
    TopicIdPartition,
)
from bucketlog.metadata.checkpoint_bytes import OFFSET, StateReader, offset_rows, text_bytes
from bucketlog.metadata.checkpoint_configs import (
    decode_resource_configs,
    encode_resource_configs,
    has_resource_configs,
)
from bucketlog.metadata.checkpoint_data_keys import (
    decode_data_keys,
    encode_data_keys,
    has_data_keys,
)
from bucketlog.metadata.checkpoint_security import (
    decode_security,
    encode_security,
    has_security,
)
from bucketlog.metadata.checkpoint_shares import decode_shares, encode_shares, has_shares
from bucketlog.metadata.checkpoint_tokens import decode_tokens, encode_tokens, has_tokens
from bucketlog.metadata.checkpoint_transactions import (
    decode_kept,
    decode_transactions,
    encode_kept,
    encode_transactions,
    has_kept_transactions,
    has_transactions,
)
from bucketlog.metadata.fold import LogState, PartitionState, TopicState
from bucketlog.metadata.producers import LogClock, ProducedBatch
from bucketlog.metadata.tier import DroppedObject, Tier

_HEAD = struct.Struct(">IIIIIQQ")
_TOPIC = struct.Struct(">16sII")
_PARTITION = struct.Struct(">qqqqI")
_TIER_ROW = struct.Struct(">qqBQQqI")
_DROPPED = struct.Struct(">QQ16sIqBB")
_TIMES = struct.Struct(">qqIqq")
_PRODUCER = struct.Struct(">IIq")
_PRODUCED = struct.Struct(">IIqhiiqq")
_PRODUCED_2 = struct.Struct(">IIqhiiq")

_TIME_MS_MAX = 2**53
GUESSED_TIMES_MS = 3_600_000
"""The time of a batch from a checkpoint of version 2 may be wrong by this much."""


def encode_state(state: LogState) -> bytes:
    """Encode topics with their partitions and tiers, producers, groups, dropped objects,
    transactions, credentials, ACLs, quotas, data keys, delegation tokens and configs of other
    resources. `state` must have been folded with producers and groups."""
    rows = {topic_id: row for row, topic_id in enumerate(state.topics)}
    offsets = sum(len(committed) for committed in state.groups.values())
    pieces = [
        _HEAD.pack(
            len(state.topics),
            sum(entry.producers.batch_count() for entry in state.partitions.values()),
            len(state.groups),
            offsets,
            len(state.dropped),
            *state.swept_below,
        ),
        _TIMES.pack(state.producers_since_ms, state.times_from_ms, *state.clock),
    ]
    for topic in state.topics.values():
        pieces.append(_TOPIC.pack(topic.topic_id, topic.partitions, len(topic.configs)))
        pieces.append(text_bytes(topic.name))
        pieces += [text_bytes(text) for item in topic.configs.items() for text in item]
        for number in range(topic.partitions):
            pieces += _partition(state.partitions[TopicIdPartition(topic.topic_id, number)])
    pieces += [_produced(rows[key.topic_id], key, state) for key in state.partitions]
    for group, committed in state.groups.items():
        pieces.append(text_bytes(group))
        pieces += offset_rows(committed, rows)
    for ticket, there, contents in state.dropped:
        topic_id, number = there.partition
        pieces.append(
            _DROPPED.pack(*ticket, topic_id, number, there.start, there.manifest, contents)
        )
        pieces.append(text_bytes(there.name))
    version = state_version(state)
    if version >= TRANSACTIONS_VERSION:
        pieces += encode_transactions(state, rows)
    if version >= KEPT_TRANSACTIONS_VERSION:
        pieces += encode_kept(state)
    if version >= SECURITY_VERSION:
        pieces += encode_security(state)
    if version >= DATA_KEYS_VERSION:
        pieces += encode_data_keys(state)
    if version >= TOKENS_VERSION:
        pieces += encode_tokens(state)
    if version >= SHARES_VERSION:
        pieces += encode_shares(state, rows)
    if version >= CONFIGS_VERSION:
        pieces += encode_resource_configs(state)
    return b"".join(pieces)


def state_version(state: LogState) -> int:
    """The version of a checkpoint of `state`."""
    if has_resource_configs(state):
        return CONFIGS_VERSION
    if has_shares(state):
        return SHARES_VERSION
    if has_tokens(state):
        return TOKENS_VERSION
    if has_data_keys(state):
        return DATA_KEYS_VERSION
    if has_security(state):
        return SECURITY_VERSION
    if has_kept_transactions(state):
        return KEPT_TRANSACTIONS_VERSION
    return TRANSACTIONS_VERSION if has_transactions(state) else CHECKPOINT_VERSION


def _produced(topic_row: int, partition: TopicIdPartition, state: LogState) -> bytes:
    """The rows of the partition's producers: `_PRODUCER`, then `PACKED_BATCH`."""
    found = bytearray()
    for producer_id, batch in state.partitions[partition].producers.packed_batches():
        found += _PRODUCER.pack(topic_row, partition.partition, producer_id)
        found += batch
    return bytes(found)


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
        pieces.append(text_bytes(row.name))
    return pieces


def decode_state(
    data: Buffer,
    *,
    version: int = CHECKPOINT_VERSION,
    created_ms: int = 0,
    keep_producers: bool = True,
    keep_groups: bool = True,
) -> LogState:
    """Decode the state. `version` and `created_ms` are those of the checkpoint. Raises
    `InvalidDataError`."""
    reader = StateReader(data)
    state = LogState(keep_producers=keep_producers, keep_groups=keep_groups)
    topics, produced, groups, offsets, dropped, *swept_below = reader.take(_HEAD)
    if version > 2:
        state.producers_since_ms, state.times_from_ms, *clock = reader.take(_TIMES)
        state.clock = LogClock(*clock)
    else:
        created_ms = max(0, min(created_ms, _TIME_MS_MAX))
        state.times_from_ms = created_ms + GUESSED_TIMES_MS
    reader.expect(topics, _TOPIC)
    listed = [_take_topic(reader, state) for _ in range(topics)]

    def partition_at(row: int, number: int) -> TopicIdPartition:
        if row >= len(listed) or number >= listed[row].partitions:
            raise reader.wrong(f"it has no partition {number} of topic row {row}")
        return TopicIdPartition(listed[row].topic_id, number)

    form, time = (_PRODUCED, ()) if version > 2 else (_PRODUCED_2, (created_ms,))
    reader.expect(produced, form)
    for _ in range(produced):
        row, number, producer_id, *batch = reader.take(form)
        partition = partition_at(row, number)
        if keep_producers:
            batch_row = ProducedBatch(*batch, *time)
            state.partitions[partition].producers.note(producer_id, batch_row)
    reader.expect(offsets, OFFSET)
    for _ in range(groups):
        group = reader.text()
        committed = reader.offsets(partition_at)
        if not committed:
            raise reader.wrong("a group has no offsets")
        offsets -= len(committed)
        if keep_groups:
            state.groups[group] = committed
            state.offsets.note_loaded(group, committed)
    if offsets:
        raise reader.wrong("its groups and their offsets do not agree")
    reader.expect(dropped, _DROPPED)
    left = (_take_dropped(reader) for _ in range(dropped))
    state.dropped = sorted(left, key=lambda row: row.ticket)
    state.swept_below = Ticket(*swept_below)
    if version >= TRANSACTIONS_VERSION:
        decode_transactions(reader, state, partition_at, keep_groups=keep_groups)
    if version >= KEPT_TRANSACTIONS_VERSION:
        decode_kept(reader, state)
    if version >= SECURITY_VERSION:
        decode_security(reader, state)
    if version >= DATA_KEYS_VERSION:
        decode_data_keys(reader, state)
    if version >= TOKENS_VERSION:
        decode_tokens(reader, state)
    if version >= SHARES_VERSION:
        decode_shares(reader, state, partition_at, keep_groups=keep_groups)
    if version >= CONFIGS_VERSION:
        decode_resource_configs(reader, state)
    reader.end()
    return state


def _take_topic(reader: StateReader, state: LogState) -> TopicState:
    topic_id, partitions, configs = reader.take(_TOPIC)
    name = reader.text()
    pairs = []
    for _ in range(configs):
        key = reader.text()
        pairs.append((key, reader.text()))
    topic = TopicState(TopicId(topic_id), name, partitions, dict(pairs))
    if topic_id in state.topics or name in state.names:
        raise reader.wrong(f"topic {name!r} occurs twice")
    state.topics[topic.topic_id] = topic
    state.names[name] = topic.topic_id
    reader.expect(partitions, _PARTITION)
    for number in range(partitions):
        state.partitions[TopicIdPartition(topic.topic_id, number)] = _take_partition(reader)
    return topic


def _take_partition(reader: StateReader) -> PartitionState:
    log_start, next_offset, end, cleaned_to, rows = reader.take(_PARTITION)
    reader.expect(rows, _TIER_ROW)
    return PartitionState(
        next_offset,
        log_start,
        tier=Tier([_take_tier_row(reader) for _ in range(rows)], end, cleaned_to),
    )


def _take_tier_row(reader: StateReader) -> TierRow:
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


def _take_dropped(reader: StateReader) -> DroppedObject:
    epoch, number, topic_id, partition, start, manifest, contents = reader.take(_DROPPED)
    there = TierObject(
        TopicIdPartition(TopicId(topic_id), partition), start, reader.text(), bool(manifest)
    )
    return DroppedObject(Ticket(epoch, number), there, bool(contents))
