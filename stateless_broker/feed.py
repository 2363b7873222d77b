"""Feeding the view: what became visible, in the sequencer's order, and who waits for it.

Invariant: the view advances by the stream alone, without a gap; acknowledgements and long polls
wait on the view, so that a client that was told of a record can read it here.
"""

import asyncio
import logging
from collections.abc import Iterable

from bucketlog.errors import SequencerUnavailableError
from bucketlog.model import SegmentIndex, TopicPartition
from metadata.sequencer.client import Sequencer
from metadata.sequencer.requests import VisibleSegment
from metadata.view import View
from stateless_broker.commit import Committer
from stateless_broker.health import Health
from tiered_storage import keys
from tiered_storage.segment import decode_footer

logger = logging.getLogger(__name__)

BLOCK_MS = 1000
PAUSE_S = 0.2


class Watchers:
    """Who waits for which partitions to grow. One event serves many partitions."""

    def __init__(self) -> None:
        self._by_partition: dict[TopicPartition, set[asyncio.Event]] = {}

    def add(self, partitions: Iterable[TopicPartition], event: asyncio.Event) -> None:
        for partition in partitions:
            self._by_partition.setdefault(partition, set()).add(event)

    def remove(self, partitions: Iterable[TopicPartition], event: asyncio.Event) -> None:
        for partition in partitions:
            events = self._by_partition.get(partition)
            if events is not None:
                events.discard(event)
                if not events:
                    del self._by_partition[partition]

    def notify(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            for event in self._by_partition.get(partition, ()):
                event.set()


class ViewFeed:
    def __init__(
        self,
        *,
        epoch: int,
        view: View,
        sequencer: Sequencer,
        committer: Committer,
        health: Health,
        watchers: Watchers,
    ) -> None:
        self._epoch = epoch
        self._view = view
        self._sequencer = sequencer
        self._committer = committer
        self._health = health
        self._watchers = watchers
        self._last = 0

    async def run(self) -> None:
        while True:
            try:
                entries = await self._sequencer.read_visible(
                    self._epoch, self._last, block_ms=BLOCK_MS
                )
            except SequencerUnavailableError as error:
                self._health.degrade("stream", str(error))
                await asyncio.sleep(PAUSE_S)
                continue
            self._health.recover("stream")
            for entry in entries:
                if not self._apply(entry):
                    return

    def _apply(self, entry: VisibleSegment) -> bool:
        """False where the stream is not this epoch's next entry: the view stays as it is."""
        if entry.epoch != self._epoch or entry.number != self._last + 1:
            self._health.stop_writing(
                f"the stream of visible segments jumps from {self._epoch}-{self._last} to "
                f"{entry.epoch}-{entry.number}: restart the broker, it reads the bucket anew"
            )
            return False
        own = self._committer.shown(entry.segment)
        index = own.index if own is not None else _decode(entry)
        change = self._view.apply(index)
        self._last = entry.number
        self._committer.became_visible(entry.segment)
        self._watchers.notify(change.partitions)
        return True


def _decode(entry: VisibleSegment) -> SegmentIndex:
    """The index of another broker's segment. Its footer came without the object, so the object's
    size is what the last batch and the footer make."""
    key = keys.segment(entry.segment)
    index = decode_footer(key, entry.footer, entry.object_size_bytes)
    if isinstance(index, int):
        raise ValueError(f"the stream's footer of {key} is cut short")
    return index
