"""Where the brokers of an embedded cluster listen, and whether they know each other.

A look at a port tells what was: somebody may take it before the broker does, which then says so.
"""

import socket
import struct
from collections.abc import Collection

HIGHEST_PORT = 65_535
NEIGHBOURS_TRIED = 100
_METADATA_OF_NO_TOPIC = struct.pack(">ihhihi", 14, 3, 1, 0, -1, 0)
"""Metadata 1, correlation id 0, no client id, an empty list of topics."""
_COUNT_OF_BROKERS = struct.Struct(">iii")
"""The answer begins with its size, the correlation id, and how many brokers follow."""


def listening_error(host: str, port: int) -> OSError | None:
    """Why nobody can listen there now; None: one can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        return error
    return None


def ports_beside(
    host: str, first: int, wanted: list[int], taken: Collection[int] = ()
) -> list[int]:
    """Return a port for each of `wanted`: that port if it is free, else the next free one above
    `first`. The port is 0 (any) if none near is free, or if `first` is 0. Ports of `taken` are not
    chosen as next ones, because other listeners of the cluster will use them."""
    chosen: list[int] = []
    nearest = range(first + 1, min(first + NEIGHBOURS_TRIED, HIGHEST_PORT) + 1 if first else 0)
    left = iter([port for port in nearest if port not in wanted and port not in taken])
    for port in wanted:
        if port and listening_error(host, port) is None:
            chosen.append(port)
        else:
            chosen.append(next((near for near in left if listening_error(host, near) is None), 0))
    return chosen


def brokers_named(host: str, port: int, timeout_s: float) -> int:
    """How many brokers of its cluster the one that listens there tells clients of. Raises
    `OSError`."""
    with socket.create_connection((host, port), timeout_s) as connection:
        connection.sendall(_METADATA_OF_NO_TOPIC)
        answer = b""
        while len(answer) < _COUNT_OF_BROKERS.size:
            part = connection.recv(65536)
            if not part:
                raise ConnectionError(f"{host}:{port} closed the connection")
            answer += part
    return int(_COUNT_OF_BROKERS.unpack_from(answer)[2])
