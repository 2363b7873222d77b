"""A segment's way into the bucket and into sight: the PUT and the publication.

Invariant: a PUT is retried with the same bytes under the same key; a refusal is settled by
comparing, since it may be our own first try; a publication is repeated until it is answered, and
comes after a look at the claims.
"""

import asyncio
from typing import NoReturn

from bucketlog.log_format.errors import SequencerLostError
from bucketlog.log_format.model import Buffer
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.requests import PublishStatus
from bucketlog.stateless_broker.epochs.claim_watch import ClaimWatch
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.stateless_broker.produce.segment_assembly import AssembledSegment
from bucketlog.stateless_broker.produce.sequencer_retry import SequencerRetry
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket
from bucketlog.tiered_storage.segment import body_crc32c, decode_seal, is_seal


class WriterLostError(Exception):
    """This writer cannot go on: its chain is sealed, or its PUT does not come to an end."""


class SegmentWriter:
    def __init__(
        self,
        *,
        epoch: int,
        bucket: Bucket,
        sequencer: Sequencer,
        claims: ClaimWatch,
        until_answered: SequencerRetry,
        put_give_up_ms: int,
    ) -> None:
        self._epoch = epoch
        self._bucket = bucket
        self._sequencer = sequencer
        self._claims = claims
        self._until_answered = until_answered
        self._put_give_up_ms = put_give_up_ms

    async def write(self, assembled: AssembledSegment) -> None:
        """Returns when the object is in the bucket. Raises `WriterLostError`, `SequencerError`, and
        `CorruptObjectError`."""
        key = keys.segment(assembled.index.segment)
        crc32c = body_crc32c(assembled.parts)
        try:
            async with asyncio.timeout(self._put_give_up_ms / 1000):
                created = await self._until_answered(
                    lambda: self._bucket.create(key, assembled.parts, crc32c=crc32c),
                    BrokerPart.BUCKET,
                )
                if created:
                    return
                body = await self._until_answered(lambda: self._bucket.get(key), BrokerPart.BUCKET)
        except TimeoutError:
            raise WriterLostError(
                f"the PUT of {key} did not end in {self._put_give_up_ms} ms"
            ) from None
        if body.data != b"".join(assembled.parts):
            self._refused(key, body.data)

    def _refused(self, key: str, there: Buffer) -> NoReturn:
        """A seal of this epoch ends the writer, anything else that nobody knows of the epoch."""
        if not is_seal(len(there)):
            raise SequencerLostError(f"an unknown object stands at {key}")
        sealed_by = decode_seal(key, there).sealed_by_epoch
        if sealed_by > self._epoch:
            raise SequencerLostError(f"epoch {sealed_by} has sealed this broker's writer at {key}")
        raise WriterLostError(f"another broker sealed it at {key}")

    async def publish(self, assembled: AssembledSegment) -> None:
        """Raises `WriterLostError`, `SequencerError`."""
        segment = assembled.index.segment
        await self._until_answered(self._claims.check, BrokerPart.BUCKET)
        answer = await self._until_answered(
            lambda: self._sequencer.publish(
                self._epoch,
                segment,
                footer=assembled.footer,
                object_size_bytes=sum(len(part) for part in assembled.parts),
            ),
            BrokerPart.REDIS,
        )
        if answer.status is PublishStatus.VOID:
            raise WriterLostError(f"segment {segment.seq} was voided")
