"""Counts of the transactions that a broker has ended, for its metrics."""

from dataclasses import dataclass, field

from bucketlog.metadata.sequencer.requests import FactStatus
from bucketlog.metadata.sequencer.transaction_requests import EndedBy, WantedEnd

COMMITTED, ABORTED = "committed", "aborted"


def _none() -> dict[tuple[str, EndedBy], int]:
    ends = ((COMMITTED, EndedBy.CLIENT), (ABORTED, EndedBy.CLIENT), (ABORTED, EndedBy.SERVER))
    return dict.fromkeys(ends, 0)


@dataclass(slots=True)
class TransactionCounts:
    """`ended`: counts by outcome, and by who ended the transaction. 'client': its client; 'server':
    a broker after the timeout, or an administrator. Aborts by an init are not counted.
    `oldest_two_phase_ms`: the age of the oldest open transaction with two-phase commit; 0 if there
    is none."""

    ended: dict[tuple[str, EndedBy], int] = field(default_factory=_none)
    oldest_two_phase_ms: int = 0

    def note_end(self, wanted: WantedEnd, status: FactStatus) -> None:
        """Count an end that is in the log. A repeated request counts once."""
        if status is FactStatus.OK:
            self.ended[COMMITTED if wanted.is_commit else ABORTED, wanted.by] += 1
