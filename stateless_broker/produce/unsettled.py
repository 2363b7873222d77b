"""Unsettled work: batches that a broker had taken and not answered when its epoch ended.

Invariant (commit protocol, "Acknowledge"): the next epoch's chains alone decide. A segment counts
if its seq is below its chain's final position there. This broker's own PUT proves nothing, since an
earlier key of the chain may have been sealed. Void batches are queued again, as if they had just
arrived.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import SequencerError, SequencerLostError
from bucketlog.log_format.model import SegmentId, WriterId
from bucketlog.stateless_broker.produce.commit_steps import AssembledSegment, Flush
from bucketlog.stateless_broker.produce.intake import BatchOutcome, Intake
from bucketlog.stateless_broker.produce.pending_facts import PendingFact
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, listed
from bucketlog.tiered_storage.chains import read_chain
from bucketlog.tiered_storage.floors import highest_floor


async def final_positions(
    bucket: Bucket, first_held: Mapping[WriterId, int], *, epoch: int
) -> dict[WriterId, int | None]:
    """Return where the chains of writers of `epoch`, an earlier epoch, end. Keys before a writer's
    first held segment are not looked at: those segments were visible, and may be deleted by now.
    None if the chain is gone: this broker was away for longer than the safety age.

    A chain that was sealed within `epoch` may be deleted below a floor of `epoch`. Raises
    `SequencerLostError` if another chain is not sealed: the joined epoch then cannot have begun as
    it must.
    """
    ends: dict[WriterId, int | None] = {}
    for writer, first in first_held.items():
        start_after = keys.before(SegmentId(writer, first))
        there = await listed(bucket, keys.chain(writer), start_after=start_after)
        chain = read_chain(writer, there, first)
        ends[writer] = chain.end if chain.sealed else None
    if None in ends.values():
        floor = highest_floor(await listed(bucket, keys.FLOORS))
        if floor is None or floor.epoch < epoch:
            unsealed = [writer for writer, end in ends.items() if end is None]
            raise SequencerLostError(f"writers of epoch {epoch} are not sealed: {unsealed}")
    return ends


@dataclass(frozen=True, slots=True)
class UnsettledWork:
    """Unsettled work. `segments` were reserved, and may be in the log; `in_hand` was being
    reserved, and is not."""

    segments: list[AssembledSegment]
    in_hand: Flush | None

    @property
    def first_seqs(self) -> dict[WriterId, int]:
        """The first held segment's seq, by writer."""
        first: dict[WriterId, int] = {}
        for assembled in self.segments:
            writer, seq = assembled.index.segment
            first[writer] = min(seq, first.get(writer, seq))
        return first

    def settle(self, ends: Mapping[WriterId, int | None], intake: Intake) -> list[PendingFact]:
        """Acknowledge the segments that count, at their offsets. The rest goes to the front of
        `intake`, in its order. The view shows the next epoch already. If an outcome can no longer
        be known, the client gets an error. Returns the facts that are lost although they were
        acknowledged."""
        ordered = sorted(self.segments, key=lambda assembled: assembled.index.ticket)
        void = []
        for assembled in ordered:
            writer, seq = assembled.index.segment
            end = ends[writer]
            if end is None:
                _leave_open(assembled, "its epoch ended too long ago")
            elif seq < end:
                assembled.acknowledge()
            else:
                void.append(assembled)
        facts = [fact for assembled in void for fact in assembled.facts]
        batches = [batch.copy() for assembled in void for batch, _ in assembled.batches]
        if self.in_hand is not None:
            facts += self.in_hand.facts
            batches += [batch for _, group in self.in_hand.groups for batch in group]
        for fact in facts:
            if fact.is_of_one_epoch:
                fact.fail(SequencerError("the epoch in which it was to be committed is over"))
        intake.buffer.put_back(batches, [fact for fact in facts if not fact.is_of_one_epoch])
        return [fact for fact in facts if fact.is_of_one_epoch and fact.is_promised]

    def refuse(self, reason: str) -> None:
        """Answer all clients, because writing has stopped. The work in hand will never be written.
        The segments may be in the log or not: a client that tries again elsewhere finds out."""
        for assembled in self.segments:
            _leave_open(assembled, reason)
        if self.in_hand is not None:
            for _, group in self.in_hand.groups:
                for batch in group:
                    batch.settle(BatchOutcome.not_written(reason))
            for fact in self.in_hand.facts:
                fact.fail(SequencerError(reason))


def _leave_open(assembled: AssembledSegment, reason: str) -> None:
    """Leave a batch open that may be in the log."""
    for batch, _ in assembled.batches:
        batch.settle(BatchOutcome(ErrorCode.request_timed_out, -1, reason))
    for fact in assembled.facts:
        fact.fail(SequencerError(reason))
