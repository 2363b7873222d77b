"""Signs of a claimed epoch in the bucket: whether the epoch is active, and whether it works.

Invariant: everything comes from the bucket, and nothing from any Redis. So a broker can judge an
epoch whose Redis it does not reach.
"""

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import ObjectNotFoundError
from bucketlog.log_format.model import WriterId
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, ObjectInfo, Span, listed
from bucketlog.tiered_storage.tails import Tail

REGISTRATION_BYTES_MAX = 4096
REGISTRATIONS_MAX = 256
"""Limit of the registrations that are read of an epoch, newest first: more than brokers exist."""
READS_IN_FLIGHT = 8


class EpochSigns(NamedTuple):
    """The result of a look at the bucket. `live` has the epoch's writers with unsealed chains, and
    the end of each chain. `incarnations` has the known brokers of the epoch's writers, sealed or
    not. `active_before` is the newest earlier epoch that was active, 0 for none. `sealed_before`
    counts the sealed chains of earlier epochs. `newest_ms` is the store's time of the newest
    registration or segment."""

    is_active: bool
    live: Mapping[WriterId, int]
    incarnations: Mapping[WriterId, str]
    active_before: int
    sealed_before: int
    newest_ms: int

    def brokers(self) -> set[str]:
        """The incarnations with a live writer. The writer's id replaces an unknown incarnation."""
        return {self.incarnations.get(writer) or writer for writer in self.live}

    def shows_work_since(self, earlier: "EpochSigns", *, own: str) -> bool:
        """Return whether brokers other than the one with incarnation `own` have worked since the
        earlier look. They wrote or registered in the active epoch, or made progress to its
        activation."""
        if self.is_active != earlier.is_active:
            return True
        if not self.is_active:
            return self.sealed_before > earlier.sealed_before
        return any(
            end > earlier.live.get(writer, -1)
            for writer, end in self.live.items()
            if self.incarnations.get(writer) != own
        )


class _Registration(BaseModel):
    incarnation: str = ""


class EpochSignReader:
    """Reads each writer's registration once, and a checkpoint only if there is a new one."""

    def __init__(self, bucket: Bucket, committed: CommittedLog) -> None:
        self._bucket = bucket
        self._committed = committed
        self._checkpoint: Checkpoint | None = None
        self._incarnations: dict[WriterId, str] = {}
        self._reads = asyncio.Semaphore(READS_IN_FLIGHT)

    async def look(self, epoch: int) -> EpochSigns:
        """The signs of `epoch`, which is claimed. Raises `InvalidDataError`, `CorruptObjectError`,
        `StaleCheckpointError` and the other errors of the bucket."""
        registrations = await listed(self._bucket, f"{keys.WRITERS}{keys.number(epoch)}/")
        registered = {keys.parse_writer_registration(info.key)[1]: info for info in registrations}
        self._checkpoint = checkpoint = await self._committed.checkpoint(unless=self._checkpoint)
        tails = (await self._committed.recall(checkpoint)).tails
        live = {
            writer: tail.chain.end
            for writer, tail in tails.items()
            if tail.epoch == epoch and not tail.chain.sealed
        }
        newest = sorted(registered, key=lambda writer: registered[writer].modified_ms)
        newest = newest[-REGISTRATIONS_MAX:]
        await asyncio.gather(*(self._learn(writer, registered[writer]) for writer in newest))
        self._incarnations = {writer: self._incarnations[writer] for writer in newest}
        covered = checkpoint.ticket.epoch if checkpoint is not None else 0
        epochs = {covered, *(tail.epoch for tail in tails.values())}
        return EpochSigns(
            is_active=bool(registered) or max(epochs) >= epoch,
            live=live,
            incarnations=self._incarnations,
            active_before=max((one for one in epochs if one < epoch), default=0),
            sealed_before=sum(tail.epoch < epoch and tail.chain.sealed for tail in tails.values()),
            newest_ms=_newest_ms(registrations, tails),
        )

    async def _learn(self, writer: WriterId, info: ObjectInfo) -> None:
        if writer in self._incarnations:
            return
        async with self._reads:
            try:
                body = await self._bucket.get(info.key, Span(0, REGISTRATION_BYTES_MAX))
                found = _Registration.model_validate_json(bytes(body.data))
            except (ObjectNotFoundError, ValidationError):
                found = _Registration()  # counts as an unknown broker
        self._incarnations[writer] = found.incarnation


def _newest_ms(registrations: list[ObjectInfo], tails: Mapping[WriterId, Tail]) -> int:
    written = [info.modified_ms for info in registrations]
    written += [
        tail.chain.committed[-1].modified_ms for tail in tails.values() if tail.chain.committed
    ]
    return max(written, default=0)
