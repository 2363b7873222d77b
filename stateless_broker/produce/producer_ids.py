"""Producer ids that were never used, from the sequencer, a block at a time."""

import asyncio

from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.stateless_broker.epochs.end import EpochEnd

PRODUCER_IDS_BLOCK = 100


class ProducerIds:
    """The producer ids of one epoch."""

    def __init__(self, sequencer: Sequencer, end: EpochEnd) -> None:
        self._sequencer = sequencer
        self._end = end
        self._ids = iter(range(0))
        self._asking = asyncio.Lock()

    async def next(self) -> int:
        """Return a new producer id. Raises `SequencerError`."""
        self._end.check()
        async with self._asking:  # many producers that start at once share a block
            for producer_id in self._ids:
                return producer_id
            first = await self._sequencer.producer_ids(self._end.epoch, PRODUCER_IDS_BLOCK)
            self._ids = iter(range(first, first + PRODUCER_IDS_BLOCK))
            return next(self._ids)
