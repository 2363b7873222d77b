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

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection
from redis.connection import HiredisRespSerializer
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bucketlog.log_format.errors import (
    SequencerLostError,
    SequencerUnavailableError,
)
from bucketlog.metadata.sequencer.redis_errors import LOST_REMEDY, NOT_THE_PRIMARY, translated
from bucketlog.metadata.sequencer.redis_identity import check_eviction, read_identity
from bucketlog.metadata.sequencer.redis_keys import KEYS, key_prefix
from bucketlog.metadata.sequencer.redis_lifeline import hold_channels
from bucketlog.metadata.sequencer.redis_primary import Address, Locator
from bucketlog.metadata.sequencer.redis_tls import RedisTls, TlsProblem, tls_problem
from bucketlog.metadata.sequencer.requests import ServerIdentity, decode_answer
from bucketlog.metadata.sequencer.scripts import SequencerVerb, script_text

T = TypeVar("T")

logger = logging.getLogger(__name__)

MASTER = "master"
_PACKER = HiredisRespSerializer()
"""Packs commands. redis-py's synchronous connections use it, and its asynchronous ones do not. For
a script, it takes a third of the time."""


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
    """Connections to the primary. `locator` finds its address; None: the URL has the address.

    Between calls, a connection waits in `_idle`. redis-py counts it as in use: redis-py's own way
    takes a lock and counts connections, which takes as long as the call itself."""

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
        self._idle: list[AbstractConnection] = []
        self._waiting = 0
        """Number of calls that wait for a connection of redis-py's."""

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

    async def call(self, *command: str | bytes | int) -> Any:
        """Send a command, and return the response. Raises redis-py's errors."""
        connection = await self.get_connection()
        try:
            await connection.send_packed_command(cast(Any, connection).pack_command(*command))
            return await connection.read_response()
        finally:
            await self.release(connection)

    async def get_connection(
        self, command_name: str | None = None, *keys: object, **options: object
    ) -> AbstractConnection:
        if self._idle:
            connection = self._idle.pop()
            try:
                await self.ensure_connection(connection)
            except BaseException:
                await super().release(connection)
                raise
            return connection
        self._waiting += 1
        try:
            return cast(AbstractConnection, await cast(Any, super()).get_connection())
        finally:
            self._waiting -= 1

    async def release(self, connection: AbstractConnection) -> None:
        is_reused = connection.is_connected and not cast(Any, connection).should_reconnect()
        if is_reused and not self._waiting:
            self._idle.append(connection)
        else:
            await super().release(connection)

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
        await self._guard(check_eviction(self._redis))
        identity = await self.identity()
        if identity.role != MASTER:
            self._leave_server()
            raise SequencerUnavailableError(
                f"Redis is a {identity.role}, not the primary", remedy="the primary is looked for"
            )
        return identity

    async def identity(self) -> ServerIdentity:
        return await self._guard(read_identity(self._redis))

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

    async def _guard(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except NoScriptError:
            raise
        except (TimeoutError, RedisError, RuntimeError) as error:
            if isinstance(error, NOT_THE_PRIMARY):
                self._leave_server()
            tls = None if self._pool is None else self._pool.tls_problem(error)
            told = translated(error, tls, is_start_complete=self._is_start_complete)
            if told is error:
                raise
            raise told from error

    def _script(self, command: str, script: str, *values: str | bytes | int) -> Awaitable[bytes]:
        """`command` is EVAL with the text of the script, or EVALSHA with its hash."""
        if self._pool is not None:
            return self._pool.call(command, script, *values)
        method = self._redis.eval if command == "EVAL" else self._redis.evalsha
        return cast(Awaitable[bytes], method(script, *cast(Any, values)))

    async def _run(
        self, verb: SequencerVerb, *args: str | bytes | int, extra: Sequence[str] = ()
    ) -> Any:
        keys = [*self._keys, *extra]
        values = (len(keys), *keys, *args)
        try:
            raw = await self._guard(self._script("EVALSHA", self._shas[verb], *values))
        except NoScriptError:
            raw = await self._guard(self._script("EVAL", script_text(verb), *values))
        try:
            return decode_answer(raw)
        except ValueError as error:
            raise SequencerLostError(
                f"a script returned an invalid answer, its keys are damaged: {error}",
                remedy=LOST_REMEDY,
            ) from error
