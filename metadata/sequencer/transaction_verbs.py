"""The sequencer's verbs for transactional ids, without entries of the log, which `reserve` takes.

Invariant: nothing that these verbs answer or change is in the log. An older sequencer's answers may
be wrong. So before a broker reports to a client that it is fenced, or that nothing is open, it
checks that no later epoch is claimed.
"""

from collections.abc import Sequence

import ormsgpack

from bucketlog.metadata.sequencer.redis_errors import raise_lost
from bucketlog.metadata.sequencer.redis_server import ScriptRunner
from bucketlog.metadata.sequencer.requests import FactStatus
from bucketlog.metadata.sequencer.scripts import SequencerVerb
from bucketlog.metadata.sequencer.transaction_requests import (
    USUAL_LIMITS,
    BoundEnd,
    OverdueTransaction,
    ProducerPair,
    TransactionAges,
    TransactionPart,
    packed_parts,
)

STATUSES = frozenset(
    {
        FactStatus.OK,
        FactStatus.DONE,
        FactStatus.WAIT,
        FactStatus.UNKNOWN_TRANSACTIONAL_ID,
        FactStatus.FENCED,
        FactStatus.ABORTABLE,
        FactStatus.INVALID_STATE,
        FactStatus.PREPARED,
        FactStatus.TOO_MANY,
    }
)


class TransactionVerbs(ScriptRunner):
    transaction_limits = USUAL_LIMITS

    async def _clock_ms(self) -> int:
        raise NotImplementedError

    async def add_to_transaction(
        self,
        epoch: int,
        transactional_id: str,
        pair: ProducerPair,
        *,
        parts: Sequence[TransactionPart] = (),
        groups: Sequence[str] = (),
        verify_only: bool = False,
    ) -> FactStatus:
        """Add partitions and groups to the pair's transaction, all or none; may be repeated. With
        `verify_only`: whether all are in it (OK or INVALID_STATE)."""
        limits = self.transaction_limits
        request = {
            "id": transactional_id,
            "producer": str(pair.producer_id),
            "producer_epoch": pair.epoch,
            "parts": packed_parts(parts),
            "groups": list(groups),
            "verify_only": verify_only,
            "limits": limits._asdict(),
        }
        now_ms = await self._clock_ms()
        status, *rest = await self._run(
            SequencerVerb.ADD_TO_TRANSACTION, epoch, now_ms, ormsgpack.packb(request)
        )
        return self._status(status, rest)

    async def bind_end(
        self, epoch: int, transactional_id: str, pair: ProducerPair, *, is_commit: bool
    ) -> BoundEnd | FactStatus:
        """Return the transaction that a version 1 EndTxn is for. Otherwise, return its final answer
        (DONE: the transaction has ended like this already), or WAIT: the client should ask
        again."""
        status, *rest = await self._run(
            SequencerVerb.BIND_END,
            epoch,
            transactional_id,
            str(pair.producer_id),
            pair.epoch,
            int(is_commit),
        )
        return BoundEnd(rest[0]) if status == "bound" else self._status(status, rest)

    async def overdue_transactions(self, epoch: int, *, count: int) -> TransactionAges:
        """Return at most `count` transactions whose timeout has passed, and the age of the oldest
        transaction with two-phase commit. Raises `SequencerError`."""
        now_ms = await self._clock_ms()
        status, *rest = await self._run(SequencerVerb.OVERDUE_TRANSACTIONS, epoch, now_ms, count)
        if status != "ok":
            raise_lost(status, rest)
        rows, two_phase_since_ms = rest
        overdue = [
            OverdueTransaction(each, ProducerPair(int(producer), of), version, serial)
            for each, producer, of, version, serial in rows
        ]
        age_ms = now_ms - int(two_phase_since_ms) if two_phase_since_ms >= 0 else 0
        return TransactionAges(overdue, max(0, age_ms))

    async def idle_transactional_ids(
        self, epoch: int, cursor: str, *, count: int, before_ms: int
    ) -> tuple[str, list[str]]:
        """Check about `count` ids. Returns the next cursor ("0" at first, and once all are
        checked), and the ids that have not changed since `before_ms`."""
        status, *rest = await self._run(
            SequencerVerb.IDLE_TRANSACTIONAL_IDS, epoch, cursor, count, before_ms
        )
        if status != "ok":
            raise_lost(status, rest)
        next_cursor, idle = rest
        return next_cursor, idle

    def _status(self, status: str, rest: Sequence[object]) -> FactStatus:
        if status not in STATUSES:
            raise_lost(status, rest)
        return FactStatus(status)
