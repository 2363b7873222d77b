"""Sockets and host names of the HTTP servers of the command line."""

import re
import socket
from collections.abc import Mapping, Sequence
from ipaddress import AddressValueError, IPv6Address
from typing import Any

from bucketlog.log_format.errors import ConfigurationError

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
QUIET_SERVER: Mapping[str, Any] = {
    "ws": "none",
    "log_config": None,
    "access_log": False,
    "lifespan": "off",
    "server_header": False,
}
"""Settings of uvicorn that the servers share: plain HTTP, without uvicorn's logs and name."""
_HOST_NAME = re.compile(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def host_names(host: str, allowed: Sequence[str]) -> list[str]:
    """Return the names that clients of a server on `host` may use. Raises
    `ConfigurationError`."""
    for name in allowed:
        if not _HOST_NAME.fullmatch(name) and not _is_ipv6(name):
            raise ConfigurationError(
                f"{name!r} is not a host name",
                remedy="give a name or an address without scheme and port, *.example.com, or * for "
                "every name (--allowed-host, or BUCKETLOG_HTTP_CONSOLE_ALLOWED_HOSTS of a broker)",
            )
    return [*LOCAL_NAMES, in_address(host), *map(in_address, allowed)]


def in_address(host: str) -> str:
    """Return `host` in the form of URLs: IPv6 addresses are in brackets."""
    return f"[{host}]" if ":" in host else host


def is_local(host: str) -> bool:
    """Whether only clients on this machine reach a server that listens on `host`."""
    return in_address(host) in LOCAL_NAMES


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address. Raises `ConfigurationError` if the address cannot
    be used."""
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            remedy="choose another --port, or 0 for any free port",
        ) from error


def _is_ipv6(name: str) -> bool:
    try:
        IPv6Address(name)
    except AddressValueError:
        return False
    return True
