"""A budget of bytes in memory, for received frames or for responses, with a queue of waiters.

Invariants: memory is allocated only after its bytes were granted. No address is granted more than
its share. Among the addresses with room in their share, bytes are granted in the order of the first
requests. A request larger than the whole budget (or share) is granted when nothing else is held.
`release` and `forget` call `wake`, which must not run the waiter's work immediately.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import NamedTuple


class _Wish(NamedTuple):
    """The waiter already holds `own_bytes`."""

    size_bytes: int
    own_bytes: int
    address: str
    wake: Callable[[], None]


class MemoryBudget:
    """`address_percent_max`: the share of `max_bytes` that one address may hold."""

    def __init__(self, max_bytes: int, *, address_percent_max: int = 100) -> None:
        self._max_bytes = max_bytes
        self._address_bytes_max = max_bytes * address_percent_max // 100
        self.held_bytes = 0
        self._granted: Counter[str] = Counter()
        self._taken: Counter[str] = Counter()
        self._waiting: OrderedDict[object, _Wish] = OrderedDict()
        """Waiters for room in the budget."""
        self._over_share: dict[str, OrderedDict[object, _Wish]] = {}
        """Waiters for room in the share of their address."""
        self._address_of: dict[object, str] = {}
        """The addresses of the waiters in `_over_share`."""

    @property
    def needed_bytes(self) -> int:
        """The bytes that the first waiter needs; 0 without waiters."""
        return next(iter(self._waiting.values())).size_bytes if self._waiting else 0

    @property
    def addresses_over_share(self) -> list[str]:
        return list(self._over_share)

    def granted_to(self, address: str) -> int:
        return self._granted[address]

    def acquire(
        self,
        size_bytes: int,
        waiter: object,
        wake: Callable[[], None],
        *,
        address: str = "",
        own_bytes: int = 0,
    ) -> bool:
        """Take the bytes; or False, and `wake` is called when it is worth asking again.

        A waiter that will not ask again calls `forget`: all others stand behind it.
        """
        if not self._waiting and not self._over_share:
            held, granted = self.held_bytes + size_bytes, self._granted[address] + size_bytes
            if held <= self._max_bytes and granted <= self._address_bytes_max:
                self.held_bytes, self._granted[address] = held, granted
                return True
        wish = _Wish(size_bytes, own_bytes, address, wake)
        before = next(iter(self._over_share.get(address, ())), waiter)
        if before is not waiter or not self._within_share(wish):
            self._leave_line(waiter)
            self._over_share.setdefault(address, OrderedDict())[waiter] = wish
            self._address_of[waiter] = address
            return False
        if next(iter(self._waiting), waiter) is not waiter or not self._fits(wish):
            self._waiting[waiter] = wish
            self._leave_share(waiter)
            return False
        self.held_bytes += size_bytes
        self._granted[address] += size_bytes
        self.forget(waiter)
        return True

    def take(self, size_bytes: int, *, address: str = "") -> bool:
        """Count bytes that are already in memory, whether there is room or not. False if the
        address has already taken its share in this way."""
        taken = self._taken[address]
        if taken and taken + size_bytes > self._address_bytes_max:
            return False
        self.held_bytes += size_bytes
        self._taken[address] += size_bytes
        return True

    def exceed(self, size_bytes: int, *, address: str = "") -> None:
        """Count bytes beyond the acquired ones that are already in memory."""
        self.held_bytes += size_bytes
        self._granted[address] += size_bytes

    def release(self, size_bytes: int, *, address: str = "", is_taken: bool = False) -> None:
        """Give bytes back; `is_taken`: the bytes were taken, not acquired."""
        if not size_bytes:
            return
        self.held_bytes -= size_bytes
        account = self._taken if is_taken else self._granted
        account[address] -= size_bytes
        if not account[address]:
            del account[address]
        if self._waiting:
            self._wake_first()
        if self._over_share:
            self._wake_in_share(address)

    def forget(self, waiter: object) -> None:
        self._leave_line(waiter)
        self._leave_share(waiter)

    def _leave_line(self, waiter: object) -> None:
        if self._waiting.pop(waiter, None) is not None:
            self._wake_first()

    def _leave_share(self, waiter: object) -> None:
        address = self._address_of.pop(waiter, None)
        if address is None:
            return
        own = self._over_share[address]
        del own[waiter]
        if not own:
            del self._over_share[address]
        self._wake_in_share(address)

    def _fits(self, wish: _Wish) -> bool:
        others = self.held_bytes - wish.own_bytes
        return not others or self.held_bytes + wish.size_bytes <= self._max_bytes

    def _within_share(self, wish: _Wish) -> bool:
        granted = self._granted[wish.address]
        others = granted - wish.own_bytes
        return not others or granted + wish.size_bytes <= self._address_bytes_max

    def _wake_first(self) -> None:
        if self._waiting:
            wish = next(iter(self._waiting.values()))
            if self._fits(wish):
                wish.wake()

    def _wake_in_share(self, address: str) -> None:
        own = self._over_share.get(address)
        if own:
            wish = next(iter(own.values()))
            if self._within_share(wish):
                wish.wake()
