"""The texts of `listeners` and `advertised_listeners`, read and written. Pure.

Invariants: names are upper case and unique, and no two listeners share a port. Every listener has
an address that clients can reach.
Source: Kafka's SocketServerConfigs.listenerListToEndPoints and KafkaConfig.validateValues.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

HIGHEST_PORT = 65_535
DEFAULT_NAME = "PLAINTEXT"
"""The name of the listener of a broker without `listeners`."""
ALL_ADDRESSES = frozenset({"0.0.0.0", "::"})
_ENTRY = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,63})(:(?P<protocol>[A-Za-z_]+))?://"
    r"(?P<host>\[[0-9a-fA-F:.%]+\]|[^\s\[\]:,/]*):(?P<port>[0-9]{1,5})"
)


class ListenerProtocol(StrEnum):
    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


@dataclass(frozen=True, slots=True)
class ListenerSpec:
    """A listener as it is configured; port 0 is any free one. `advertised` is the host and the
    port that clients use; None: those that it listens on."""

    name: str
    protocol: ListenerProtocol
    host: str
    port: int
    advertised_host: str | None = None
    advertised_port: int | None = None

    @property
    def is_tls(self) -> bool:
        return self.protocol in (ListenerProtocol.SSL, ListenerProtocol.SASL_SSL)

    @property
    def has_login(self) -> bool:
        return self.protocol in (ListenerProtocol.SASL_PLAINTEXT, ListenerProtocol.SASL_SSL)

    def reached_at(self, bound_port: int) -> tuple[str, int]:
        """Host and port for clients; `bound_port` is the port that the listener got."""
        return self.advertised_host or self.host, self.advertised_port or bound_port


def read_listeners(text: str) -> tuple[ListenerSpec, ...]:
    """Parse listeners. Raises `ValueError`, which says what to write instead."""
    found: dict[str, ListenerSpec] = {}
    ports: set[int] = set()
    for entry, match in _entries(text, "NAME:PROTOCOL://HOST:PORT"):
        name, port = match["name"].upper(), _port(entry, match["port"], lowest=0)
        if name in found:
            raise ValueError(f"two listeners are called {name}: give each its own name")
        if port and port in ports:
            raise ValueError(f"two listeners have port {port}: give each its own port")
        ports.add(port)
        found[name] = ListenerSpec(
            name, _protocol(entry, name, match["protocol"]), _host(match["host"]), port
        )
    return tuple(found.values())


def advertise(listeners: Sequence[ListenerSpec], text: str | None) -> tuple[ListenerSpec, ...]:
    """The listeners with their addresses for clients. Raises `ValueError`."""
    given: dict[str, tuple[str, int]] = {}
    for entry, match in _entries(text, "NAME://HOST:PORT") if text is not None else ():
        name = match["name"].upper()
        if match["protocol"] is not None:
            raise ValueError(f"{entry!r}: leave out the protocol, which is known from `listeners`")
        if name not in {each.name for each in listeners}:
            names = ", ".join(each.name for each in listeners)
            raise ValueError(f"{entry!r}: there is no listener {name}; there are {names}")
        if name in given:
            raise ValueError(f"listener {name} has two addresses: keep one")
        host = _host(match["host"])
        if host in ALL_ADDRESSES:
            raise ValueError(f"{entry!r}: clients cannot connect to {host}: name a host")
        given[name] = host, _port(entry, match["port"], lowest=1)
    missing = [each for each in listeners if each.name not in given]
    if text is not None and missing:
        name = missing[0].name
        raise ValueError(f"listener {name} has no address: add {name}://HOST:PORT")
    for each in missing:
        if each.host in ALL_ADDRESSES:
            raise ValueError(
                f"listener {each.name} listens on {each.host}, which clients cannot connect to: "
                f"add {each.name}://HOST:PORT"
            )
    return tuple(
        replace(each, advertised_host=given[each.name][0], advertised_port=given[each.name][1])
        if each.name in given
        else each
        for each in listeners
    )


def shifted(listeners: Sequence[ListenerSpec], by: int) -> tuple[ListenerSpec, ...]:
    """Return the listeners of another broker on this machine: all ports except 0 are higher by
    `by`."""
    return tuple(
        replace(
            each,
            port=each.port and each.port + by,
            advertised_port=each.advertised_port and each.advertised_port + by,
        )
        for each in listeners
    )


def listeners_text(listeners: Sequence[ListenerSpec]) -> str:
    """Return the listeners in the form that `read_listeners` reads."""
    return ",".join(
        f"{each.name}:{each.protocol}://{_written(each.host)}:{each.port}" for each in listeners
    )


def advertised_text(listeners: Sequence[ListenerSpec]) -> str:
    """Return the advertised addresses in the form that `advertise` reads. All listeners must have
    one."""
    return ",".join(
        f"{each.name}://{_written(each.advertised_host or '')}:{each.advertised_port}"
        for each in listeners
    )


def _entries(text: str, form: str) -> Iterator[tuple[str, re.Match[str]]]:
    if not text.strip():
        raise ValueError(f"no listener: write {form}")
    for entry in (each.strip() for each in text.split(",")):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(f"{entry!r} is not a listener: write {form}, separated by commas")
        yield entry, match


def _protocol(entry: str, name: str, protocol: str | None) -> ListenerProtocol:
    wanted = name if protocol is None else protocol.upper()
    if wanted not in ListenerProtocol.__members__:
        what = "has no protocol" if protocol is None else f"has the unknown protocol {wanted}"
        names = ", ".join(ListenerProtocol)
        raise ValueError(f"{entry!r} {what}: write {name}:PROTOCOL://…, with one of {names}")
    return ListenerProtocol(wanted)


def _port(entry: str, text: str, *, lowest: int) -> int:
    port = int(text)
    if not lowest <= port <= HIGHEST_PORT:
        raise ValueError(f"{entry!r}: the port is not between {lowest} and {HIGHEST_PORT}")
    return port


def _host(text: str) -> str:
    """An empty host means all addresses, as in Kafka."""
    return text.strip("[]") or "0.0.0.0"


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host
