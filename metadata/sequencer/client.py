"""The typed client of the sequencer.

Invariants: an answer that says that state was lost, or a ticket that is not higher than the last
one seen in this epoch, raises `SequencerLostError` and is never worked around; a connection that
breaks raises `SequencerUnavailableError`, after which the same call may be made again.
"""

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any, cast

import ormsgpack
from redis.asyncio import Redis

from bucketlog.log_format.errors import (
    SequencerError,
    SequencerLostError,
)
from bucketlog.log_format.model import SegmentId, Ticket, WallClock, WriterId
from bucketlog.metadata.sequencer.group_verbs import GroupVerbs
from bucketlog.metadata.sequencer.live_brokers import (
    BrokerAddress,
    LiveBrokers,
    NodeIdConflict,
    live_broker,
)
from bucketlog.metadata.sequencer.producer_rows import TOO_MANY_PRODUCERS, ProducerRows
from bucketlog.metadata.sequencer.redis_errors import LOST_REMEDY, raise_lost
from bucketlog.metadata.sequencer.redis_keys import STAGED
from bucketlog.metadata.sequencer.redis_server import ServerClock
from bucketlog.metadata.sequencer.requests import (
    Activation,
    BatchAnswer,
    BatchStatus,
    FactStatus,
    FenceResult,
    FenceStatus,
    OverdueReason,
    OverdueWriter,
    Position,
    PublishResult,
    PublishStatus,
    Reservation,
    VisibleSegment,
    WantedFact,
    WantedPartition,
    pack_request,
    producer_id,
)
from bucketlog.metadata.sequencer.scripts import SequencerVerb
from bucketlog.metadata.sequencer.staging import staged_deadlines, staged_records
from bucketlog.metadata.sequencer.transaction_listing import TransactionListing
from bucketlog.metadata.sequencer.transaction_requests import (
    USUAL_LIMITS,
    TransactionChange,
    TransactionLimits,
    read_change,
)
from bucketlog.metadata.sequencer.transaction_verbs import TransactionVerbs

STAGE_CHUNK = 2000


class Sequencer(GroupVerbs, TransactionVerbs, TransactionListing):
    """The sequencer of one shard, on a Redis that may be replaced by another one (`use`).

    `stream_segments_max` bounds the entries of the stream, and `stream_bytes_max` the bytes of
    their footers (the newest entry always stays).
    `producers_max` bounds the rows of producers, one for each producer and partition, and
    `transaction_limits` what transactions may have.

    Scripts get the time of Redis' own clock as an argument; `now_ms` replaces that clock in tests.
    """

    def __init__(
        self,
        redis: Redis | None,
        *,
        cluster_id: str,
        shard: int = 0,
        stream_segments_max: int = 5000,
        stream_bytes_max: int = 128 << 20,
        producers_max: int = 1_000_000,
        transaction_limits: TransactionLimits = USUAL_LIMITS,
        now_ms: WallClock | None = None,
    ) -> None:
        super().__init__(redis, cluster_id=cluster_id, shard=shard)
        self._stream_limits = stream_segments_max, stream_bytes_max
        self.producer_rows = ProducerRows(producers_max)
        self.transaction_limits = transaction_limits
        self._now_ms = now_ms
        self._server_clock = ServerClock(lambda: self._guard(self._redis.time()))
        self._last_ticket: Ticket | None = None
        self._asked: dict[WriterId, tuple[str, Ticket | None]] = {}
        """For each writer, its last request to reserve, and the last ticket known when it was
        made."""

    def use(self, redis: Redis) -> None:
        super().use(redis)
        self._server_clock.forget()

    async def _asked_ms(self) -> int:
        """The time, as it is at the server now: before ages are compared, or begin."""
        return await self._server_clock.asked_ms() if self._now_ms is None else self._now_ms()

    async def _clock_ms(self) -> int:
        return await self._server_clock.now_ms() if self._now_ms is None else self._now_ms()

    async def heartbeat(
        self,
        incarnation: str,
        *,
        node_id: int | None,
        address: BrokerAddress,
        writer: WriterId | None,
        session_timeout_ms: int,
        role_timeout_ms: int,
        serves: bool,
        has_withdrawn: bool = False,
        gives_up_writer: bool = False,
        lifeline_grace_ms: int = 0,
    ) -> LiveBrokers | NodeIdConflict:
        """Join or stay, and report that `writer` lives, or that others should close its chain
        (`gives_up_writer`). `has_withdrawn`: the broker does not serve, but still answers clients.
        Without a node id, a new broker gets the lowest free node id, and a known broker keeps its
        node id. Other brokers whose lifeline is missing for `lifeline_grace_ms` are dead (0:
        never). Works while no epoch is active."""
        now_ms = await self._asked_ms()
        status, *rest = await self._run(
            SequencerVerb.HEARTBEAT,
            "" if node_id is None else node_id,
            incarnation,
            now_ms,
            ormsgpack.packb((address.host, address.port, address.zone)),
            writer or "",
            session_timeout_ms,
            2 if has_withdrawn else int(serves),
            role_timeout_ms,
            int(gives_up_writer),
            lifeline_grace_ms,
            ormsgpack.packb([tuple(each) for each in address.listeners]),
        )
        if status == "taken":
            return NodeIdConflict(*rest)
        own, members, now_ms, has_lifeline, look_again_ms, was_known = rest
        return LiveBrokers(
            own,
            tuple(live_broker(*row) for row in members),
            now_ms,
            has_lifeline,
            look_again_ms if look_again_ms >= 0 else None,
            was_known,
        )

    async def leave(self, node_id: int, incarnation: str) -> None:
        """Forget the broker: nobody has to wait for it from now on."""
        await self._run(SequencerVerb.LEAVE, node_id, incarnation)

    async def check_state(self, epoch: int) -> None:
        """Check the epoch's state. Raises `SequencerLostError` if it is not there any more."""
        status, *rest = await self._run(SequencerVerb.CHECK_STATE, epoch)
        if status != "ok":
            raise_lost(status, rest)

    async def active_epoch(self) -> int | None:
        """The epoch whose state is whole on this very server."""
        status, *rest = await self._run(SequencerVerb.ACTIVE_EPOCH)
        return int(rest[0]) if status == "ok" else None

    async def position(self, epoch: int) -> Position:
        """Return the position of the epoch at one moment, for a broker that joins."""
        status, *rest = await self._run(SequencerVerb.POSITION, epoch)
        if status != "ok":
            raise_lost(status, rest)
        visible, next_ticket, open_tickets = rest
        return Position(visible, next_ticket, frozenset(open_tickets))

    async def visible_number(self, epoch: int) -> int:
        """The number of the last visible segment of the stream."""
        status, *rest = await self._run(SequencerVerb.VISIBLE_NUMBER, epoch)
        if status != "ok":
            raise_lost(status, rest)
        return int(rest[0])

    async def add_nonce(self, nonce: str) -> None:
        key = self._prefix + "nonces"
        try:
            await self._guard(self._redis.sadd(key, nonce))
        except SequencerLostError:  # it is none of ours: others' nonces are gone already
            await self._guard(self._redis.unlink(key))
            raise

    async def activate(self, activation: Activation) -> None:
        """Stage the folded state, then make it the sequencer's. Raises `SequencerLostError` if it
        is refused: the epoch is then wasted, and a higher one must be claimed."""
        counts = []
        staged = [f"{self._prefix}staged:{activation.nonce}:{name}" for name in STAGED]
        now_ms = await self._asked_ms()
        for key, records in zip(staged, staged_records(activation.state, now_ms), strict=False):
            counts.append(len(records))
            items = list(records.items())
            for start in range(0, len(items), STAGE_CHUNK):
                chunk = [part for item in items[start : start + STAGE_CHUNK] for part in item]
                await self._guard(self._redis.hset(key, items=chunk))
        deadlines = staged_deadlines(activation.state, now_ms)
        counts.append(len(deadlines))
        if deadlines:
            await self._guard(self._redis.zadd(staged[-1], deadlines))
        identity = activation.identity
        status, *rest = await self._run(
            SequencerVerb.ACTIVATE,
            activation.epoch,
            activation.nonce,
            identity.run_id,
            identity.master_replid,
            *counts,
            extra=staged,
        )
        if status != "ok":
            with suppress(SequencerError):
                await self._guard(self._redis.unlink(*staged))
            raise SequencerLostError(f"activation refused: {rest[0]}", remedy=LOST_REMEDY)
        self._last_ticket = None

    async def register_writer(self, epoch: int, writer: WriterId) -> None:
        status, *rest = await self._run(
            SequencerVerb.REGISTER_WRITER, epoch, writer, await self._asked_ms()
        )
        if status != "ok":
            raise_lost(status, rest)

    async def producer_ids(self, epoch: int, count: int) -> int:
        """The first of `count` producer ids, unique for ever."""
        status, *rest = await self._run(SequencerVerb.PRODUCER_IDS, epoch, count)
        if status != "ok":
            raise_lost(status, rest)
        return producer_id(epoch, int(rest[0]))

    async def reserve(
        self,
        epoch: int,
        segment: SegmentId,
        request_id: str,
        *,
        partitions: Sequence[WantedPartition],
        facts: Sequence[WantedFact] = (),
    ) -> Reservation:
        """Reserve offsets for a writer's next segment; repeatable with the same request id.

        Raises `WriterFencedError` where the writer was sealed."""
        packed = pack_request(partitions, facts, epoch=epoch, limits=self.transaction_limits)
        before = self._known_before(segment.writer, request_id)
        now_ms = await self._clock_ms()
        status, *rest = await self._run(
            SequencerVerb.RESERVE,
            epoch,
            segment.writer,
            segment.seq,
            request_id,
            now_ms,
            packed,
            self.producer_rows.limit,
        )
        if status not in ("ok", "none"):
            raise_lost(status, rest)
        number, low_ticket, stamps, batches, statuses = rest
        if any(word == TOO_MANY_PRODUCERS for part in batches for word, _ in part):
            self.producer_rows.note_refusals(batches, now_ms)
        changes: dict[int, TransactionChange] = {}
        for at, word in enumerate(statuses):
            if not isinstance(word, str):
                statuses[at], change = word[0], read_change(word)
                if change is not None:
                    changes[at] = change
        ticket = None
        if status == "ok":
            ticket = Ticket(epoch, number)
            if before is not None and ticket <= before:
                raise SequencerLostError(
                    f"ticket {number} after {before.number}: the sequencer went back",
                    remedy=LOST_REMEDY,
                )
            self._last_ticket = max(ticket, self._last_ticket or ticket)
        return Reservation(
            ticket=ticket,
            low_ticket=low_ticket,
            hw_stamps=stamps,
            batches=[
                [BatchAnswer(BatchStatus(word), offset) for word, offset in part]
                for part in batches
            ],
            fact_statuses=[FactStatus(word) for word in statuses],
            changes=changes,
        )

    def _known_before(self, writer: WriterId, request_id: str) -> Ticket | None:
        """A request's ticket is higher than all that were known when it was first made, however
        late its answer comes or is asked for again."""
        asked = self._asked.get(writer)
        if asked is None or asked[0] != request_id:
            asked = self._asked[writer] = request_id, self._last_ticket
        return asked[1]

    async def publish(
        self, epoch: int, segment: SegmentId, *, footer: bytes, object_size_bytes: int
    ) -> PublishResult:
        """Publish a segment whose object is in the bucket, whoever wrote it. `footer` has the
        trailer."""
        status, *rest = await self._run(
            SequencerVerb.PUBLISH,
            epoch,
            segment.writer,
            segment.seq,
            footer,
            object_size_bytes,
            *self._stream_limits,
        )
        if status == PublishStatus.VOID:
            return PublishResult(PublishStatus.VOID, rest[0])
        if status == PublishStatus.VISIBLE:
            return PublishResult(PublishStatus.VISIBLE, number=rest[0])
        if rest:
            raise_lost(status, rest)
        return PublishResult(PublishStatus(status))

    async def fence(self, epoch: int, segment: SegmentId) -> FenceResult:
        """Fence the writer at the segment, where a seal is: its reservation and the later ones
        become void. REFUSED unless it is the writer's first pending one, or its next. May be
        repeated."""
        status, *rest = await self._run(
            SequencerVerb.FENCE, epoch, segment.writer, segment.seq, *self._stream_limits
        )
        if status == FenceStatus.REFUSED:
            return FenceResult(FenceStatus.REFUSED, rest[0])
        if status != FenceStatus.FENCED:
            raise_lost(status, rest)
        return FenceResult(FenceStatus.FENCED, rest[0])

    async def forget_producers(
        self, epoch: int, cursor: str, *, count: int, idle_ms: int
    ) -> tuple[str, int, int]:
        """Check about `count` rows of producers, and expire those idle for `idle_ms`.

        `cursor` is "0" at first. Returns the next cursor ("0" once all rows were checked), the
        number of expired rows and the number of rows that stay. There is one row for each producer
        and partition. May be repeated."""
        now_ms = await self._asked_ms()
        status, *rest = await self._run(
            SequencerVerb.FORGET_PRODUCERS, epoch, cursor, count, now_ms, idle_ms
        )
        if status != "ok":
            raise_lost(status, rest)
        next_cursor, forgotten, kept = rest
        return next_cursor, forgotten, kept

    async def overdue(self, epoch: int, *, silent_ms: int, pending_ms: int) -> list[OverdueWriter]:
        """Unfenced writers without a heartbeat for more than `silent_ms`, or with a reservation
        that is pending for more than `pending_ms`."""
        now_ms = await self._asked_ms()
        status, *rest = await self._run(SequencerVerb.OVERDUE, epoch, now_ms, silent_ms, pending_ms)
        if status != "ok":
            raise_lost(status, rest)
        writers, self.producer_rows.known = rest
        return [
            OverdueWriter(WriterId(writer), seq, OverdueReason(reason))
            for writer, seq, reason in writers
        ]

    async def read_visible(
        self, epoch: int, after: int, *, block_ms: int, count: int = 1000
    ) -> list[VisibleSegment]:
        """Stream entries of `epoch` after number `after`; waits up to `block_ms`, then empty."""
        key = self._prefix + "visible"
        call = cast(
            Awaitable[Any],
            self._redis.xread({key: f"{epoch}-{after}"}, count=count, block=block_ms),
        )
        answer = await self._guard(call)
        if not answer:
            return []
        entries = next(iter(answer.values()))[0] if isinstance(answer, dict) else answer[0][1]
        try:
            visible = [_visible(stream_id, fields) for stream_id, fields in entries]
        except (KeyError, ValueError) as error:
            raise SequencerLostError(
                f"an entry of {key} is not bucketlog's: {error!r}", remedy=LOST_REMEDY
            ) from error
        seen = max(entry.ticket for entry in visible)
        if seen.epoch == epoch:
            self._last_ticket = max(seen, self._last_ticket or seen)
        return visible


def _visible(stream_id: bytes, fields: dict[bytes, bytes]) -> VisibleSegment:
    epoch, number = (int(part) for part in stream_id.split(b"-"))
    segment = SegmentId(WriterId(fields[b"writer"].decode()), int(fields[b"seq"]))
    ticket = Ticket(epoch, int(fields[b"ticket"]))
    size = int(fields[b"size"])
    return VisibleSegment(epoch, number, segment, ticket, fields[b"index"], size)
