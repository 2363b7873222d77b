"""Starting an epoch: claim, seal, fold, activate (commit protocol, "A new sequencer epoch").

Invariants: the claim is create-only and comes before the writers are listed; every writer of an
earlier epoch is sealed at the end of its chain before its chain is folded; a checkpoint that is
written meanwhile may lie beyond a seal only where its writer is sealed again from there; the
activation names the very server, with a nonce that it has and uses up. A broker that dies anywhere
in here has changed nothing that was acknowledged.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from bucketlog.log_format.checkpoint import TRANSACTIONS_VERSION, Checkpoint
from bucketlog.log_format.errors import BucketlogError, ClusterInUseError, SequencerLostError
from bucketlog.log_format.model import SegmentId, SegmentIndex, WallClock, WriterId
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fact_model import FactKind
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.endpoint import Endpoint, decode_endpoint, encode_endpoint
from bucketlog.metadata.sequencer.requests import Activation, ServerIdentity
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.stateless_broker.epochs.sealing import segment_or_seal
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, Span, listed
from bucketlog.tiered_storage.chains import Chain

logger = logging.getLogger(__name__)

SEALS_IN_FLIGHT = 32
CLAIM_BYTES_MAX = 4096
"""About ten times the size of a claim."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The highest claimed epoch, 0 for none: the incarnation of the broker that claimed it, the
    server for which it was claimed ('' if unknown), and when, by the claimant's clock. `endpoint`
    is the server's address, if a broker has started it."""

    epoch: int
    claimed_by: str
    run_id: str = ""
    master_replid: str = ""
    claimed_ms: int = 0
    endpoint: Endpoint | None = None
    bucket: str = ""
    """The mark of the bucket in which the claim was made (`bucket_mark`)."""

    def is_for(self, identity: ServerIdentity) -> bool:
        return (self.run_id, self.master_replid) == (identity.run_id, identity.master_replid)


class _ClaimContent(BaseModel):
    """The used part of a claim's content. Only the number in the claim's key is binding. The
    content says whom to wait for."""

    incarnation: str = ""
    run_id: str = ""
    master_replid: str = ""
    claimed_ms: Annotated[int, Field(ge=0, lt=2**63)] = 0
    bucket: str = ""
    valkey: Any = None


@dataclass(frozen=True, slots=True)
class SealedLog:
    """The log that was committed before an epoch: everything that `checkpoint` covers, and the
    segments after it, by ticket."""

    checkpoint: Checkpoint | None
    segments: list[SegmentIndex]


def _folded(log: SealedLog) -> LogState:
    """Fold the log. Offsets of groups are folded only if they may be pending in transactions."""
    checkpoint = log.checkpoint
    has_ids = checkpoint is not None and checkpoint.version >= TRANSACTIONS_VERSION
    keep_groups = has_ids or any(
        entry.kind == FactKind.PRODUCER_INITIALISED
        for index in log.segments
        for entry in index.facts
    )
    return fold(log.segments, onto=restored(checkpoint, keep_groups=keep_groups))


class EpochStarter:
    def __init__(
        self,
        *,
        bucket: Bucket,
        committed: CommittedLog,
        sequencer: Sequencer,
        incarnation: str,
        now_ms: WallClock,
        new_id: Callable[[], str],
        endpoint: Callable[[], Endpoint | None] = lambda: None,
        bucket_mark: str = "",
    ) -> None:
        """`endpoint` is where the sequencer's server is reached, if a broker has started it;
        `bucket_mark` distinguishes the bucket from its copies."""
        self._bucket = bucket
        self._committed = committed
        self._sequencer = sequencer
        self._incarnation = incarnation
        self.now_ms = now_ms
        self._new_id = new_id
        self._endpoint = endpoint
        self._bucket_mark = bucket_mark
        self._seals = asyncio.Semaphore(SEALS_IN_FLIGHT)

    async def highest_claim(self) -> Claim:
        epoch = await self.highest_epoch()
        if not epoch:
            return Claim(0, "")
        key = keys.epoch_claim(epoch)
        body = await self._bucket.get(key, Span(0, CLAIM_BYTES_MAX))
        try:
            content = _ClaimContent.model_validate_json(bytes(body.data))
        except ValidationError as error:
            logger.error(
                "%s is not a claim (%s): it is passed over", key, error.errors()[0]["type"]
            )
            return Claim(epoch, "")
        endpoint = None
        if content.valkey is not None:
            endpoint = decode_endpoint(content.valkey)
            if endpoint is None:
                logger.warning("%s names no server that this version can follow", key)
        return Claim(
            epoch,
            content.incarnation,
            content.run_id,
            content.master_replid,
            content.claimed_ms,
            endpoint,
            content.bucket,
        )

    async def start(self, epoch: int) -> SealedLog | None:
        """Claim and activate `epoch`, the next one. Returns the log with which the epoch begins.

        None if another broker has claimed the epoch. Raises `SequencerLostError` if the claim is
        wasted: a higher epoch is active by now, or the server is not the one for which it was
        claimed.
        """
        identity = await self._sequencer.check_server()
        nonce = self._new_id()
        await self._sequencer.add_nonce(nonce)
        if not await self._claim(epoch, identity, nonce):
            return None
        logger.info("epoch %d is claimed", epoch)
        log = await self._sealed_log(epoch)
        state = await asyncio.to_thread(_folded, log)
        await self._sequencer.activate(Activation(epoch, nonce, identity, state))
        logger.info(
            "epoch %d is active: %d segments after %s, %d topics",
            epoch,
            len(log.segments),
            "the checkpoint" if log.checkpoint is not None else "none",
            len(state.topics),
        )
        return log

    async def register_writer(self, epoch: int) -> WriterId:
        """Return a fresh writer of `epoch`. The writer is registered first, and then checked
        against higher claims.

        Raises `ClusterInUseError` if a higher epoch is claimed.
        """
        writer = WriterId(self._new_id())
        created = await self._bucket.create(
            keys.writer_registration(epoch, writer),
            [
                json.dumps(
                    {"registered_ms": self.now_ms(), "incarnation": self._incarnation}
                ).encode()
            ],
        )
        if not created:
            raise BucketlogError(f"writer {writer} is registered already")
        highest = await self.highest_epoch()
        if highest > epoch:
            raise ClusterInUseError(
                f"another broker has claimed epoch {highest} of this cluster",
                remedy="restart this one: it joins the epoch that is active then",
            )
        await self._sequencer.register_writer(epoch, writer)
        return writer

    async def highest_epoch(self) -> int:
        """The highest that is claimed, 0 for none."""
        return max(
            (keys.parse_epoch_claim(info.key) for info in await listed(self._bucket, keys.EPOCHS)),
            default=0,
        )

    async def _claim(self, epoch: int, identity: ServerIdentity, nonce: str) -> bool:
        content: dict[str, object] = {
            "run_id": identity.run_id,
            "master_replid": identity.master_replid,
            "nonce": nonce,
            "incarnation": self._incarnation,
            "claimed_ms": self.now_ms(),
        }
        endpoint = self._endpoint()
        if endpoint is not None:
            content |= {"bucket": self._bucket_mark, "valkey": encode_endpoint(endpoint)}
        return await self._bucket.create(keys.epoch_claim(epoch), [json.dumps(content).encode()])

    async def _sealed_log(self, epoch: int) -> SealedLog:
        """Seal every writer of earlier epochs. Checkpoints are listed again then: chains before a
        newer one may be gone, and a seal among them would not bind."""
        checkpoint = await self._committed.checkpoint()
        while True:
            if checkpoint is not None and checkpoint.ticket.epoch >= epoch:
                raise SequencerLostError(
                    f"epoch {checkpoint.ticket.epoch} is active already, the claim of {epoch} came "
                    "too late"
                )
            recalled = await self._committed.recall(checkpoint)
            tails = recalled.tails.values()
            chains = await asyncio.gather(
                *(self._seal(tail.chain, epoch) for tail in tails if tail.epoch < epoch)
            )
            newer = await self._committed.checkpoint(unless=checkpoint)
            if newer is None or (checkpoint is not None and newer.ticket <= checkpoint.ticket):
                return SealedLog(checkpoint, await self._committed.remembered(recalled, chains))
            checkpoint = newer

    async def _seal(self, chain: Chain, epoch: int) -> Chain:
        """Seal the chain at its next free key, and return the closed chain. The first PUT at a key
        decides it: the seal, or a segment on its way."""
        committed = list(chain.committed)
        end = chain.end
        while not chain.sealed:
            async with self._seals:
                there = await segment_or_seal(
                    self._bucket,
                    SegmentId(chain.writer, end),
                    epoch=epoch,
                    now_ms=self.now_ms(),
                )
            if there is None:
                break
            committed.append(there)
            end += 1
        return Chain(chain.writer, chain.start, tuple(committed), end, True, chain.void)
