"""The sequencer's Redis: connections to the primary, its clock and its scripts.

Invariants: a new connection goes to the current primary. A connection to a former primary is never
used again. `SequencerUnavailableError` means that the state is unchanged, and that the call may be
repeated. `SequencerLostError` means that a script may have made only half of its writes.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import ormsgpack
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection
from redis.connection import HiredisRespSerializer
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bucketlog.log_format.errors import (
    ConfigurationError,
    SequencerError,
    SequencerLostError,
    SequencerUnavailableError,
    WriterFencedError,
)
from bucketlog.metadata.sequencer.redis_errors import LOST_REMEDY, NOT_THE_PRIMARY, translated
from bucketlog.metadata.sequencer.redis_keys import KEYS, key_prefix
from bucketlog.metadata.sequencer.redis_lifeline import hold_channels
from bucketlog.metadata.sequencer.redis_primary import Address, Locator
from bucketlog.metadata.sequencer.redis_tls import RedisTls, TlsProblem, tls_problem
from bucketlog.metadata.sequencer.requests import ServerIdentity
from bucketlog.metadata.sequencer.scripts import SequencerVerb, script_text

T = TypeVar("T")

logger = logging.getLogger(__name__)

MASTER = "master"
_PACKER = HiredisRespSerializer()
"""Packs commands. redis-py's synchronous connections use it, and its asynchronous ones do not. For
a script, it takes a third of the time."""
FRACTIONS = (b"\xca", b"\xcb", b"\xcf")
"""The first bytes of floats, and of unsigned numbers of 64 bits, in msgpack. Other values may also
contain these bytes."""


class _TasklessWrites(AbstractConnection):
    """Writes a command without an asyncio task. Errors are redis-py's; they close the connection.

    redis-py writes under `asyncio.wait_for`. Before Python 3.12, `wait_for` makes a task, takes
    three more rounds of the event loop, and may lose a cancellation.
    """

    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if check_health:
            await cast(Any, self).check_health()
        packed = command.encode() if isinstance(command, str) else command
        writer = cast(asyncio.StreamWriter, self._writer)
        try:
            async with asyncio.timeout(self.socket_timeout):
                writer.writelines([packed] if isinstance(packed, bytes) else packed)
                await writer.drain()
        except TimeoutError:
            await self.disconnect(nowait=True)
            raise RedisTimeoutError("Timeout writing to socket") from None
        except OSError as error:
            await self.disconnect(nowait=True)
            raise RedisConnectionError(f"writing to the socket failed: {error}") from error
        except BaseException:  # the command may be partly written
            await self.disconnect(nowait=True)
            raise


def without_tasks(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """Return the subclass of a kind of connection that writes without tasks."""
    return type(f"Taskless{kind.__name__}", (_TasklessWrites, kind), {})


class PrimaryPool(BlockingConnectionPool):
    """Connections to the primary. `locator` finds its address; None: the URL has the address."""

    def __init__(
        self,
        *,
        locator: Locator | None = None,
        tls: RedisTls | None = None,
        may_need_tls: bool = False,
        connection_class: type[AbstractConnection] = Connection,
        **values: Any,
    ) -> None:
        """`tls` has the context of connections with TLS. `may_need_tls`: a port of the URL may
        expect TLS although the URL has none."""
        super().__init__(connection_class=without_tasks(connection_class), **values)
        self._locator = locator
        self._tls = tls
        self._may_need_tls = may_need_tls
        self._key = ""
        self._primary: Address | None = None
        self._term = 0
        """Incremented each time that a server is abandoned."""
        self._terms: WeakKeyDictionary[AbstractConnection, int] = WeakKeyDictionary()
        self._looking: asyncio.Task[Address] | None = None
        self._is_closed = False

    def make_connection(self) -> AbstractConnection:
        connection = cast(AbstractConnection, cast(Any, super()).make_connection())
        cast(Any, connection).pack_command = _PACKER.pack
        if self._tls is not None:
            cast(SSLConnection, connection).ssl_context = self._tls
        return connection

    def serve(self, key: str) -> None:
        """Connect to the primary of `key` from now on."""
        self._key = key

    def leave(self) -> None:
        """The server is not the primary any more: stop using its connections."""
        self._term += 1

    def tls_problem(self, error: Exception) -> TlsProblem | None:
        """Return how TLS may have caused the error of a call; None if nothing is known."""
        if self._tls is None and not self._may_need_tls:
            return None
        return tls_problem(error, uses_tls=self._tls is not None)

    async def ensure_connection(self, connection: AbstractConnection) -> None:
        if connection.is_connected and self._terms.get(connection) != self._term:
            await connection.disconnect(nowait=True)
        if not connection.is_connected:
            if self._locator is not None:
                primary = await self._look()
                cast(Connection, connection).host, cast(Connection, connection).port = primary
            self._terms[connection] = self._term
        self._check_open()
        await super().ensure_connection(connection)
        if self._is_closed:
            await connection.disconnect(nowait=True)
        self._check_open()

    def _check_open(self) -> None:
        """Raise if the pool is closed: nobody would close a connection that is opened now."""
        if self._is_closed:
            raise RedisConnectionError("the client is closed")

    async def _look(self) -> Address:
        """Find the primary; concurrent callers share one lookup."""
        self._check_open()
        if self._looking is None:
            assert self._locator is not None
            self._looking = asyncio.ensure_future(self._locator.locate(self._key))
            self._looking.add_done_callback(self._looked)
        try:
            found = await asyncio.shield(self._looking)
        except asyncio.CancelledError:
            if not cast(Any, asyncio.current_task()).cancelling():  # `aclose` cancelled the lookup
                self._check_open()
            raise
        if found != self._primary:
            logger.info("the sequencer's Redis is %s", found)
            self._primary = found
            self.leave()
        return found

    def _looked(self, look: "asyncio.Task[Address]") -> None:
        self._looking = None
        if not look.cancelled():
            look.exception()  # the caller may be gone

    async def follow(self, interval_ms: int) -> None:
        """Look up the primary repeatedly, because a demoted server may continue to answer."""
        while self._locator is not None:
            await asyncio.sleep(interval_ms / 1000)
            try:
                await self._look()
            except (RedisError, OSError, TimeoutError):  # calls report such errors themselves
                continue

    async def aclose(self) -> None:
        self._is_closed = True
        if self._looking is not None:
            self._looking.cancel()
        await super().aclose()
        if self._locator is not None:
            await self._locator.aclose()


class ServerClock:
    """Redis' time of day, for ages that its scripts compare: the server's last answer, plus the
    time since then on the event loop's clock.

    Scripts get the time as an argument, so that a call has the same effect whenever it runs. The
    brokers' own clocks are unsuitable: the scripts compare ages from several brokers, and one clock
    may be wrong.

    Invariant: this clock is behind the server by the answer's latency, plus or minus the drift of
    the two clocks since the last answer. It is never ahead by more than that drift. A broker asks
    the server for its time before a heartbeat, and before it checks whether another broker is
    silent.

    `ask` returns the server's seconds and microseconds (the command TIME).
    """

    def __init__(self, ask: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        self._ask = ask
        self._told: tuple[float, float] | None = None
        """The server's time in milliseconds, and the loop's time of the answer."""

    def forget(self) -> None:
        """Note that from now on another server answers."""
        self._told = None

    async def asked_ms(self) -> int:
        """The server's time, from the server. Raises the errors of `ask`."""
        seconds, micros = await self._ask()
        told_ms = seconds * 1000 + micros / 1000
        self._told = told_ms, asyncio.get_running_loop().time()
        return int(told_ms)

    async def now_ms(self) -> int:
        """The server's time; the server is asked only at the first call."""
        if self._told is None:
            return await self.asked_ms()
        told_ms, at = self._told
        return int(told_ms + (asyncio.get_running_loop().time() - at) * 1000)


class ScriptRunner:
    """Runs verbs over the keys of one shard."""

    def __init__(self, redis: Redis | None, *, cluster_id: str, shard: int) -> None:
        self._shard_of = cluster_id, shard
        self._client: Redis | None = None
        self._pool: PrimaryPool | None = None
        self._prefix = key_prefix(cluster_id, shard)
        if redis is not None:
            self._connect(redis)
        self._keys = [self._prefix + key.name for key in KEYS]
        self._is_start_complete = False
        self._shas = {
            verb: hashlib.sha1(script_text(verb).encode(), usedforsecurity=False).hexdigest()
            for verb in SequencerVerb
        }

    @property
    def _redis(self) -> Redis:
        if self._client is None:
            raise SequencerUnavailableError("no Redis is chosen yet", remedy="the call is repeated")
        return self._client

    def _connect(self, redis: Redis) -> None:
        pool = getattr(redis, "connection_pool", None)
        self._client, self._pool = redis, pool if isinstance(pool, PrimaryPool) else None
        if self._pool is not None:
            self._pool.serve(self._prefix)

    def use(self, redis: Redis) -> None:
        """Send all further calls to this server. The caller closes the client of the former one."""
        self._connect(redis)

    def beside(self, redis: Redis) -> "ScriptRunner":
        """A runner over the same keys on another server."""
        cluster_id, shard = self._shard_of
        return ScriptRunner(redis, cluster_id=cluster_id, shard=shard)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def check_server(self) -> ServerIdentity:
        """Return the server's identity. Refuses a server that may evict (`ConfigurationError`), and
        one that is not a primary now (`SequencerUnavailableError`)."""
        memory = cast(dict[str, Any], await self._guard(self._redis.info("memory")))
        policy = memory.get("maxmemory_policy")
        if policy != "noeviction":
            raise ConfigurationError(
                f"Redis runs with maxmemory-policy {policy}: it may evict the log's state",
                remedy="set maxmemory-policy noeviction",
            )
        identity = await self.identity()
        if identity.role != MASTER:
            self._leave_server()
            raise SequencerUnavailableError(
                f"Redis is a {identity.role}, not the primary", remedy="the primary is looked for"
            )
        return identity

    async def identity(self) -> ServerIdentity:
        server = cast(dict[str, Any], await self._guard(self._redis.info("server")))
        replication = cast(dict[str, Any], await self._guard(self._redis.info("replication")))
        return ServerIdentity(
            str(server["run_id"]), str(replication["master_replid"]), str(replication["role"])
        )

    def note_start_complete(self) -> None:
        """Note that login and permissions were good for everything that a start needs. After later
        refusals, the broker waits: somebody changes the rights, and need not restart brokers after
        it."""
        self._is_start_complete = True

    async def follow_primary(self, interval_ms: int) -> None:
        """Notice in time that another server has become the primary. Returns at once if the primary
        is always the same server."""
        if self._pool is not None:
            await self._pool.follow(interval_ms)

    async def hold_lifeline(
        self, incarnation: str, heard: Callable[[], None], is_missed: Callable[[], bool]
    ) -> None:
        """Subscribe to the channel of this broker, which ends with the broker's process, and to
        the announcements of all brokers. `heard` is called after the subscription begins, and when
        members may have changed. Returns once `is_missed` says that the server does not see the
        subscription.

        Raises `SequencerError` if the connection ends, or the server refuses the subscription."""
        channel = self._prefix + "brokers"
        channels = f"{channel}:{incarnation}", channel
        await self._guard(hold_channels(self._redis, channels, heard, is_missed))

    def _leave_server(self) -> None:
        if self._pool is not None:
            self._pool.leave()

    @staticmethod
    def _raise_lost(status: str, rest: Sequence[Any]) -> None:
        if status == "fenced":
            raise WriterFencedError(rest[0], remedy="register a new writer")
        if status in ("lost", "unknown", "seq", "early"):
            raise SequencerLostError(f"{status}: {rest[0]}", remedy=LOST_REMEDY)
        raise SequencerError(f"the sequencer answered {status!r}")

    async def _guard(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except NoScriptError:
            raise
        except (TimeoutError, RedisError, RuntimeError) as error:
            if isinstance(error, NOT_THE_PRIMARY):
                self._leave_server()
            problem = None if self._pool is None else self._pool.tls_problem(error)
            told = translated(error, problem, is_start_complete=self._is_start_complete)
            if told is error:
                raise
            raise told from error

    async def _run(
        self, verb: SequencerVerb, *args: str | bytes | int, extra: Sequence[str] = ()
    ) -> Any:
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
        try:
            answer = ormsgpack.unpackb(raw)
            if any(mark in raw for mark in FRACTIONS):
                _check_whole(answer)
        except ValueError as error:
            raise SequencerLostError(
                f"a script returned an invalid answer, its keys are damaged: {error}",
                remedy=LOST_REMEDY,
            ) from error
        return answer


def _check_whole(answer: Any) -> None:
    """Raise `ValueError` if a number in a script's answer is not an integer of 64 bits."""
    if isinstance(answer, list):
        for each in answer:
            _check_whole(each)
    elif isinstance(answer, dict):
        _check_whole([*answer.values()])
    elif isinstance(answer, float) or (isinstance(answer, int) and answer >= 2**63):
        raise ValueError(f"{answer} is not a whole number of 64 bits")
