"""Decides which connections are accepted, and which connection is closed at the limit.

Pure: the clock is passed in. Invariants: the connections of one address, and of all addresses
together, stay within their limits. Only an address that connects too fast is refused. A connection
is active when it is accepted, sends a complete request, or gets a response.
Source: Kafka's SocketServer.ConnectionQuotas and Selector.IdleExpiryManager.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class OpenConnection(Protocol):
    """An open connection. It updates `active_s`, the time of its last activity, itself."""

    active_s: float

    def __hash__(self) -> int: ...


C = TypeVar("C", bound=OpenConnection)

ADDRESSES_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """`per_address_per_s` bounds the new connections per second from one address; after a pause, a
    burst of twice this number is accepted. Idle connections are closed after `idle_ms`."""

    connections: int
    per_address: int
    per_address_per_s: int
    idle_ms: int


class ConnectionRate:
    """A token bucket for each address; its capacity is two seconds' worth of connections."""

    def __init__(self, per_s: int) -> None:
        self._per_s = per_s
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str, now_s: float) -> bool:
        """Return whether the address may open one more connection now. If so, the connection
        counts."""
        full = 2.0 * self._per_s
        left, at_s = self._left.pop(address, (full, now_s))
        left = min(full, left + (now_s - at_s) * self._per_s)
        accepted = left >= 1
        self._left[address] = (left - accepted, now_s)
        if len(self._left) > ADDRESSES_REMEMBERED:
            self._left.popitem(last=False)
        return accepted


class Admission(Generic[C]):
    """Open connections by address."""

    def __init__(self, limits: AdmissionLimits) -> None:
        self._limits = limits
        self._rate = ConnectionRate(limits.per_address_per_s)
        self._open: dict[str, dict[C, None]] = {}
        self.count = 0

    def __iter__(self) -> Iterator[C]:
        for own in list(self._open.values()):
            yield from list(own)

    def refusal(self, address: str, now_s: float) -> str | None:
        """The reason to refuse a new connection from `address`; None to accept the connection."""
        if not self._rate.take(address, now_s):
            return (
                f"more than {self._limits.per_address_per_s} new connections in a second from "
                "its address (BUCKETLOG_CONNECTIONS_PER_ADDRESS_PER_S_MAX)"
            )
        if len(self._open.get(address, ())) >= self._limits.per_address:
            return (
                f"its address has {self._limits.per_address} connections "
                "(BUCKETLOG_CONNECTIONS_PER_ADDRESS_MAX)"
            )
        return None

    @property
    def is_full(self) -> bool:
        return self.count >= self._limits.connections

    def by_least_active(self) -> Iterator[C]:
        """Connections of the address with the most connections, least recently active first."""
        if self._open:
            largest = max(self._open, key=lambda address: len(self._open[address]))
            yield from sorted(self._open[largest], key=_active_s)

    def add(self, connection: C, address: str) -> None:
        self._open.setdefault(address, {})[connection] = None
        self.count += 1

    def remove(self, connection: C, address: str) -> None:
        own = self._open.get(address)
        if own is None or connection not in own:
            return
        del own[connection]
        self.count -= 1
        if not own:
            del self._open[address]

    def idle(self, now_s: float) -> list[C]:
        """Connections without activity for `idle_ms`."""
        since_s = now_s - self._limits.idle_ms / 1000
        return [
            connection
            for own in self._open.values()
            for connection in own
            if connection.active_s <= since_s
        ]


def _active_s(connection: OpenConnection) -> float:
    return connection.active_s
