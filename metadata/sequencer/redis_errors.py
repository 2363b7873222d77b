"""Meaning of Redis' errors for the sequencer's callers. Pure.

Invariant: `SequencerUnavailableError` means that the state is unchanged; `SequencerLostError` means
that a script may have made only half of its writes.
"""

from collections.abc import Sequence
from typing import NoReturn

from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
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
from bucketlog.metadata.sequencer.redis_tls import TlsProblem

HALF_WAY = ("user_script:", "WRONGTYPE")
"""Beginnings of messages of scripts that ended in their own error. Such a script may have written
half, and must not be repeated. A full or busy server refuses a script's first write instead."""
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
"""The message of uvloop if a connection was lost before it was written to: nothing was sent."""
LOST_REMEDY = "brokers begin a new epoch from the bucket by themselves"


def translated(error: Exception, tls: TlsProblem | None, *, is_start_complete: bool) -> Exception:
    """Return the error that callers get. `tls` is how TLS may have caused it. `is_start_complete`:
    logins, permissions and certificates were good once, so the broker waits until somebody changes
    them back."""
    refused = SequencerUnavailableError if is_start_complete else ConfigurationError
    match error:
        case AuthenticationError():
            return refused(
                f"Redis refused the login: {error}", remedy="check the Redis URL's credentials"
            )
        case TimeoutError() | RedisConnectionError() | RedisTimeoutError() if tls is not None:
            kind = refused if tls.is_setting else SequencerUnavailableError
            return kind(tls.message, remedy=tls.remedy)
        case TimeoutError() | RedisConnectionError() | RedisTimeoutError():
            return _unreachable(error)
        case NoPermissionError():
            return refused(
                f"Redis does not permit: {error}", remedy="see docs/redis.md for the ACL"
            )
        case _ if isinstance(error, NOT_THE_PRIMARY):
            return SequencerUnavailableError(
                f"Redis is not the primary of these keys: {error}",
                remedy="the primary is looked for",
            )
        case ResponseError() if str(error).startswith(HALF_WAY):
            return SequencerLostError(
                f"a script failed, its keys are damaged: {error}", remedy=LOST_REMEDY
            )
        case ResponseError():
            return SequencerUnavailableError(
                f"Redis refused: {error}", remedy="see Redis' own log and memory"
            )
        case RedisError():
            return SequencerError(f"Redis answered: {error}")
        case _ if CLOSED_TRANSPORT in str(error):
            return _unreachable(error)
        case _:
            return error


def _unreachable(error: Exception) -> SequencerUnavailableError:
    return SequencerUnavailableError(
        f"Redis is unreachable: {error}", remedy="check that it runs; the call is repeated"
    )


def raise_lost(status: str, rest: Sequence[object]) -> NoReturn:
    """Raise the error that a script's status means. `rest` is what follows it in the answer."""
    if status == "fenced":
        raise WriterFencedError(str(rest[0]), remedy="register a new writer")
    if status in ("lost", "unknown", "seq", "early"):
        raise SequencerLostError(f"{status}: {rest[0]}", remedy=LOST_REMEDY)
    raise SequencerError(f"the sequencer answered {status!r}")
