"""What a task reads, there and back as bytes."""

import pickle
from random import Random

import pytest

from bucketlog.log_format.model import (
    BatchIndex,
    SegmentId,
    TierRow,
    TopicId,
    TopicIdPartition,
    WriterId,
)
from bucketlog.log_reader.packing import packed, unpacked
from bucketlog.log_reader.plan import Piece, Run, TaskPiece, TierPiece
from bucketlog.spark_jobs.task import Task
from bucketlog.tiered_storage.bucket import Span

PARTITION = TopicIdPartition(TopicId(b"t" * 16), 3)
ROW = TierRow(10, 20, "a-b", False, 1_000, 900, 7)
TIER = TierPiece("orders", PARTITION, ROW, Span(16, 900), 11, 19)


def some_pieces(count: int) -> list[TaskPiece]:
    """Their numbers are as large as their columns allow, or small."""
    chance = Random(count)

    def number(bits: int) -> int:
        return chance.choice((0, 1, 2**bits - 1, chance.getrandbits(bits)))

    def row() -> BatchIndex:
        wide = [number(63), number(63), number(32), number(32), number(32), number(63)]
        return BatchIndex._make(
            (*wide, -1 - number(62), -1 - number(15), number(15), -1 - number(31))
        )

    def run() -> Run:
        rows = tuple(row() for _ in range(chance.randint(1, 4)))
        return Run(chance.choice("ab"), chance.randrange(3), 0, 2**53, rows)

    return [
        Piece(
            SegmentId(WriterId(chance.choice("xy") * 32), number(60)),
            tuple(run() for _ in range(chance.randint(1, 3))),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("tiers_at", [(), (0,), (0, 1, 5), (3, 3, 12)])
@pytest.mark.parametrize("count", [0, 1, 12])
def test_what_comes_back_is_what_was_packed(count: int, tiers_at: tuple[int, ...]) -> None:
    pieces = some_pieces(count)
    for at in tiers_at:
        pieces.insert(at, TIER)
    assert unpacked(packed(pieces)) == tuple(pieces)


def test_a_task_travels_packed() -> None:
    pieces = some_pieces(500)
    task = Task.of(pieces)
    data = pickle.dumps(task)
    assert pickle.loads(data) == task
    assert unpacked(task.packed) == tuple(pieces)
    assert len(data) < len(pickle.dumps(pieces)) * 0.75
