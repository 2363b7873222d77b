"""Connections to Redis that write a command without an asyncio task.

redis-py wraps each write in `asyncio.wait_for`. Before Python 3.12, `wait_for` makes a task, and a
command takes three more rounds of the event loop. `wait_for` can also lose a cancellation then.
Connections of this module write under `asyncio.timeout`, which has neither problem.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, cast

from redis.asyncio.connection import (
    AbstractConnection,
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError


class _TasklessWrites(AbstractConnection):
    """A connection that raises redis-py's errors. A write that fails closes the connection."""

    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        if not self.is_connected:
            await self.connect_check_health(check_health=False)
        if check_health:
            await cast(Any, self).check_health()
        if isinstance(command, str):
            command = command.encode()
        writer = cast(asyncio.StreamWriter, self._writer)
        try:
            async with asyncio.timeout(self.socket_timeout):
                writer.writelines([command] if isinstance(command, bytes) else command)
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


class _Tcp(_TasklessWrites, Connection):
    pass


class _Tls(_TasklessWrites, SSLConnection):
    pass


class _Unix(_TasklessWrites, UnixDomainSocketConnection):
    pass


_KINDS: Mapping[Any, type[AbstractConnection]] = {
    Connection: _Tcp,
    SSLConnection: _Tls,
    UnixDomainSocketConnection: _Unix,
}


def without_tasks(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """Return the subclass of `kind` that writes without a task, or `kind` if there is none."""
    return _KINDS.get(kind, kind)
