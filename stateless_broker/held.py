"""What a broker had taken and not answered when its epoch ended, and what becomes of it.

Invariant (commit protocol, "Acknowledge"): the next epoch's chains alone decide. A segment counts
if its seq is below its chain's final position there; this broker's own PUT proves nothing, since an
earlier key of the chain may have been sealed. What is void comes again, as if it had just come.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from bucketlog.errors import SequencerError, SequencerLostError
from bucketlog.model import WriterId
from metadata.sequencer.requests import ControlStatus
from stateless_broker.batch_outcomes import not_written
from stateless_broker.intake import Intake
from stateless_broker.produce_buffer import Outcome, PendingFact
from stateless_broker.segment_assembly import Assembled, Flush
from tiered_storage import keys
from tiered_storage.bucket import Bucket
from tiered_storage.chains import read_chain


async def final_positions(bucket: Bucket, writers: Iterable[WriterId]) -> dict[WriterId, int]:
    """Where the chains of earlier epochs' writers end. Raises `SequencerLostError` where one is
    not sealed: the epoch that was joined then cannot have begun as it must."""
    ends = {}
    for writer in writers:
        chain = read_chain(writer, [info async for info in bucket.list(keys.chain(writer))])
        if not chain.sealed:
            raise SequencerLostError(f"writer {writer} of an earlier epoch is not sealed")
        ends[writer] = chain.end
    return ends


@dataclass(frozen=True, slots=True)
class Held:
    """`segments` were reserved, and may be in the log; `in_hand` was being reserved, and is not."""

    segments: list[Assembled]
    in_hand: Flush | None

    @property
    def writers(self) -> set[WriterId]:
        return {assembled.index.segment.writer for assembled in self.segments}

    def settle(self, ends: Mapping[WriterId, int], intake: Intake) -> list[PendingFact]:
        """Acknowledge what counts, where it stands; the rest goes to the front of `intake`, in its
        order. The view shows the next epoch already. Returns the facts that are lost although they
        were acknowledged."""
        ordered = sorted(self.segments, key=lambda assembled: assembled.index.ticket)
        void = []
        for assembled in ordered:
            writer, seq = assembled.index.segment
            if seq < ends[writer]:
                acknowledge(assembled)
            else:
                void.append(assembled)
        facts = [fact for assembled in void for fact in assembled.facts]
        batches = [batch.copy() for assembled in void for batch, _ in assembled.batches]
        if self.in_hand is not None:
            facts += self.in_hand.facts
            batches += [batch for _, group in self.in_hand.groups for batch in group]
            intake.request_stamps(name for name, group in self.in_hand.groups if not group)
        for fact in facts:
            if fact.is_of_one_epoch:
                fact.fail(SequencerError("the epoch in which it was to be committed is over"))
        intake.buffer.put_back(batches, [fact for fact in facts if not fact.is_of_one_epoch])
        return [fact for fact in facts if fact.is_of_one_epoch and fact.is_promised]

    def refuse(self, reason: str) -> None:
        """Writing has stopped. What is in hand will never be written; what is further may be in
        the log or not: a client that tries again elsewhere finds out."""
        facts = [fact for assembled in self.segments for fact in assembled.facts]
        if self.in_hand is not None:
            facts += self.in_hand.facts
            for _, group in self.in_hand.groups:
                for batch in group:
                    batch.settle(not_written(reason))
        for assembled in self.segments:
            for batch, _ in assembled.batches:
                batch.settle(Outcome(ErrorCode.request_timed_out, -1, reason))
        for fact in facts:
            fact.fail(SequencerError(reason))


def acknowledge(assembled: Assembled) -> None:
    """The view shows the segment."""
    for batch, base_offset in assembled.batches:
        batch.settle(Outcome(ErrorCode.none, base_offset))
    for fact in assembled.facts:
        fact.settle(ControlStatus.OK)
