"""The typed client of the sequencer.

Invariants: an answer that says that state was lost, or a ticket that is not higher than the last
one seen in this epoch, raises `SequencerLostError` and is never worked around; a connection that
breaks raises `SequencerUnavailableError`, after which the same call may be made again.
"""

import hashlib
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

import ormsgpack
from redis.asyncio import Redis
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bucketlog.errors import (
    ConfigurationError,
    SequencerError,
    SequencerLostError,
    SequencerUnavailableError,
)
from bucketlog.model import SegmentId, Ticket, WriterId
from metadata.sequencer.redis_keys import KEYS, STAGED, key_prefix
from metadata.sequencer.requests import (
    Activation,
    BatchAnswer,
    BatchStatus,
    ControlStatus,
    Identity,
    OtherBroker,
    PublishStatus,
    Reservation,
    VisibleSegment,
    WantedControl,
    WantedPartition,
)
from metadata.sequencer.scripts import Verb, script_text
from metadata.sequencer.staging import staged_records

T = TypeVar("T")

STAGE_CHUNK = 2000
HALF_WAY = ("user_script:", "WRONGTYPE")
"""How the message of a script begins that ended in an error of its own: it may have written half,
and must not be repeated. A full or busy server refuses a script's first write instead."""
LOST_REMEDY = "restart the broker: it starts a new epoch from the bucket"


def connect_redis(url: str, *, timeout_ms: int, max_connections: int = 16) -> Redis:
    """A client for `redis://`, `rediss://` or `unix://` URLs."""
    try:
        return Redis.from_url(
            url,
            socket_timeout=timeout_ms / 1000,
            socket_connect_timeout=timeout_ms / 1000,
            max_connections=max_connections,
            decode_responses=False,
        )
    except ValueError as error:
        raise ConfigurationError(
            f"Redis URL {url!r} is not understood: {error}",
            remedy="use redis://host:port, rediss://host:port or unix:///path",
        ) from error


class Sequencer:
    """One shard's sequencer on one Redis. `stream_segments_max` bounds the stream (entries)."""

    def __init__(
        self, redis: Redis, *, cluster_id: str, shard: int = 0, stream_segments_max: int = 5000
    ) -> None:
        self._redis = redis
        self._prefix = key_prefix(cluster_id, shard)
        self._keys = [self._prefix + key.name for key in KEYS]
        self._shas = {
            verb: hashlib.sha1(script_text(verb).encode(), usedforsecurity=False).hexdigest()
            for verb in Verb
        }
        self._stream_segments_max = stream_segments_max
        self._last_ticket: Ticket | None = None

    async def _guard(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except (TimeoutError, RedisConnectionError, RedisTimeoutError) as error:
            if isinstance(error, AuthenticationError):
                raise ConfigurationError(
                    f"Redis refused the login: {error}", remedy="check the Redis URL's credentials"
                ) from error
            raise SequencerUnavailableError(
                f"Redis is unreachable: {error}", remedy="check that it runs; the call is repeated"
            ) from error
        except NoPermissionError as error:
            raise ConfigurationError(
                f"Redis does not permit: {error}", remedy="see docs/format/redis.md for the ACL"
            ) from error
        except NoScriptError:
            raise
        except ReadOnlyError as error:
            raise SequencerLostError(f"Redis is a replica: {error}", remedy=LOST_REMEDY) from error
        except ResponseError as error:
            if str(error).startswith(HALF_WAY):
                raise SequencerLostError(
                    f"a script failed, its keys are damaged: {error}", remedy=LOST_REMEDY
                ) from error
            raise SequencerUnavailableError(
                f"Redis refused: {error}", remedy="see Redis' own log and memory"
            ) from error
        except RedisError as error:
            raise SequencerError(f"Redis answered: {error}") from error

    async def _run(self, verb: Verb, *args: str | bytes | int, extra: Sequence[str] = ()) -> Any:
        keys = [*self._keys, *extra]
        try:
            raw = await self._guard(
                cast(
                    Awaitable[bytes],
                    self._redis.evalsha(self._shas[verb], len(keys), *keys, *args),
                )
            )
        except NoScriptError:
            raw = await self._guard(
                cast(
                    Awaitable[bytes],
                    self._redis.eval(script_text(verb), len(keys), *keys, *args),
                )
            )
        return ormsgpack.unpackb(raw)

    @staticmethod
    def _raise_lost(status: str, rest: Sequence[Any]) -> None:
        if status in ("lost", "unknown", "seq", "fenced", "early"):
            raise SequencerLostError(f"{status}: {rest[0]}", remedy=LOST_REMEDY)
        raise SequencerError(f"the sequencer answered {status!r}")

    async def check_server(self) -> Identity:
        """Identity, after refusing a server that may evict. Raises `ConfigurationError`."""
        memory = cast(dict[str, Any], await self._guard(self._redis.info("memory")))
        policy = memory.get("maxmemory_policy")
        if policy != "noeviction":
            raise ConfigurationError(
                f"Redis runs with maxmemory-policy {policy}: it may evict the log's state",
                remedy="set maxmemory-policy noeviction",
            )
        return await self.identity()

    async def identity(self) -> Identity:
        server = cast(dict[str, Any], await self._guard(self._redis.info("server")))
        replication = cast(dict[str, Any], await self._guard(self._redis.info("replication")))
        return Identity(
            str(server["run_id"]), str(replication["master_replid"]), str(replication["role"])
        )

    async def heartbeat(
        self, node_id: int, incarnation: str, *, now_ms: int, address: str, session_timeout_ms: int
    ) -> OtherBroker | None:
        """Join or stay; the other broker that is alive, if there is one."""
        status, *rest = await self._run(
            Verb.HEARTBEAT, node_id, incarnation, now_ms, address, session_timeout_ms
        )
        return OtherBroker(*rest) if status == "other" else None

    async def leave(self, node_id: int, incarnation: str) -> None:
        """From now on nobody has to wait for this broker."""
        await self._run(Verb.LEAVE, node_id, incarnation)

    async def check_state(self, epoch: int) -> None:
        """Raises `SequencerLostError` if the epoch's state is not there any more."""
        status, *rest = await self._run(Verb.CHECK_STATE, epoch)
        if status != "ok":
            self._raise_lost(status, rest)

    async def add_nonce(self, nonce: str) -> None:
        await self._guard(self._redis.sadd(self._prefix + "nonces", nonce))

    async def activate(self, activation: Activation) -> None:
        """Stage the folded state, then make it the sequencer's. Raises `SequencerLostError` where
        it is refused: the epoch is then wasted and a higher one must be claimed."""
        counts = []
        staged = [f"{self._prefix}staged:{activation.nonce}:{name}" for name in STAGED]
        for key, records in zip(staged, staged_records(activation.state), strict=True):
            counts.append(len(records))
            items = list(records.items())
            for start in range(0, len(items), STAGE_CHUNK):
                chunk = [part for item in items[start : start + STAGE_CHUNK] for part in item]
                await self._guard(self._redis.hset(key, items=chunk))
        identity = activation.identity
        status, *rest = await self._run(
            Verb.ACTIVATE,
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

    async def register_writer(self, epoch: int, writer: WriterId, *, now_ms: int) -> None:
        status, *rest = await self._run(Verb.REGISTER_WRITER, epoch, writer, now_ms)
        if status != "ok":
            self._raise_lost(status, rest)

    async def producer_ids(self, epoch: int, count: int) -> int:
        """The first of `count` producer ids, unique for ever."""
        status, *rest = await self._run(Verb.PRODUCER_IDS, epoch, count)
        if status != "ok":
            self._raise_lost(status, rest)
        return epoch << 40 | int(rest[0])

    async def reserve(
        self,
        epoch: int,
        segment: SegmentId,
        request_id: str,
        *,
        now_ms: int,
        partitions: Sequence[WantedPartition],
        control: Sequence[WantedControl] = (),
    ) -> Reservation:
        """Reserve offsets for a writer's next segment; repeatable with the same request id."""
        packed = _pack_request(partitions, control)
        status, *rest = await self._run(
            Verb.RESERVE, epoch, segment.writer, segment.seq, request_id, now_ms, packed
        )
        if status not in ("ok", "none"):
            self._raise_lost(status, rest)
        number, low_ticket, stamps, batches, statuses = rest
        ticket = None
        if status == "ok":
            ticket = Ticket(epoch, number)
            if self._last_ticket is not None and ticket < self._last_ticket:
                raise SequencerLostError(
                    f"ticket {number} after {self._last_ticket.number}: the sequencer went back",
                    remedy=LOST_REMEDY,
                )
            self._last_ticket = ticket
        return Reservation(
            ticket=ticket,
            low_ticket=low_ticket,
            hw_stamps=stamps,
            batches=[
                [BatchAnswer(BatchStatus(word), offset) for word, offset in part]
                for part in batches
            ],
            control=[ControlStatus(word) for word in statuses],
        )

    async def publish(
        self, epoch: int, segment: SegmentId, *, now_ms: int, footer: bytes, object_size_bytes: int
    ) -> PublishStatus:
        """Tell that the segment's object is in the bucket; `footer` has the trailer."""
        status, *rest = await self._run(
            Verb.PUBLISH,
            epoch,
            segment.writer,
            segment.seq,
            now_ms,
            footer,
            object_size_bytes,
            self._stream_segments_max,
        )
        if rest:
            self._raise_lost(status, rest)
        return PublishStatus(status)

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
        return [_visible(stream_id, fields) for stream_id, fields in entries]

    async def close(self) -> None:
        await self._redis.aclose()


def _visible(stream_id: bytes, fields: dict[bytes, bytes]) -> VisibleSegment:
    epoch, number = (int(part) for part in stream_id.split(b"-"))
    segment = SegmentId(WriterId(fields[b"writer"].decode()), int(fields[b"seq"]))
    ticket = Ticket(epoch, int(fields[b"ticket"]))
    size = int(fields[b"size"])
    return VisibleSegment(epoch, number, segment, ticket, fields[b"index"], size)


def _pack_request(partitions: Sequence[WantedPartition], control: Sequence[WantedControl]) -> bytes:
    rows: dict[tuple[str, bytes], int] = {}
    parts = []
    for part in partitions:
        row = rows.setdefault((part.topic_name, part.topic_id), len(rows))
        parts.append((row, part.partition, part.batches))
    for entry in control:
        rows.setdefault((entry.topic_name, entry.topic_id), len(rows))
    request = {
        "topics": [(name, topic_id.hex()) for name, topic_id in rows],
        "parts": parts,
        "control": [(verb, name, topic_id.hex(), count) for verb, name, topic_id, count in control],
    }
    return ormsgpack.packb(request, default=tuple)
