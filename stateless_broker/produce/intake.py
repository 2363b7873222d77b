"""What handlers hand over to the log.

Invariant: it outlives epochs. What waits here when one ends goes into the next one, in its order,
unless its client gives up meanwhile; nothing that waits here was ever reserved by anybody.
"""

import asyncio
from collections.abc import Callable, Iterable

from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.facts import Fact, encode_fact
from bucketlog.metadata.sequencer.requests import FactStatus, WantedFact
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.produce.batch_outcomes import not_written
from bucketlog.stateless_broker.produce.produce_buffer import (
    PendingBatch,
    PendingFact,
    ProduceBuffer,
)


class Intake:
    """`full` is set when a flush is full before its time."""

    def __init__(self, health: Health, *, flush_bytes: int) -> None:
        self.buffer = ProduceBuffer()
        self.full = asyncio.Event()
        self._health = health
        self._flush_bytes = flush_bytes
        self._dropping = False
        self._on_drop: Callable[[], None] = lambda: None

    def on_drop(self, callback: Callable[[], None]) -> None:
        """Called when something that waited was let go of; it takes an earlier one's place."""
        self._on_drop = callback

    def add(self, batch: PendingBatch) -> None:
        """Take a batch; its call is settled when its outcome is known."""
        if self._health.stopped is not None:
            batch.settle(not_written(self._health.stopped))
            return
        self.buffer.add(batch)
        if self.buffer.waiting_bytes >= self._flush_bytes:
            self.full.set()

    def given_up(self) -> None:
        """A request has timed out: what of it was not taken yet is dropped, soon, in one pass for
        all that time out together."""
        if not self._dropping:
            self._dropping = True
            asyncio.get_running_loop().call_soon(self._drop_answered)

    def _drop_answered(self) -> None:
        self._dropping = False
        self.buffer.drop_answered()
        self._on_drop()

    async def commit_fact(
        self, fact: Fact, wanted: WantedFact, *, when_reserved: bool = False
    ) -> FactStatus:
        """Bring a fact into the log; returns when it is visible here, or refused. Facts are
        reserved in the order of the calls; one that is cancelled may get into the log still.

        `when_reserved` returns as soon as the sequencer has accepted it: it goes on into the log,
        but is lost with the sequencer's state and this broker. Raises `SequencerError` where
        writing is stopped, or where a fact that is of one epoch alone was in it no more in time.
        """
        if self._health.stopped is not None:
            raise SequencerError(self._health.stopped)
        future: asyncio.Future[FactStatus] = asyncio.get_running_loop().create_future()
        self.buffer.add_fact(PendingFact(encode_fact(fact), wanted, future, when_reserved))
        try:
            return await future
        except asyncio.CancelledError:
            self.given_up()
            raise

    def request_stamps(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Have the next segment carry fresh high watermarks of `partitions`: readers of the bucket
        alone wait for them behind a void reservation."""
        wanted = set(partitions)
        if wanted and self._health.stopped is None:
            self.buffer.add_stamps(wanted)

    def end_epoch(self, reason: str) -> None:
        """Facts of that epoch alone are never reserved in another one."""
        for fact in self.buffer.take_facts_of_one_epoch():
            fact.fail(SequencerError(reason))
        self._on_drop()

    def refuse_all(self, reason: str) -> None:
        """Writing has stopped: what waits will never be written."""
        for fact in self.buffer.drain(lambda batch: batch.settle(not_written(reason))):
            fact.fail(SequencerError(reason))
        self._on_drop()
