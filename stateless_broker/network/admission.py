"""Which connections are accepted, and which one gives way when there are too many.

Pure: the clock is passed in. Invariants: no address has more than its limit, and all addresses
together no more than theirs; an address that connects too fast is refused while others are not.
A connection is active when it is accepted, when it sends a whole request and when it gets an
answer. Source: Kafka's SocketServer.ConnectionQuotas and Selector.IdleExpiryManager.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)

ADDRESSES_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """`per_address_per_s` new connections of one address are accepted in a second, and twice as
    many at once after a pause. Idle connections are closed after `idle_ms`."""

    connections: int
    per_address: int
    per_address_per_s: int
    idle_ms: int


class ConnectionRate:
    """A token bucket for each address: full, it holds two seconds' worth of connections."""

    def __init__(self, per_s: int) -> None:
        self._per_s = per_s
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str, now_s: float) -> bool:
        """Whether the address may open one more connection now."""
        full = 2.0 * self._per_s
        left, at_s = self._left.pop(address, (full, now_s))
        left = min(full, left + (now_s - at_s) * self._per_s)
        accepted = left >= 1
        self._left[address] = (left - accepted, now_s)
        if len(self._left) > ADDRESSES_REMEMBERED:
            self._left.popitem(last=False)
        return accepted


class Admission(Generic[C]):
    """Open connections by address, each address' in the order of their last activity."""

    def __init__(self, limits: AdmissionLimits) -> None:
        self._limits = limits
        self._rate = ConnectionRate(limits.per_address_per_s)
        self._open: dict[str, OrderedDict[C, float]] = {}
        self.count = 0

    def __iter__(self) -> Iterator[C]:
        for own in list(self._open.values()):
            yield from list(own)

    def refusal(self, address: str, now_s: float) -> str | None:
        """Why one more connection of the address is refused; None: it is accepted."""
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
        """Those of the address that has most connections, the least recently active first."""
        yield from list(max(self._open.values(), key=len, default=()))

    def add(self, connection: C, address: str, now_s: float) -> None:
        self._open.setdefault(address, OrderedDict())[connection] = now_s
        self.count += 1

    def note_activity(self, connection: C, address: str, now_s: float) -> None:
        own = self._open.get(address)
        if own is not None and connection in own:
            own[connection] = now_s
            own.move_to_end(connection)

    def remove(self, connection: C, address: str) -> None:
        own = self._open.get(address)
        if own is None or own.pop(connection, None) is None:
            return
        self.count -= 1
        if not own:
            del self._open[address]

    def idle(self, now_s: float) -> list[C]:
        """Those without activity for `idle_ms`."""
        since_s = now_s - self._limits.idle_ms / 1000
        found = []
        for own in self._open.values():
            for connection, active_s in own.items():
                if active_s > since_s:
                    break
                found.append(connection)
        return found
