"""The chain that this broker writes now: one writer, its segments in flight, how it came to end.

Invariant: a chain that is lost stays lost; its successor begins only when the bucket has decided
which of its segments count.
"""

import asyncio
from dataclasses import dataclass, field

from bucketlog.log_format.model import SegmentId, WriterId


@dataclass(slots=True)
class OwnChain:
    writer: WriterId
    next_seq: int = 0
    first_unpublished: int = 0
    published: asyncio.Future[None] | None = None
    """Of the segment begun last: set when it needs no more work, whatever came of it."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    lost: str | None = None
    """Why the writer cannot go on: sealed by another broker, or given up here."""

    def next_segment(self) -> SegmentId:
        return SegmentId(self.writer, self.next_seq)

    def begin(self) -> tuple[asyncio.Future[None] | None, asyncio.Future[None]]:
        """A segment is reserved: the future of the one before it, and its own."""
        before = self.published
        self.published = asyncio.get_running_loop().create_future()
        self.next_seq += 1
        return before, self.published

    async def abandon(self) -> None:
        """End all that is in flight."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
