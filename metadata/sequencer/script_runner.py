"""How the sequencer's scripts are run on Redis, and what Redis' errors mean.

Invariant: an error that leaves the state as it was is `SequencerUnavailableError`, and the call may
be made again; one that may have left half of a script's writes is `SequencerLostError`.
"""

import hashlib
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar, cast

import ormsgpack
from redis.asyncio import Redis
from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bucketlog.log_format.errors import (
    ConfigurationError,
    SequencerError,
    SequencerLostError,
    SequencerUnavailableError,
    WriterFencedError,
)
from bucketlog.metadata.sequencer.redis_keys import KEYS, key_prefix
from bucketlog.metadata.sequencer.redis_primary import PrimaryPool
from bucketlog.metadata.sequencer.scripts import SequencerVerb, script_text

T = TypeVar("T")

HALF_WAY = ("user_script:", "WRONGTYPE")
"""How the message of a script begins that ended in an error of its own: it may have written half,
and must not be repeated. A full or busy server refuses a script's first write instead."""
NOT_THE_PRIMARY = (
    ReadOnlyError,
    MasterDownError,
    MovedError,
    AskError,
    TryAgainError,
    ClusterDownError,
)
"""Answers of a server that does not have the shard's keys, or not for itself: it has done nothing,
and another one will. (One that loads its data is out of reach for redis-py.)"""
CLOSED_TRANSPORT = "the handler is closed"
"""How uvloop says that a connection was lost before it was written to: nothing was sent."""
LOST_REMEDY = "brokers begin a new epoch from the bucket by themselves"


class ScriptRunner:
    """Runs verbs over the keys of one shard."""

    def __init__(self, redis: Redis, *, cluster_id: str, shard: int) -> None:
        self._redis = redis
        self._prefix = key_prefix(cluster_id, shard)
        pool = getattr(redis, "connection_pool", None)
        self._pool = pool if isinstance(pool, PrimaryPool) else None
        if self._pool is not None:
            self._pool.serve(self._prefix)
        self._keys = [self._prefix + key.name for key in KEYS]
        self._is_start_complete = False
        self._shas = {
            verb: hashlib.sha1(script_text(verb).encode(), usedforsecurity=False).hexdigest()
            for verb in SequencerVerb
        }

    def note_start_complete(self) -> None:
        """Login and permissions were good for all that a start needs. What is refused from now on
        is waited for: somebody changes them, and will not have to restart brokers after it."""
        self._is_start_complete = True

    def _refused(self, message: str, remedy: str) -> ConfigurationError | SequencerUnavailableError:
        kind = SequencerUnavailableError if self._is_start_complete else ConfigurationError
        return kind(message, remedy=remedy)

    async def follow_primary(self, interval_ms: int) -> None:
        """Notice in time that another server has become the primary; returns at once where it is
        always the same."""
        if self._pool is not None:
            await self._pool.follow(interval_ms)

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
        except (TimeoutError, RedisConnectionError, RedisTimeoutError) as error:
            if isinstance(error, AuthenticationError):
                raise self._refused(
                    f"Redis refused the login: {error}", "check the Redis URL's credentials"
                ) from error
            raise SequencerUnavailableError(
                f"Redis is unreachable: {error}", remedy="check that it runs; the call is repeated"
            ) from error
        except NoPermissionError as error:
            raise self._refused(
                f"Redis does not permit: {error}", "see docs/redis.md for the ACL"
            ) from error
        except NoScriptError:
            raise
        except NOT_THE_PRIMARY as error:
            self._leave_server()
            raise SequencerUnavailableError(
                f"Redis is not the primary of these keys: {error}",
                remedy="the primary is looked for",
            ) from error
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
        except RuntimeError as error:
            if CLOSED_TRANSPORT not in str(error):
                raise
            raise SequencerUnavailableError(
                f"Redis is unreachable: {error}", remedy="check that it runs; the call is repeated"
            ) from error

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
            return ormsgpack.unpackb(raw)
        except ormsgpack.MsgpackDecodeError as error:
            raise SequencerLostError(
                f"a script answered with what is no answer, its keys are damaged: {error}",
                remedy=LOST_REMEDY,
            ) from error
