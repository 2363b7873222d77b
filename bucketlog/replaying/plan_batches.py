"""The records of a plan as Arrow batches, read ahead and decoded in several threads.

Invariant: memory is bounded: a number of chunks that were read, and the decoded bytes that wait for
the caller.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING

from bucketlog.replaying.streaming import each_made, in_order

if TYPE_CHECKING:
    import pyarrow as pa

    from bucketlog.log_reader.chunks import Chunk
    from bucketlog.log_reader.replay_plan import ReplayPlan

CHUNKS_AHEAD_PER_THREAD = 4
"""Chunks of the log that are read, and decoded as far as threads and room allow, before the caller
asks for their rows."""
ROOM_BYTES = 16 * 1024 * 1024
"""Decoded bytes of a chunk that wait for the caller, but for one batch that is larger."""


def read_plan(
    plan: "ReplayPlan",
    columns: Sequence[str],
    converted: "Callable[[pa.RecordBatch], pa.RecordBatch] | None",
    *,
    threads: int,
) -> "Generator[pa.RecordBatch, None, None]":
    """The columns of the log, each batch as `converted` makes it, in the plan's order. Closing the
    generator ends the threads. Raises `CorruptObjectError`, `UnreadableBatchError`, the bucket's
    errors, and those of `converted`."""
    from bucketlog.log_reader.chunks import chunks, decoded_chunk
    from bucketlog.log_reader.decoder_choice import PROCESS
    from bucketlog.log_reader.fetch import checked_batches

    PROCESS.expect(plan.records or 0)

    def decode(chunk: "Chunk") -> "Generator[pa.RecordBatch, None, None]":
        found = decoded_chunk(chunk, columns, plan.options)
        return found if converted is None else each_made(converted, found)

    with closing(plan.open_source()) as bucket:
        pieces = chain.from_iterable(plan.tasks)
        reads = checked_batches(bucket, pieces, encryption=plan.options.encryption)
        with (
            closing(chunks(reads)) as stored,
            closing(
                in_order(
                    stored,
                    decode,
                    lambda batch: int(batch.nbytes),
                    threads=threads,
                    tasks_ahead=CHUNKS_AHEAD_PER_THREAD * threads,
                    room_bytes=ROOM_BYTES,
                )
            ) as batches,
        ):
            yield from batches
