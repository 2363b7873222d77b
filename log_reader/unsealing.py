"""Encrypted batches for readers without a broker: what is read is opened before it is decoded.

Invariant: all checks of stored bytes come first (footer rows, CRCs), so that damage is reported as
damage, and a missing key as a missing key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bucketlog.log_format.batch import SEALED, read_header
from bucketlog.log_format.encryption_errors import BrokenSealError
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import BatchIndex, Buffer, TopicIdPartition
from bucketlog.log_reader.plan import Run
from bucketlog.metadata.fold import LogState
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from bucketlog.tiered_storage.encryption.reading_keys import partition_seals
from bucketlog.tiered_storage.log_cut import ReadablePartition


def with_data_keys(
    parts: Mapping[TopicIdPartition, ReadablePartition], state: LogState
) -> Mapping[TopicIdPartition, ReadablePartition]:
    """`parts` with the data keys of encrypted topics."""
    if not state.data_keys.by_topic:
        return parts
    keys = {topic: tuple(of.values()) for topic, of in state.data_keys.by_topic.items()}
    return {
        partition: replace(part, data_keys=keys.get(partition.topic_id, ()))
        for partition, part in parts.items()
    }


def opened_runs(
    key: str, data: Buffer, position: int, runs: Sequence[Run], access: KeyAccess
) -> tuple[Buffer, int, Sequence[Run]]:
    """`data` of the object `key` from byte `position` on, and its runs. If batches are encrypted:
    the same batches in the clear, from byte 0 on. Raises `KeyRefusedError`, `KeyUnavailableError`,
    and `CorruptObjectError` for a batch that was changed or moved."""
    if not any(row.attributes & SEALED for run in runs for row in run.rows):
        return data, position, runs
    view, plain, opened = memoryview(data), bytearray(), []
    for run in runs:
        seals = partition_seals(access, run.topic, run.partition, run.data_keys)
        rows: list[BatchIndex] = []
        for row in run.rows:
            at, length = len(plain), row.length
            stored = view[row.position - position : row.position - position + length]
            if row.attributes & SEALED:
                header = read_header(stored)
                if seals is None:
                    raise CorruptObjectError(
                        key, row.position, f"topic {run.topic!r} has no data keys"
                    )
                try:
                    batch = seals.open(stored, header)
                except BrokenSealError as error:
                    raise CorruptObjectError(key, row.position, error.message) from error
                plain += batch.head
                plain += batch.payload
                length = len(batch.head) + len(batch.payload)
            else:
                plain += stored
            rows.append(
                row._replace(position=at, length=length, attributes=row.attributes & ~SEALED)
            )
        opened.append(run._replace(rows=tuple(rows)))
    return plain, 0, opened
