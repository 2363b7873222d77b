"""A budget of bytes in memory, for received frames or for responses, with a queue of waiters.

Invariants: memory is allocated only after its bytes were granted. No address is granted more than
its share, and no tenant more than its own. Among those with room in their shares, bytes are granted
in the order of the first requests. A request larger than the whole budget (or share) is granted
when nothing else is held. `release` and `forget` call `wake`, which must not run the waiter's work
immediately.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple


def payer(tenant: str, host: str) -> str:
    """The address that pays for the memory of a client: an account of its tenant, if it has one.
    The addresses of one tenant share the tenant's account, `payer(tenant, "")`."""
    return f"{tenant}{_OF_TENANT}{host}" if tenant else host


def pays_for(address: str, account: str) -> bool:
    """Return whether the address pays from the account, which is an address or a tenant's."""
    return account in _accounts(address)


_OF_TENANT = "/"
"""The separator in a tenant's account. No host contains it."""
_ADDRESSES_KEPT = 10_000


@lru_cache(_ADDRESSES_KEPT)
def _accounts(address: str) -> tuple[str, ...]:
    tenant, slash, _ = address.partition(_OF_TENANT)
    return (address, tenant + slash) if slash else (address,)


class _Wish(NamedTuple):
    """The waiter already holds `own_bytes`."""

    size_bytes: int
    own_bytes: int
    address: str
    wake: Callable[[], None]


class MemoryBudget:
    """`address_percent_max`: the share of `max_bytes` that one address may hold;
    `tenant_percent_max`: that of all addresses of a tenant together."""

    def __init__(
        self, max_bytes: int, *, address_percent_max: int = 100, tenant_percent_max: int = 100
    ) -> None:
        self._max_bytes = max_bytes
        self._address_bytes_max = max_bytes * address_percent_max // 100
        self._tenant_bytes_max = max_bytes * tenant_percent_max // 100
        self.held_bytes = 0
        self._granted: Counter[str] = Counter()
        self._taken: Counter[str] = Counter()
        self._waiting: OrderedDict[object, _Wish] = OrderedDict()
        """Waiters for room in the budget."""
        self._over_share: dict[str, OrderedDict[object, _Wish]] = {}
        """Waiters for room in the share of their address, or of their tenant."""
        self._account_of: dict[object, str] = {}
        """The address or tenant of each waiter in `_over_share`."""

    @property
    def needed_bytes(self) -> int:
        """The bytes that the first waiter needs; 0 without waiters."""
        return next(iter(self._waiting.values())).size_bytes if self._waiting else 0

    @property
    def accounts_over_share(self) -> list[str]:
        """Addresses and tenants' accounts that have waiters."""
        return list(self._over_share)

    def granted_to(self, account: str) -> int:
        return self._granted[account]

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

        A waiter that will not ask again calls `forget`: all others are behind it.
        """
        accounts = _accounts(address)
        if not self._waiting and not self._over_share:
            has_room = self.held_bytes + size_bytes <= self._max_bytes
            for account in accounts:
                granted = self._granted.get(account, 0)
                has_room = has_room and granted + size_bytes <= self._share_bytes(account)
            if has_room:
                self._grant(size_bytes, accounts)
                return True
        wish = _Wish(size_bytes, own_bytes, address, wake)
        for account in accounts:
            before = next(iter(self._over_share.get(account, ())), waiter)
            if before is not waiter or not self._within_share(wish, account):
                self._leave_line(waiter)
                if self._account_of.get(waiter, account) != account:
                    self._leave_share(waiter)
                self._over_share.setdefault(account, OrderedDict())[waiter] = wish
                self._account_of[waiter] = account
                return False
        if next(iter(self._waiting), waiter) is not waiter or not self._fits(wish):
            self._waiting[waiter] = wish
            self._leave_share(waiter)
            return False
        self._grant(size_bytes, accounts)
        self.forget(waiter)
        return True

    def _grant(self, size_bytes: int, accounts: tuple[str, ...]) -> None:
        self.held_bytes += size_bytes
        for account in accounts:
            self._granted[account] = self._granted.get(account, 0) + size_bytes

    def take(self, size_bytes: int, *, address: str = "") -> bool:
        """Count bytes that are already in memory, whether there is room or not. False if the
        address, or its tenant, has already taken its share in this way."""
        accounts = _accounts(address)
        for account in accounts:
            taken = self._taken[account]
            if taken and taken + size_bytes > self._share_bytes(account):
                return False
        self.held_bytes += size_bytes
        for account in accounts:
            self._taken[account] += size_bytes
        return True

    def exceed(self, size_bytes: int, *, address: str = "") -> None:
        """Count bytes beyond the acquired ones that are already in memory."""
        self._grant(size_bytes, _accounts(address))

    def release(self, size_bytes: int, *, address: str = "", is_taken: bool = False) -> None:
        """Give bytes back; `is_taken`: the bytes were taken, not acquired."""
        if not size_bytes:
            return
        self.held_bytes -= size_bytes
        held = self._taken if is_taken else self._granted
        accounts = _accounts(address)
        for account in accounts:
            held[account] -= size_bytes
            if not held[account]:
                del held[account]
        if self._waiting:
            self._wake_first()
        if self._over_share:
            for account in accounts:
                self._wake_in_share(account)

    def forget(self, waiter: object) -> None:
        self._leave_line(waiter)
        self._leave_share(waiter)

    def _leave_line(self, waiter: object) -> None:
        if self._waiting.pop(waiter, None) is not None:
            self._wake_first()

    def _leave_share(self, waiter: object) -> None:
        account = self._account_of.pop(waiter, None)
        if account is None:
            return
        own = self._over_share[account]
        del own[waiter]
        if not own:
            del self._over_share[account]
        self._wake_in_share(account)

    def _fits(self, wish: _Wish) -> bool:
        others = self.held_bytes - wish.own_bytes
        return not others or self.held_bytes + wish.size_bytes <= self._max_bytes

    def _share_bytes(self, account: str) -> int:
        return self._tenant_bytes_max if account.endswith(_OF_TENANT) else self._address_bytes_max

    def _within_share(self, wish: _Wish, account: str) -> bool:
        granted = self._granted[account]
        others = granted - wish.own_bytes
        return not others or granted + wish.size_bytes <= self._share_bytes(account)

    def _wake_first(self) -> None:
        if self._waiting:
            wish = next(iter(self._waiting.values()))
            if self._fits(wish):
                wish.wake()

    def _wake_in_share(self, account: str) -> None:
        own = self._over_share.get(account)
        if own:
            wish = next(iter(own.values()))
            if self._within_share(wish, account):
                wish.wake()
