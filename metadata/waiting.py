"""The log segments that hold batches in no tier yet, as compaction wants them: oldest first."""

from collections import deque
from collections.abc import Iterator, Set
from typing import Self

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.model import SegmentId, WaitingSegment


class WaitingSegments:
    """Waiting segments. Segments of the same partition keep their order. Some of the segments no
    longer hold waiting batches."""

    def __init__(self) -> None:
        self._segments: deque[WaitingSegment] = deque()

    @classmethod
    def of_checkpoint(cls, checkpoint: Checkpoint) -> Self:
        """Return the segments of a checkpoint, in ticket order. The time of creation is unknown,
        but is not after the checkpoint's; the checkpoint's is used."""
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
        """Add the newest segment."""
        self._segments.append(segment)

    def forget_before(self, oldest: Set[SegmentId]) -> None:
        """Forget the segments before the first one in `oldest`: the segments of the first batch of
        each partition that is in no tier."""
        while self._segments and self._segments[0].segment not in oldest:
            self._segments.popleft()

    def __iter__(self) -> Iterator[WaitingSegment]:
        """Return the segments, the oldest first. Do not keep the iterator over an await."""
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)
