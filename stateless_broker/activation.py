"""Starting an epoch: claim, seal, fold, activate (commit protocol, "A new sequencer epoch").

Invariants: the claim is create-only and comes before the writers are listed; every writer of an
earlier epoch is sealed at the end of its chain before its chain is folded; the activation names the
very server, with a nonce that it has and uses up. A broker that dies anywhere in here has changed
nothing that was acknowledged.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass

from bucketlog.errors import BucketlogError, ClusterInUseError, CorruptObjectError
from bucketlog.model import SegmentId, SegmentIndex, WallClock, WriterId
from metadata.fold import fold
from metadata.sequencer.client import Sequencer
from metadata.sequencer.requests import Activation, Identity
from tiered_storage import keys
from tiered_storage.bucket import Bucket, Suffix
from tiered_storage.chains import Chain, read_chains
from tiered_storage.segment import Seal, decode_footer, encode_seal, is_seal

logger = logging.getLogger(__name__)

CLAIM_ATTEMPTS = 16
FOOTER_GUESS_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class StartedEpoch:
    """The epoch that is active now, and the committed segments it begins with, by ticket."""

    epoch: int
    segments: list[SegmentIndex]


class EpochStarter:
    def __init__(
        self,
        *,
        bucket: Bucket,
        sequencer: Sequencer,
        now_ms: WallClock,
        new_id: Callable[[], str],
        footer_reads_in_flight: int,
    ) -> None:
        self._bucket = bucket
        self._sequencer = sequencer
        self._now_ms = now_ms
        self._new_id = new_id
        self._reads = asyncio.Semaphore(footer_reads_in_flight)

    async def start(self) -> StartedEpoch:
        """Raises `SequencerLostError` where another broker was faster or the server changed."""
        identity = await self._sequencer.check_server()
        nonce = self._new_id()
        await self._sequencer.add_nonce(nonce)
        epoch = await self._claim(identity, nonce)
        logger.info("epoch %d is claimed", epoch)
        chains = await self._seal_earlier(epoch)
        segments = await self.read_segments(chains)
        state = fold(segments)
        await self._sequencer.activate(Activation(epoch, nonce, identity, state))
        logger.info(
            "epoch %d is active: %d segments, %d topics", epoch, len(segments), len(state.topics)
        )
        return StartedEpoch(epoch, segments)

    async def register_writer(self, epoch: int) -> WriterId:
        """A fresh writer of `epoch`: registered, and only then checked against higher claims."""
        writer = WriterId(self._new_id())
        created = await self._bucket.create(
            keys.writer_registration(epoch, writer),
            [json.dumps({"registered_ms": self._now_ms()}).encode()],
        )
        if not created:
            raise BucketlogError(f"writer {writer} is registered already")
        highest = await self._highest_claim()
        if highest > epoch:
            raise ClusterInUseError(
                f"another broker has claimed epoch {highest} of this cluster",
                remedy="run one broker on a bucket",
            )
        await self._sequencer.register_writer(epoch, writer)
        return writer

    async def _highest_claim(self) -> int:
        return max(
            [keys.parse_epoch_claim(info.key) async for info in self._bucket.list(keys.EPOCHS)],
            default=0,
        )

    async def _claim(self, identity: Identity, nonce: str) -> int:
        content = json.dumps(
            {
                "run_id": identity.run_id,
                "master_replid": identity.master_replid,
                "nonce": nonce,
                "claimed_ms": self._now_ms(),
            }
        ).encode()
        epoch = await self._highest_claim()
        for _ in range(CLAIM_ATTEMPTS):
            epoch += 1
            key = keys.epoch_claim(epoch)
            if await self._bucket.create(key, [content]):
                return epoch
            if (await self._bucket.get(key)).data == content:  # our own try, answer lost
                return epoch
        raise ClusterInUseError(
            f"{CLAIM_ATTEMPTS} epochs in a row were claimed by others",
            remedy="run one broker on a bucket",
        )

    async def _seal_earlier(self, epoch: int) -> list[Chain]:
        """Seal every writer of earlier epochs; returns their chains."""
        writers = []
        async for info in self._bucket.list(keys.WRITERS):
            registered_in, writer = keys.parse_writer_registration(info.key)
            if registered_in < epoch:
                writers.append(writer)
        found = read_chains([info async for info in self._bucket.list(keys.LOG)])
        return list(
            await asyncio.gather(
                *(
                    self._seal(found.get(writer) or Chain(writer, 0, (), 0, False, ()), epoch)
                    for writer in writers
                )
            )
        )

    async def _seal(self, chain: Chain, epoch: int) -> Chain:
        """Whoever creates the next key of the chain decides it: we, or a PUT on its way."""
        committed = list(chain.committed)
        end = chain.end
        while not chain.sealed:
            segment = SegmentId(chain.writer, end)
            key = keys.segment(segment)
            async with self._reads:
                if await self._bucket.create(
                    key, [encode_seal(Seal(segment, epoch, self._now_ms()))]
                ):
                    break
                info = await self._bucket.head(key)
            if info is None:
                raise CorruptObjectError(key, 0, "the object was refused, and yet is not there")
            if is_seal(info.size_bytes):
                break
            committed.append(info)
            end += 1
        return Chain(chain.writer, chain.start, tuple(committed), end, True, chain.void)

    async def read_segments(self, chains: list[Chain]) -> list[SegmentIndex]:
        """The footers of all committed segments, sorted by ticket."""
        indexes = await asyncio.gather(
            *(
                self._read_footer(info.key, info.size_bytes)
                for chain in chains
                for info in chain.committed
            )
        )
        return sorted(indexes, key=lambda index: index.ticket)

    async def _read_footer(self, key: str, size_bytes: int) -> SegmentIndex:
        length = min(FOOTER_GUESS_BYTES, size_bytes)
        async with self._reads:
            while True:
                body = await self._bucket.get(key, Suffix(length))
                index = decode_footer(key, body.data, body.object_size_bytes)
                if not isinstance(index, int):
                    break
                length = index
        if keys.segment(index.segment) != key:
            raise CorruptObjectError(key, 0, f"its footer says that it is {index.segment}")
        return index
