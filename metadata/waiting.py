"""The log segments that hold batches in no tier yet, as compaction wants them: oldest first."""

from collections import deque
from collections.abc import Iterator, Set
from typing import Self

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.model import SegmentId, WaitingSegment


class WaitingSegments:
    """In an order in which each comes after those before it of the same partitions. Some that hold
    nothing any more are among them."""

    def __init__(self) -> None:
        self._segments: deque[WaitingSegment] = deque()

    @classmethod
    def of_checkpoint(cls, checkpoint: Checkpoint) -> Self:
        """In ticket order. When they were created is not known: no later than the checkpoint."""
        found = cls()
        sizes: dict[tuple[int, int, int, int], int] = {}
        epochs = [row.epoch for row in checkpoint.writers]
        for part in checkpoint.partitions.values():
            lengths = part.batches.columns[2]
            for length, (at, seq, ticket) in zip(lengths, part.batches.places(), strict=True):
                place = epochs[at], ticket, at, seq
                sizes[place] = sizes.get(place, 0) + length
        for (_, _, at, seq), size in sorted(sizes.items()):
            segment = SegmentId(checkpoint.writers[at].writer, seq)
            found.append(WaitingSegment(segment, size, checkpoint.created_ms))
        return found

    def append(self, segment: WaitingSegment) -> None:
        """The newest."""
        self._segments.append(segment)

    def forget_before(self, oldest: Set[SegmentId]) -> None:
        """`oldest`: where the first batch of each partition is that is in no tier."""
        while self._segments and self._segments[0].segment not in oldest:
            self._segments.popleft()

    def __iter__(self) -> Iterator[WaitingSegment]:
        """Not to be held over an await."""
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)
