"""Connections to Redis that write a command without a task.

redis-py wraps each write in `asyncio.wait_for`. Before Python 3.12, this makes a task: a command
then takes three more rounds of the event loop, and `wait_for` may swallow a cancellation.
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
    """Errors are those of redis-py. A connection whose write did not end is closed."""

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
        except BaseException:  # half of the command may be written
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
    """Return the kind of connection that does the same without a task for each command."""
    return _KINDS.get(kind, kind)
